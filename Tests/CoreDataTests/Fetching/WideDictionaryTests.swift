import CoreData
import Expectations
import TestSupport
import Testing

/// Results with more columns than a machine word has bits are made key by key.
@Suite("Dictionary results of many columns")
struct WideDictionaryTests {
    /// An entity with so many texts and numbers in turns.
    private func model(_ count: Int) -> NSManagedObjectModel {
        let entity = GuideModel.entity("Wide", NSManagedObject.self)
        entity.properties = (0..<count).map { GuideModel.attribute("p\($0)", $0 % 2 == 0 ? .string : .integer32) }
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }

    private func value(_ column: Int, _ row: Int) -> Any? {
        if (column + row) % 3 == 0 { return nil }
        return column % 2 == 0 ? "\(row) in \(column)" as Any : Int32(row * 1000 + column)
    }

    @Test(arguments: StoreKind.allCases, [1, 63, 64, 65, 90])
    func `have the values of the objects under their keys`(_ kind: StoreKind, _ count: Int) throws {
        let context = try Stack(kind, model: model(count)).context()
        try context.performAndWait {
            for row in 0..<7 {
                let object = NSEntityDescription.insertNewObject(forEntityName: "Wide", into: context)
                for column in 0..<count { object.setValue(value(column, row), forKey: "p\(column)") }
            }
            try context.save()

            let request = NSFetchRequest<[String: Any]>(entityName: "Wide")
            request.resultType = .dictionaryResultType
            let results = try context.fetch(request)
            let foundation = NSFetchRequest<NSDictionary>(entityName: "Wide")
            foundation.resultType = .dictionaryResultType
            let others = try context.fetch(foundation)
            expectEqual(results.count, 7)
            func form(_ values: [String: Any]) -> [String: String] { values.mapValues { "\($0)" } }
            var expected = (0..<7).map { row in
                var values: [String: Any] = [:]
                for column in 0..<count { values["p\(column)"] = value(column, row) }
                return form(values)
            }
            for (result, other) in zip(results, others) {
                expectEqual(form(result), form(other as? [String: Any] ?? [:]))
                let index = try require(expected.firstIndex(of: form(result)))
                expected.remove(at: index)
            }
            expect(expected.isEmpty)
        }
    }
}
