import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLiteStore

/// The copies of models in stores that Apple's frameworks made, beside the copies that this one writes of the same models.
@Suite("Archives of Apple's models")
struct AppleArchiveTests {
    private static let stores = [
        "apple-stores/bookmarks-ordered-wal/Bookmarks_V5.sqlite", "apple-stores/bookmarks-v2-wal/Bookmarks_V2.sqlite",
        "apple-stores/sync-unique-wal/SyncMetadata_V3.sqlite", "swiftdata/CartKitSwiftData_v1.sqlite",
        "swiftdata/Pegase-empty.store", "migration/loop-v1-v4/Model_v1.sqlite",
    ]
    /// The fields of properties whose values a reader needs.
    private static let fields = [
        "NSPropertyName", "NSIsOptional", "NSIsTransient", "NSIsOrdered", "NSAttributeType",
        "NSAttributeValueClassName", "NSValueTransformerName", "NSFlagsKey", "_NSDestinationEntityName",
        "_NSInverseRelationshipName", "NSMaxCount", "NSMinCount", "NSDeleteRule", "NSVersionHashModifier",
    ]

    @Test(arguments: stores.filter(Fixtures.has))
    func `each field of a property has the value that Apple's framework wrote`(_ path: String) throws {
        let rows = try AppleStores.rows("SELECT Z_CONTENT FROM Z_MODELCACHE", at: Fixtures.url(path))
        let theirs = try require(rows.first?.first as? Data)
        let model = try NSManagedObjectModel(cachedModelData: theirs)
        let ours = try require(model.cachedModelData())

        let (expected, found) = (try Self.properties(in: theirs), try Self.properties(in: ours))

        expect(!expected.isEmpty)
        expectEqual(found.keys.sorted(), expected.keys.sorted())
        for (name, fields) in expected { expectEqual(found[name], fields, "\(name)") }
    }

    @Test(arguments: stores.filter(Fixtures.has))
    func `each object is of a class that Apple's framework has in such an archive`(_ path: String) throws {
        let rows = try AppleStores.rows("SELECT Z_CONTENT FROM Z_MODELCACHE", at: Fixtures.url(path))
        let theirs = try require(rows.first?.first as? Data)
        let ours = try require(try NSManagedObjectModel(cachedModelData: theirs).cachedModelData())
        let (expected, found) = (try Self.classes(in: theirs), try Self.classes(in: ours))
        expect(found.count > 5 && found.isSubset(of: expected), "\(found.subtracting(expected))")
    }

    @Test func `an attribute's flags say whether its values may lie in files, and whether its history keeps them`()
        throws
    {
        for (isExternal, isKept, flags) in [
            (false, false, 0), (true, false, 4), (false, true, 16), (true, true, 20),
        ] {
            let model = try NSManagedObjectModel.parsing(
                """
                <entity name="Place"><attribute name="map" optional="YES" attributeType="Binary" \
                allowsExternalBinaryDataStorage="\(isExternal ? "YES" : "NO")" preserveAfterDeletion="\(isKept ? "YES" : "NO")"/></entity>
                """
            )
            let properties = try Self.properties(in: try require(model.cachedModelData()))
            expectEqual(properties["Place.map"]?["NSFlagsKey"], "\(flags)")
        }
    }

    /// The properties in an archive, by entity and name; fields that are false or nil are left out.
    private static func properties(in packed: Data) throws -> [String: [String: String]] {
        let archive = try KeyedArchive(try Inflate.inflate(packed, limit: 1 << 24))
        var found: [String: [String: String]] = [:]
        for number in 1..<archive.count {
            guard let object = archive.object(number), let name = text(of: object, "NSPropertyName"),
                case .uid(let entity)? = object["NSEntity"],
                let entityName = archive.object(entity).flatMap({ text(of: $0, "NSEntityName") })
            else { continue }
            found["\(entityName).\(name)"] = Dictionary(
                uniqueKeysWithValues: fields.compactMap { field in text(of: object, field).map { (field, $0) } }
            )
        }
        return found
    }

    /// The names of the classes in an archive.
    private static func classes(in packed: Data) throws -> Set<String> {
        let archive = try KeyedArchive(try Inflate.inflate(packed, limit: 1 << 24))
        return Set((1..<archive.count).compactMap { archive.object($0).flatMap { text(of: $0, "$classname") } })
    }

    private static func text(of object: KeyedArchive.Object, _ field: String) -> String? {
        switch object[field] {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        case .bool(let value)?: value ? "true" : nil
        case .uid(let number)?:
            if case .string(let text)? = object.archive.object(number)?.node { text } else { nil }
        default: nil
        }
    }
}
