import CoreData
import Expectations
import TestSupport
import Testing

/// Results of one fetch share the objects of small integers.
@Suite("Numbers in dictionary results")
struct DictionaryNumbersTests {
    private static let types: [NSAttributeDescription.AttributeType] = [.integer16, .integer32, .integer64, .boolean]

    @Test(arguments: StoreKind.allCases)
    func `are those of the objects, of each type and size, however many there are`(_ kind: StoreKind) throws {
        let entity = GuideModel.entity("Number", NSManagedObject.self)
        entity.properties =
            Self.types.enumerated().map { GuideModel.attribute("n\($0)", $1) }
            + [GuideModel.attribute("place", .integer64)]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let context = try Stack(kind, model: model).context()
        try context.performAndWait {
            for place in 0..<600 {
                let object = NSEntityDescription.insertNewObject(forEntityName: "Number", into: context)
                object.setValue(place, forKey: "place")
                // The same number lies in attributes of different types, and returns after a while.
                for column in 0..<3 where (place + column) % 7 != 0 {
                    object.setValue((place + column * 100) % 300 - 20, forKey: "n\(column)")
                }
                object.setValue(place % 3 == 0, forKey: "n3")
            }
            try context.save()

            let request = NSFetchRequest<NSManagedObject>(entityName: "Number")
            request.sortDescriptors = [.by("place")]
            let objects = try context.fetch(request)
            let dictionaries = NSFetchRequest<[String: Any]>(entityName: "Number")
            dictionaries.resultType = .dictionaryResultType
            dictionaries.sortDescriptors = request.sortDescriptors
            let results = try context.fetch(dictionaries)
            expectEqual(results.count, 600)
            for (object, result) in zip(objects, results) {
                let values = entity.attributesByName.keys.sorted().map { form(object.value(forKey: $0)) }
                expectEqual(entity.attributesByName.keys.sorted().map { form(result[$0]) }, values)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a whole number that is too large for the type of its expression is returned all the same`(_ kind: StoreKind)
        throws
    {
        let entity = GuideModel.entity("Number", NSManagedObject.self)
        entity.properties = [
            GuideModel.attribute("small", .integer16), GuideModel.attribute("real", .double),
        ]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        let context = try Stack(kind, model: model).context()
        try context.performAndWait {
            for number in [30_000, 30_000, 7_001] {
                let object = NSEntityDescription.insertNewObject(forEntityName: "Number", into: context)
                object.setValue(number, forKey: "small")
                object.setValue(Double(number) * 100_000 + 0.5, forKey: "real")
            }
            try context.save()
            let request = NSFetchRequest<[String: Any]>(entityName: "Number")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["small", "real"].flatMap { name in
                [NSAttributeDescription.AttributeType.integer16, .integer32].map { type in
                    let sum = NSExpressionDescription()
                    sum.name = "\(name) \(type == .integer16 ? 16 : 32)"
                    sum.expression = NSExpression(forFunction: "sum:", arguments: [NSExpression(forKeyPath: name)])
                    sum.resultType = type
                    return sum
                }
            }
            let sums = try require(context.fetch(request).first).mapValues { "\($0)" }
            expectEqual(
                sums,
                ["small 16": "67001", "small 32": "67001", "real 16": "6700100001", "real 32": "6700100001"]
            )
        }
    }

    /// A number with its type.
    private func form(_ value: Any?) -> String? {
        (value as? NSNumber).map { "\($0) \(String(cString: $0.objCType))" }
    }
}
