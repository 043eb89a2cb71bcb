import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// A SQLite store packs rows without binary data; the program cannot tell.
@Suite("Packed rows")
struct PackedRowTests {
    /// An entity with attributes of every kind that can be packed, and a reference that may lead to a sub-entity.
    private static func model() -> NSManagedObjectModel {
        let thing = GuideModel.entity("Thing", NSManagedObject.self)
        thing.properties = [
            GuideModel.attribute("number", .integer64), GuideModel.attribute("small", .integer16),
            GuideModel.attribute("flag", .boolean), GuideModel.attribute("weight", .double),
            GuideModel.attribute("moment", .date), GuideModel.attribute("text", .string),
            GuideModel.attribute("code", .uuid), GuideModel.attribute("price", .decimal),
        ]
        let special = GuideModel.entity("Special", NSManagedObject.self)
        special.properties = [GuideModel.attribute("extra", .string), GuideModel.attribute("more", .double)]
        thing.subentities = [special]
        let next = NSRelationshipDescription()
        (next.name, next.destinationEntity, next.maxCount, next.isOptional) = ("next", thing, 1, true)
        thing.properties.append(next)
        let model = NSManagedObjectModel()
        model.entities = [thing, special]
        return model
    }

    private func rows(_ context: NSManagedObjectContext, _ entity: String) async throws -> [FetchedRow] {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity)
        request.sortDescriptors = [.by("number")]
        var rows: [FetchedRow] = []
        for try await batch in context.rows(for: request, batchSize: 5) { rows += batch }
        return rows
    }

    /// All values of a row, as texts.
    private func form(_ row: FetchedRow) -> [String: String] {
        var form = ["": "\(row.objectID) \(row.entity.name ?? "")"]
        for name in row.entity.propertiesByName.keys { form[name] = text(row[name]) }
        expectEqual(Set(row.values.keys), Set(form.keys.filter { !$0.isEmpty }))
        return form
    }

    /// All values of an object, as texts.
    private func form(_ object: NSManagedObject) -> [String: String] {
        var form = ["": "\(object.objectID) \(object.entity.name ?? "")"]
        for name in object.entity.propertiesByName.keys {
            let value = object.value(forKey: name)
            form[name] = text((value as? NSManagedObject)?.objectID ?? value)
        }
        return form
    }

    /// A value as text, the same for all types of one number.
    private func text(_ value: Any?) -> String? {
        switch value {
        case nil: nil
        case let flag as Bool: flag ? "1.0" : "0.0"
        case let decimal as Decimal: "\(NSDecimalNumber(decimal: decimal).doubleValue)"
        case let integer as any BinaryInteger: "\(Double(integer))"
        case let number as NSNumber: "\(number.doubleValue)"
        case let value?: "\(value)"
        }
    }

    private func expectSame(_ stack: Stack, _ entity: String = "Thing", count: Int) async throws {
        let rows = try await rows(stack.context(), entity).map(form)
        let context = stack.context()
        let objects = try await context.perform {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity)
            request.sortDescriptors = [.by("number")]
            return try context.fetch(request).map(form)
        }
        expectEqual(rows.count, count)
        expectEqual(rows, objects)
    }

    /// Each row is followed by one of another entity, which has other values, and leads to it.
    private func fill(_ stack: Stack, _ count: Int) throws {
        let context = stack.context()
        try context.performAndWait {
            var former: NSManagedObject?
            for number in 0..<count {
                let name = number % 2 == 0 ? "Thing" : "Special"
                let object = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
                object.setValue(number, forKey: "number")
                // Zero is a value.
                if number % 3 != 0 {
                    for key in ["small", "flag", "weight"] { object.setValue(number % 3 - 1, forKey: key) }
                    object.setValue(Date(timeIntervalSinceReferenceDate: Double(number % 3 - 1)), forKey: "moment")
                    object.setValue(number % 3 == 1 ? "" : "text", forKey: "text")
                    object.setValue(Decimal(number % 3 - 1), forKey: "price")
                    object.setValue(UUID(), forKey: "code")
                }
                if name == "Special" {
                    object.setValue("extra \(number)", forKey: "extra")
                    object.setValue(Double(number), forKey: "more")
                }
                object.setValue(former, forKey: "next")
                former = number % 5 == 4 ? nil : object
            }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `have the values of the objects, those that are zero or empty too`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind, model: Self.model())
        try fill(stack, 40)
        try await expectSame(stack, count: 40)
        try await expectSame(stack, "Special", count: 20)
    }

    /// Other programs may write values of any type; both ways read them by the same rules.
    @Test func `have the values of the objects where other programs have written other types`() async throws {
        let stack = try Stack(.sqlite, model: Self.model())
        try fill(stack, 40)
        let values = ["NULL", "0", "7", "70000", "-1.5", "'12'", "'text'", "''", "x'00'", "x'6162'"]
        let columns = ["ZSMALL", "ZFLAG", "ZWEIGHT", "ZMOMENT", "ZTEXT", "ZCODE", "ZPRICE", "ZEXTRA", "ZMORE"]
        for (index, value) in values.enumerated() {
            for (shift, column) in columns.enumerated() {
                try stack.sql("UPDATE ZTHING SET \(column) = \(value) WHERE ZNUMBER % 10 = \((index + shift) % 10)")
            }
        }
        try stack.sql("UPDATE ZTHING SET ZCODE = '6BA7B810-9DAD-11D1-80B4-00C04FD430C8' WHERE ZNUMBER > 35")
        try stack.sql("UPDATE ZTHING SET ZPRICE = '12.50' WHERE ZNUMBER > 37")
        try await expectSame(stack, count: 40)
    }

    @Test func `of an unknown entity are an error that names it, and the loop ends`() async throws {
        let stack = try Stack(.sqlite, model: Self.model())
        try fill(stack, 12)
        try stack.sql("UPDATE ZTHING SET Z_ENT = 99 WHERE ZNUMBER = 7")
        let request = NSFetchRequest<NSManagedObject>(entityName: "Thing")
        request.sortDescriptors = [.by("number")]
        var loop = stack.context().rows(for: request, batchSize: 5).makeAsyncIterator()
        try await expectEqual(loop.next()?.count, 5)
        let error = await expectThrows(CocoaError.self) { try await loop.next() }
        expect(error?.localizedDescription.contains("99") == true, "\(error?.localizedDescription ?? "")")
        try await expect(loop.next() == nil)
    }

    @Test(arguments: ["number", "next"])
    func `stop the program if a text is asked for that they do not have`(_ key: String) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [key] in
            let stack = try Stack(.database, model: PackedRowTests.model())
            let context = stack.context()
            try context.performAndWait {
                _ = NSEntityDescription.insertNewObject(forEntityName: "Thing", into: context)
                try context.save()
            }
            for try await batch in context.rows(for: NSFetchRequest<NSManagedObject>(entityName: "Thing")) {
                _ = batch[0][key, as: String.self]
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("\"\(key)\"") && text.contains("Thing") && text.contains("String"))
    }
}
