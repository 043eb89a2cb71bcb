import CoreData
import Expectations
import Testing

/// The names of an earlier version, of all parts of a model that have one.
@Suite("Renaming identifiers")
struct RenamingIdentifierTests {
    private static let properties: [NSPropertyDescription] = [
        NSAttributeDescription(), NSRelationshipDescription(), NSFetchedPropertyDescription(),
        NSDerivedAttributeDescription(), NSCompositeAttributeDescription(), NSExpressionDescription(),
    ]

    @Test(arguments: properties.indices)
    func `that of a property is its name unless it has one`(_ index: Int) {
        let property = Self.properties[index]
        expect(property.renamingIdentifier == nil)
        property.name = "title"
        expectEqual(property.renamingIdentifier, "title")
        property.name = "heading"
        expectEqual(property.renamingIdentifier, "heading")
        property.renamingIdentifier = "caption"
        expectEqual(property.renamingIdentifier, "caption")
        property.name = "title"
        expectEqual(property.renamingIdentifier, "caption")
        property.renamingIdentifier = nil
        expectEqual(property.renamingIdentifier, "title")
    }

    @Test func `that of an entity is its name unless it has one`() {
        let entity = NSEntityDescription()
        expect(entity.renamingIdentifier == nil)
        entity.name = "Book"
        expectEqual(entity.renamingIdentifier, "Book")
        entity.renamingIdentifier = "Volume"
        expectEqual(entity.renamingIdentifier, "Volume")
        entity.renamingIdentifier = nil
        expectEqual(entity.renamingIdentifier, "Book")
    }
}
