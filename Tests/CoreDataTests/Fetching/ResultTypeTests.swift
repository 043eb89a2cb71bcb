import CoreData
import Expectations
import TestSupport
import Testing

/// Which `resultType` an expression description may have, by the kind of its values.
@Suite("Result types of expressions")
struct ResultTypeTests {
    private static let numbers: Set<String> = ["flag", "small", "middle", "big", "ratio", "single", "wage", "born"]

    /// The properties whose values each type takes.
    private static let takes: [(type: NSAttributeType, properties: Set<String>)] = [
        (.undefinedAttributeType, numbers.union(["name", "site", "uid", "photo", "scan", "extra", "boss"])),
        (.integer16AttributeType, numbers), (.integer32AttributeType, numbers), (.integer64AttributeType, numbers),
        (.decimalAttributeType, numbers), (.doubleAttributeType, numbers), (.floatAttributeType, numbers),
        (.booleanAttributeType, numbers), (.dateAttributeType, numbers),
        (.stringAttributeType, numbers.union(["name", "site"]).subtracting(["born"])),
        (.URIAttributeType, ["name", "site"]),
        (.binaryDataAttributeType, ["photo", "scan", "extra"]), (.transformableAttributeType, ["extra"]),
        (.UUIDAttributeType, ["uid"]), (.objectIDAttributeType, ["boss"]), (.compositeAttributeType, []),
    ]

    @Test(arguments: StoreKind.allCases)
    func `each type takes the values that fit it, and refuses all others by name`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: EveryKindModel.make())
        let context = stack.context()
        try context.performAndWait {
            let boss = NSEntityDescription.insertNewObject(forEntityName: "Employee", into: context)
            let person = NSEntityDescription.insertNewObject(forEntityName: "Person", into: context)
            let values: [String: Any] = [
                "flag": true, "small": 1, "middle": 1, "big": 1, "ratio": 1.0, "single": Float(1), "wage": Decimal(1),
                "born": Date(timeIntervalSinceReferenceDate: 1), "name": "1", "site": try require(URL(string: "x:1")),
                "uid": UUID(), "photo": Data([1]), "scan": Data([1]), "extra": ["one"] as NSArray, "boss": boss,
            ]
            for (name, value) in values { person.setValue(value, forKey: name) }
            person.setValue(7, forKey: "serial")
            try context.save()

            for (type, properties) in Self.takes {
                for name in values.keys.sorted() {
                    let column = NSExpressionDescription()
                    column.name = "column"
                    column.expression = NSExpression(forKeyPath: name)
                    column.resultType = NSAttributeDescription.AttributeType(rawValue: type)
                    let request = NSFetchRequest<NSDictionary>(entityName: "Person")
                    request.resultType = .dictionaryResultType
                    request.propertiesToFetch = [column]
                    request.predicate = NSPredicate(format: "serial == 7")
                    let comment = Comment(rawValue: "\(name) as \(type)")
                    guard properties.contains(name) else {
                        let error = #expect(throws: CocoaError.self, comment) { try context.fetch(request) }
                        expectEqual(error?.code, .persistentStoreOperation, comment)
                        expectEqual(error?.localizedDescription.contains("cannot give \"column\""), true, comment)
                        continue
                    }
                    let found = try context.fetch(request).map { $0["column"] != nil }
                    expectEqual(found, [true], comment)
                }
            }
        }
    }
}
