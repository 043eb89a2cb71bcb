import CoreData
import Expectations
import TestSupport
import Testing

@Suite("The sections of fetched results")
struct SectionTests {
    /// Venues a1, a2 in Aveiro, b1 in Braga, d1 in Douro; sections by city.
    private func withSections(
        _ kind: StoreKind,
        _ body: (NSManagedObjectContext, NSFetchedResultsController<Venue>, ResultsRecorder, [String: Venue]) throws ->
            Void
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            var venues: [String: Venue] = [:]
            for (name, cities) in [("Aveiro", ["a1", "a2"]), ("Braga", ["b1"]), ("Douro", ["d1"])] {
                let city = Guide.city(name, in: context)
                for venue in cities { venues[venue] = Guide.venue(venue, city: city, in: context) }
            }
            try context.save()
            let request = Guide.venues(sortedBy: "city.name", "name")
            let controller = Guide.controller(request, context, sections: "city.name")
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.outline, ["Aveiro: a1 a2", "Braga: b1", "Douro: d1"])
            try body(context, controller, recorder, venues)
            context.processPendingChanges()
            recorder.expectCopy(of: controller)
            try expectEqual(controller.names, context.fetch(request).map { $0.name ?? "nil" })
            let fresh = Guide.controller(request, context, sections: "city.name")
            try fresh.performFetch()
            expectEqual(fresh.outline, controller.outline)
        }
    }

    @Test(arguments: StoreKind.allCases, ["nonsense", "city.nonsense", "city.nonsense.name"])
    func `sections by what there is not are refused by name`(_ kind: StoreKind, _ path: String) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context, sections: path)
            try controller.performFetch()
            Guide.venue("a", city: Guide.city("Porto", in: context), in: context)
            let error = expectThrows(CocoaError.self) { try controller.performFetch() }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("\"\(path)\""), true)
            expectEqual(error?.localizedDescription.contains("no property \"nonsense\""), true)
            expectEqual(controller.fetchedObjects?.isEmpty, true)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that changes its section, and no key that it is sorted by, moves there`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let venue = Guide.venue("a", price: 1, in: context)
            try context.save()
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context, sections: "price")
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.outline, ["1: a"])
            venue.price = 2
            context.processPendingChanges()
            expectEqual(controller.outline, ["2: a"])
            recorder.expectCopy(of: controller)
            // Now it is known what it sorts by, which stays the same.
            venue.price = 3
            context.processPendingChanges()
            expectEqual(controller.outline, ["3: a"])
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases, ["city.name", "price"])
    func `what a fetch has read names the sections, whatever others delete and change in the meantime`(
        _ kind: StoreKind,
        _ path: String
    ) throws {
        let stack = try Stack(kind)
        let setup = stack.context("setting up")
        let (venues, cities) = try setup.performAndWait {
            let cities = ["Aveiro", "Braga", "Douro"].map { Guide.city($0, in: setup) }
            let venues = (0..<9).map { number in
                Guide.venue("v\(number)", price: Int16(number / 3), city: cities[number / 3], in: setup)
            }
            try setup.save()
            return (venues.map(\.objectID), cities.map(\.objectID))
        }
        let context = stack.context()
        try context.performAndWait {
            let controller = Guide.controller(Guide.venues(sortedBy: path, "name"), context, sections: path)
            var calls = 0
            controller.sectionNameTransformer = { value in
                calls += 1
                // While the first section is named, the second one loses an object and the third one is torn.
                if calls == 2 {
                    let failure = Result {
                        try stack.delete(venues[4])
                        try stack.change(venues[7], Venue.self) { venue, context in
                            venue.price = 0
                            venue.city = try? context.existingObject(with: cities[0]) as? City
                        }
                    }
                    if case .failure(let error) = failure { expect(Bool(false), "\(error)") }
                }
                return value.map { "\($0)" } ?? "none"
            }
            try controller.performFetch()
            let names = path == "price" ? ["0", "1", "2"] : ["Aveiro", "Braga", "Douro"]
            expectEqual(
                controller.outline,
                zip(names, ["v0 v1 v2", "v3 v4 v5", "v6 v7 v8"]).map { "\($0): \($1)" }
            )
            controller.sectionNameTransformer = nil
            context.reset()
            try controller.performFetch()
            expectEqual(
                controller.outline,
                zip(names, ["v0 v1 v2 v7", "v3 v5", "v6 v8"]).map { "\($0): \($1)" }
            )
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object of a new section brings the section along`(_ kind: StoreKind) throws {
        try withSections(kind) { context, controller, recorder, _ in
            Guide.venue("c1", city: Guide.city("Coimbra", in: context), in: context)
            context.processPendingChanges()
            expectEqual(recorder.take(), ["section Coimbra insert 2", "c1 insert - 2/0"])
            expectEqual(controller.outline, ["Aveiro: a1 a2", "Braga: b1", "Coimbra: c1", "Douro: d1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the last object of a section takes the section along`(_ kind: StoreKind) throws {
        try withSections(kind) { context, controller, recorder, venues in
            context.delete(try require(venues["b1"]))
            context.processPendingChanges()
            expectEqual(recorder.take(), ["section Braga delete 1", "b1 delete 1/0 -"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object moves to another section`(_ kind: StoreKind) throws {
        try withSections(kind) { context, controller, recorder, venues in
            venues["a1"]?.city = venues["d1"]?.city
            context.processPendingChanges()
            expectEqual(recorder.take(), ["a1 move 0/0 2/0"])
            venues["b1"]?.city = venues["d1"]?.city
            context.processPendingChanges()
            expectEqual(recorder.take(), ["section Braga delete 1", "b1 move 1/0 1/1"])
            venues["d1"]?.city = nil
            context.processPendingChanges()
            expectEqual(controller.outline, [": d1", "Aveiro: a2", "Douro: a1 b1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed destination renames and reorders the sections of objects that did not change`(_ kind: StoreKind)
        throws
    {
        try withSections(kind) { context, controller, recorder, venues in
            venues["a1"]?.city?.name = "Évora"
            context.processPendingChanges()
            expectEqual(controller.outline, ["Braga: b1", "Douro: d1", "Évora: a1 a2"])
            expect(
                Set(recorder.take()) == [
                    "section Aveiro delete 0", "section Évora insert 2", "a1 move 0/0 2/0", "a2 move 0/1 2/1",
                ]
            )
            // Two sections change places by exchanging their names.
            let (first, second) = (venues["b1"]?.city, venues["d1"]?.city)
            first?.name = "Douro"
            second?.name = "Braga"
            context.processPendingChanges()
            expectEqual(controller.outline, ["Braga: d1", "Douro: b1", "Évora: a1 a2"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `sections may change places`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let cities = ["x", "y", "z"].enumerated().map { index, name in
                let city = Guide.city(name, in: context)
                city.population = Int64(index)
                Guide.venue(name + "1", city: city, in: context)
                Guide.venue(name + "2", city: city, in: context)
                return city
            }
            try context.save()
            let controller = Guide.controller(
                Guide.venues(sortedBy: "city.population", "name"),
                context,
                sections: "city.name"
            )
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            cities[0].population = 10
            context.processPendingChanges()
            expectEqual(controller.outline, ["y: y1 y2", "z: z1 z2", "x: x1 x2"])
            expect(
                Set(recorder.take()) == [
                    "section x delete 0", "section x insert 2", "x1 move 0/0 2/0", "x2 move 0/1 2/1",
                ]
            )
            recorder.expectCopy(of: controller)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `setting a to-one relationship alone does not fetch anew`(_ kind: StoreKind) throws {
        try withSections(kind) { context, controller, recorder, venues in
            let fetches = controller.work.fetches
            venues["a1"]?.city = venues["d1"]?.city
            context.processPendingChanges()
            expectEqual(recorder.events, 1)
            expectEqual(controller.work.fetches, fetches)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `paths, objects and index titles belong together`(_ kind: StoreKind) throws {
        try withSections(kind) { context, controller, _, venues in
            let venue = try require(venues["a2"])
            let path = try require(controller.indexPath(forObject: venue))
            expectEqual(path, IndexPath(row: 1, section: 0))
            expectEqual(path.item, 1)
            expect(controller.object(at: IndexPath(item: 0, section: 2)) === venues["d1"])
            expectEqual(controller.sectionIndexTitles, ["A", "B", "D"])
            expectEqual(controller.section(forSectionIndexTitle: "D", at: 2), 2)
            expectEqual(controller.section(forSectionIndexTitle: "Q", at: 3), NSNotFound)
            expectEqual(controller.sections?.map(\.numberOfObjects), [2, 1, 1])
            let other = Guide.venue("other", in: context)
            expectEqual(controller.indexPath(forObject: other), nil)
            context.delete(other)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a single section is there even without objects`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let plain = Guide.controller(Guide.venues(sortedBy: "name"), context)
            expect(plain.sections == nil)
            expectEqual(plain.fetchedObjects, nil)
            try plain.performFetch()
            expectEqual(plain.outline, [":"])
            let sectioned = Guide.controller(Guide.venues(sortedBy: "name"), context, sections: "name")
            try sectioned.performFetch()
            expectEqual(sectioned.outline, [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `names are made of any value, by a transformer if there is one`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for (name, price) in [("ab", 1), ("ac", 2), ("b", 10)] as [(String, Int16)] {
                let venue = Guide.venue(name, price: price, in: context)
                venue.favorite = price > 5
            }
            let byPrice = Guide.controller(Guide.venues(sortedBy: "price"), context, sections: "price")
            try byPrice.performFetch()
            expectEqual(byPrice.outline, ["1: ab", "2: ac", "10: b"])
            let byFlag = Guide.controller(Guide.venues(sortedBy: "favorite", "name"), context, sections: "favorite")
            try byFlag.performFetch()
            expectEqual(byFlag.outline, ["0: ab ac", "1: b"])
            let byLetter = Guide.controller(Guide.venues(sortedBy: "name"), context, sections: "name")
            byLetter.sectionNameTransformer = { String(($0 as? String ?? "").prefix(1)) }
            try byLetter.performFetch()
            expectEqual(byLetter.outline, ["a: ab ac", "b: b"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `sections that the order tears apart are refused`(_ kind: StoreKind) throws {
        try withSections(kind) { context, _, _, venues in
            venues["a1"]?.price = 1
            venues["b1"]?.price = 2
            venues["a2"]?.price = 3
            let controller = Guide.controller(
                Guide.venues("price > 0", sortedBy: "price"),
                context,
                sections: "city.name"
            )
            let error = expectThrows(CocoaError.self) { try controller.performFetch() }
            expectEqual(error?.code.rawValue, 134060)
            expectEqual(controller.fetchedObjects, nil)
            context.rollback()
        }
    }
}
