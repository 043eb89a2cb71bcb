import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Attribute types of models and of rows")
struct AttributeTypeTests {
    @Test func `each type of the public API has one of rows, with the same number`() {
        expectEqual(NSAttributeType.allCases.map(\.rawValue), AttributeType.allCases.map(\.rawValue))
        for type in NSAttributeType.allCases { expectEqual(NSAttributeType(AttributeType(type)), type) }
    }

    @Test(arguments: AttributeType.allCases)
    func `the name of a type is read back`(_ type: AttributeType) {
        expectEqual(AttributeType(described: type.described), type)
    }

    @Test(arguments: [("Binary", AttributeType.data), ("ObjectID", .objectID), ("Integer", nil), ("", nil)])
    func `models have other names for two types, and no more`(_ name: String, _ type: AttributeType?) {
        expectEqual(AttributeType(described: name), type)
    }
}
