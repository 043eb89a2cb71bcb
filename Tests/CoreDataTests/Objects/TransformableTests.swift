import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Transformable and composite attributes")
struct TransformableTests {
    private func storeSample(_ stack: Stack) throws -> NSManagedObjectID {
        try stack.inContext { context in
            let sample = Sample(context: context)
            sample.colour = Colour(1, 2)
            sample.palette = ["red", 3, Date(timeIntervalSinceReferenceDate: 1), ["nested": true]]
            expectEqual(sample.colour, Colour(1, 2))
            try context.save()
            expectEqual(sample.colour, Colour(1, 2))
            return sample.objectID
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `values go through their transformer, or are archived without one`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try storeSample(stack)
        try stack.inContext { context in
            let sample = try context.object(Sample.self, id)
            let colour = try require(sample.colour)
            expectEqual(colour, Colour(1, 2))
            expect(sample.colour === colour)
            expect(sample.value(forKey: "colour") as? Colour === colour)
            expectEqual(sample.palette?.count, 4)
            expectEqual(sample.palette?[0] as? String, "red")
            expectEqual((sample.palette?[3] as? NSDictionary)?["nested"] as? Bool, true)
            sample.text = "another property"
            expect(sample.colour === colour)
            sample.colour = nil
            sample.palette = nil
            try context.save()
        }
        try stack.inContext { context throws in
            let sample = try context.object(Sample.self, id)
            expectEqual(sample.colour, nil)
            expectEqual(sample.palette, nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `default values go through their transformer, or are archived without one`(_ kind: StoreKind) throws {
        let model = ObjectModel.make()
        let attributes = try require(model.entitiesByName["Sample"]?.attributesByName)
        attributes["colour"]?.defaultValue = Colour(7, 8)
        attributes["palette"]?.defaultValue = ["red", 3] as NSArray
        for name in ["colour", "palette"] { attributes[name]?.isOptional = false }
        let stack = try Stack(kind, model: model)
        let ids = try stack.inContext { context in
            let (sample, special) = (Sample(context: context), SpecialSample(context: context))
            expect(sample.colour == Colour(7, 8) && sample.palette?[0] as? String == "red")
            special.colour = Colour(1, 2)
            try context.save()
            return [sample.objectID, special.objectID]
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Sample.self, ids[0]).colour, Colour(7, 8))
            try expectEqual(context.object(Sample.self, ids[1]).colour, Colour(1, 2))
            for id in ids { try expectEqual(context.object(Sample.self, id).palette, ["red", 3] as NSArray) }
        }
    }

    // CS-78
    @Test(arguments: StoreKind.allCases)
    func `changing the inside of a mutable value is not noticed (CS-78)`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context in
            let sample = Sample(context: context)
            sample.palette = NSMutableArray(array: ["a"])
            try context.save()
            (sample.palette as? NSMutableArray)?.add("b")
            expect(!sample.hasChanges)
            expect(!context.hasChanges)
            return sample.objectID
        }
        try stack.inContext { context throws in try expectEqual(context.object(Sample.self, id).palette, ["a"]) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a value that its transformer refuses reads back, and fails validation`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try storeSample(stack)
        try stack.inContext { context in
            let sample = try context.object(Sample.self, id)
            sample.colour = Colour(0, 0)
            expectEqual(sample.colour, Colour(0, 0))
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectValidation)
            expectEqual(error?.userInfo[NSValidationKeyErrorKey] as? String, "colour")
            expectEqual(sample.colour, Colour(0, 0))
            context.rollback()
            expectEqual(sample.colour, Colour(1, 2))
            try context.save()
            sample.palette = [Colour(1, 1)]
            expectThrows(CocoaError.self) { try context.save() }
            sample.palette = ["fine"]
            try context.save()
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Sample.self, id).colour, Colour(1, 2))
            try expectEqual(context.object(Sample.self, id).palette, ["fine"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a decoded value does not outlive the row that it came from`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try storeSample(stack)
        let reader = stack.context()
        let sample = try reader.performAndWait {
            let sample = try reader.object(Sample.self, id)
            expectEqual(sample.colour, Colour(1, 2))
            return sample
        }
        try stack.inContext { context in
            try context.object(Sample.self, id).colour = Colour(5, 6)
            try context.save()
        }
        try reader.performAndWait {
            expectEqual(sample.colour, Colour(1, 2))
            sample.text = "mine"
            reader.refresh(sample, mergeChanges: true)
            expectEqual(sample.colour, Colour(5, 6))
            expectEqual(sample.committedValues(forKeys: ["colour"])["colour"] as? Colour, Colour(5, 6))
            sample.colour = Colour(7, 7)
            expectEqual(sample.committedValues(forKeys: ["colour"])["colour"] as? Colour, Colour(5, 6))
            expectEqual(sample.changedValues()["colour"] as? Colour, Colour(7, 7))
            reader.refresh(sample, mergeChanges: true)
            expectEqual(sample.colour, Colour(7, 7))
            reader.refresh(sample, mergeChanges: false)
            expectEqual(sample.colour, Colour(5, 6))
            sample.colour = Colour(8, 8)
            reader.processPendingChanges()
            expectEqual(sample.colour, Colour(8, 8))
            expectEqual(sample.committedValues(forKeys: ["colour"])["colour"] as? Colour, Colour(5, 6))
            try reader.save()
            expectEqual(sample.colour, Colour(8, 8))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a store's version of a value wins in memory too, where the policy says so`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try storeSample(stack)
        let loser = stack.context()
        let sample = try loser.performAndWait {
            loser.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
            let sample = try loser.object(Sample.self, id)
            sample.colour = Colour(3, 3)
            sample.text = "kept"
            return sample
        }
        try stack.inContext { context in
            try context.object(Sample.self, id).colour = Colour(4, 4)
            try context.save()
        }
        try loser.performAndWait {
            try loser.save()
            expectEqual(sample.colour, Colour(4, 4))
            expectEqual(sample.text, "kept")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a composite attribute is a dictionary, of which each element has a key path`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context in
            let sample = Sample(context: context)
            sample.address = ["street": "Rua", "place": ["town": "Faro", "zip": 8000]]
            expectEqual(sample.value(forKey: "address.street") as? String, "Rua")
            try context.save()
            return sample.objectID
        }
        try stack.inContext { context in
            let sample = try context.object(Sample.self, id)
            expectEqual(sample.address?["street"] as? String, "Rua")
            expectEqual((sample.address?["place"] as? [String: Any])?["zip"] as? Int, 8000)
            expectEqual(sample.value(forKeyPath: "address.place.town") as? String, "Faro")
            sample.setValue("Lagos", forKey: "address.place.town")
            let changed = sample.changedValues()
            expectEqual(Set(changed.keys), ["address"])
            expectEqual(
                ((changed["address"] as? [String: Any])?["place"] as? [String: Any])?["town"] as? String,
                "Lagos"
            )
            let committed = sample.committedValues(forKeys: ["address"])["address"] as? [String: Any]
            expectEqual((committed?["place"] as? [String: Any])?["town"] as? String, "Faro")
            sample.address = ["street": "Avenida"]
            expect((sample.address?["place"]) == nil)
            try context.save()
            sample.address = nil
            expect(sample.address == nil)
            context.rollback()
            expectEqual(sample.address as? [String: String], ["street": "Avenida"])
        }
    }
}
