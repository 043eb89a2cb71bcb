import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Typed properties")
struct TypedAccessTests {
    private let date = Date(timeIntervalSinceReferenceDate: 123_456.789)
    private let data = Data((0..<200).map { UInt8($0) })
    private let uuid = UUID()

    @Test(arguments: StoreKind.allCases)
    func `every type is read as it was written, before and after a save and in another context`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack.objects(kind)
        let decimal = try require(Decimal(string: "-12345678901234567890.125"))
        let url = try require(URL(string: "https://example.com/a?b=c#d"))
        let id = try stack.inContext { context throws in
            let sample = Sample(context: context)
            sample.int16 = .min
            sample.int32 = .max
            sample.int64 = .min
            sample.whole = -7
            sample.flag = true
            sample.double = -.pi
            sample.float = 1.5e-3
            sample.text = "héllo, a text longer than fifteen bytes"
            sample.date = date
            sample.data = data
            sample.uuid = uuid
            sample.decimal = decimal
            sample.url = url
            sample.mood = .merry
            sample.kind = .fancy
            check(sample, decimal, url)
            try context.save()
            check(sample, decimal, url)
            return sample.objectID
        }
        try stack.inContext { context throws in
            let sample = try context.object(Sample.self, id)
            check(sample, decimal, url)
            expectEqual(sample.optionalInt16, .min)
            expectEqual(sample.optionalInt32, .max)
            expectEqual(sample.optionalInt64, .min)
            expectEqual(sample.optionalWhole, -7)
            expectEqual(sample.optionalFlag, true)
            expectEqual(sample.optionalDouble, -.pi)
            expectEqual(sample.optionalFloat, 1.5e-3)
            expectEqual(sample.optionalText, "héllo, a text longer than fifteen bytes")
            expectEqual(sample.optionalDate, date)
            expectEqual(sample.optionalData, data)
            expectEqual(sample.optionalUUID, uuid)
            expectEqual(sample.optionalURL, url)
            expectEqual(sample.optionalMood, .merry)
        }
    }

    private func check(_ sample: Sample, _ decimal: Decimal, _ url: URL) {
        expectEqual(sample.int16, .min)
        expectEqual(sample.int32, .max)
        expectEqual(sample.int64, .min)
        expectEqual(sample.whole, -7)
        expect(sample.flag)
        expectEqual(sample.double, -.pi)
        expectEqual(sample.float, 1.5e-3)
        expectEqual(sample.text, "héllo, a text longer than fifteen bytes")
        expectEqual(sample.date, date)
        expectEqual(sample.data, data)
        expectEqual(sample.uuid, uuid)
        expect(abs(NSDecimalNumber(decimal: sample.decimal - decimal).doubleValue) < 1e5)
        expectEqual(sample.url, url)
        expectEqual(sample.mood, .merry)
        expectEqual(sample.kind, .fancy)
    }

    @Test(arguments: StoreKind.allCases)
    func `without a value a property reads zero, or nil where it is optional`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let sample = Sample(context: context)
            checkEmpty(sample)
            try context.save()
            return sample.objectID
        }
        try stack.inContext { context throws in
            let sample = try context.object(Sample.self, id)
            checkEmpty(sample)
            sample.text = "something"
            sample.data = data
            sample.optionalText = nil
            sample.optionalData = nil
            sample.optionalInt16 = 5
            sample.optionalInt16 = nil
            sample.kind = .plain
            sample.kind = nil
            checkEmpty(sample)
            try context.save()
            checkEmpty(sample)
        }
    }

    private func checkEmpty(_ sample: Sample) {
        expect(sample.int16 == 0 && sample.optionalInt16 == nil)
        expect(sample.int32 == 0 && sample.optionalInt32 == nil)
        expect(sample.int64 == 0 && sample.optionalInt64 == nil)
        expect(sample.whole == 0 && sample.optionalWhole == nil)
        expect(!sample.flag && sample.optionalFlag == nil)
        expect(sample.double == 0 && sample.optionalDouble == nil)
        expect(sample.float == 0 && sample.optionalFloat == nil)
        expect(sample.text.isEmpty && sample.optionalText == nil)
        expect(sample.date == Date(timeIntervalSinceReferenceDate: 0) && sample.optionalDate == nil)
        expect(sample.data.isEmpty && sample.optionalData == nil)
        expect(sample.uuid.uuidString == "00000000-0000-0000-0000-000000000000" && sample.optionalUUID == nil)
        expect(sample.decimal == 0 && sample.optionalDecimal == nil)
        expectEqual(sample.optionalURL, nil)
        expect(sample.mood == .calm && sample.optionalMood == nil)
        expectEqual(sample.kind, nil)
        expectEqual(sample.palette, nil)
        expectEqual(sample.colour, nil)
        expect(sample.address == nil)
        expectEqual(sample.draft, nil)
        expectEqual(sample.tally, 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `an optional enumeration reads nil for a raw value that is no case`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context throws in
            let sample = Sample(context: context)
            sample.setValue(17, forKey: "mood")
            sample.setValue("strange", forKey: "kind")
            try context.save()
            expectEqual(sample.optionalMood, nil)
            expectEqual(sample.kind, nil)
            sample.mood = .cross
            expectEqual(sample.value(forKey: "mood") as? Int, 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a sub-entity's objects are read through the super-entity's properties, from the same slots`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let bar = Bar(context: context)
            bar.name = "Bar"
            bar.price = 9
            bar.beers = 12
            let venue = Venue(context: context)
            venue.name = "Venue"
            venue.price = 3
            expectEqual(Bar(context: context).beers, 3)
            try context.save()
        }
        try stack.inContext { context throws in
            let venues = try context.all(Venue.self, sortedBy: "name")
            let named = venues.filter { $0.name != nil }
            expectEqual(named.map(\.name), ["Bar", "Venue"])
            expectEqual(named.map(\.price), [9, 3])
            let bar = try require(named[0] as? Bar)
            expectEqual(bar.entity.name, "Bar")
            expectEqual(bar.beers, 12)
            expect(type(of: named[1]) == Venue.self)
            bar.price = 10
            named[1].price = 4
            try context.save()
            try expectEqual(context.all(Bar.self).compactMap(\.name), ["Bar"])
        }
    }

    /// Two sibling entities keep a property of one name at the same word, but not at the same null bit.
    @Test
    func `siblings that each declare a property do not share its place`() throws {
        let parent = GuideModel.entity("Parent", Sibling.self)
        let first = GuideModel.entity("First", Sibling.self)
        first.properties = [
            GuideModel.attribute("a", .integer64), GuideModel.attribute("b", .integer64),
            GuideModel.attribute("x", .integer64),
        ]
        let second = GuideModel.entity("Second", Sibling.self)
        second.properties = [GuideModel.attribute("a", .string), GuideModel.attribute("x", .integer64)]
        parent.subentities = [first, second]
        let model = NSManagedObjectModel()
        model.entities = [parent, first, second]
        let stack = try Stack(.memory, model: model)
        try stack.inContext { context throws in
            let one = try require(
                NSEntityDescription.insertNewObject(forEntityName: "First", into: context) as? Sibling
            )
            let two = try require(
                NSEntityDescription.insertNewObject(forEntityName: "Second", into: context) as? Sibling
            )
            for round in Int64(1)...3 {
                one.x = round
                two.x = -round
                expectEqual(one.value(forKey: "x") as? Int64, round)
                expectEqual(two.value(forKey: "x") as? Int64, -round)
                expectEqual(one.x, round)
                expectEqual(two.x, -round)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an entity of more than 32 properties keeps apart what is null and what is not`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Wide", NSManagedObject.self)
        entity.properties = (0..<120).map { number in
            GuideModel.attribute(String(format: "p%03d", number), number % 3 == 0 ? .string : .integer64)
        }
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let stack = try Stack(kind, model: model)
        try stack.inContext { context throws in
            let object = NSEntityDescription.insertNewObject(forEntityName: "Wide", into: context)
            for number in stride(from: 0, to: 120, by: 2) {
                let name = String(format: "p%03d", number)
                object.setValue(number % 3 == 0 ? "text \(number), which is long" : number, forKey: name)
            }
            try context.save()
        }
        try stack.inContext { context throws in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Wide")
            let object = try require(try context.fetch(request).first)
            object.setValue(1, forKey: "p001")
            for number in 2..<120 {
                let value = object.value(forKey: String(format: "p%03d", number))
                if number % 2 == 1 {
                    expect(value == nil)
                } else if number % 3 == 0 {
                    expectEqual(value as? String, "text \(number), which is long")
                } else {
                    expectEqual(value as? Int, number)
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `transient properties live in the object and dirty it, but are not stored`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let sample = Sample(context: context)
            sample.draft = "draft"
            sample.tally = 5
            sample.setValue([1, 2], forKey: "anything")
            try context.save()
            expectEqual(sample.draft, "draft")
            expectEqual(sample.value(forKey: "tally") as? Int, 5)
            return sample.objectID
        }
        try stack.inContext { context throws in
            let sample = try context.object(Sample.self, id)
            expectEqual(sample.draft, nil)
            expect(sample.value(forKey: "anything") == nil)
            sample.draft = "other"
            sample.setValue(8, forKey: "tally")
            expectEqual(sample.tally, 8)
            expect(sample.isUpdated)
            expect(sample.changedValues().isEmpty)
            expect(!sample.hasPersistentChangedValues)
            try context.save()
            expect(!sample.isUpdated)
            expectEqual(sample.draft, "other")
            context.refresh(sample, mergeChanges: false)
            expectEqual(sample.draft, nil)
        }
    }
}

/// The class of two sibling entities and of their parent, which lacks the property.
final class Sibling: NSManagedObject {
    @Managed var x: Int64
}
