import CoreData
import Expectations
import StrataRows
import Testing

// Short ways to write models in tests.

extension NSManagedObjectModel {
    package convenience init(_ entities: NSEntityDescription...) {
        self.init()
        self.entities = entities
    }

    /// A model from the lines inside of `<model>`.
    package static func parsing(_ lines: String, attributes: String = "") throws -> NSManagedObjectModel {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("model-\(UUID().uuidString).xml")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<model \(attributes)>\n\(lines)\n</model>\n".utf8).write(
            to: file
        )
        return try NSManagedObjectModel(reading: file)
    }
}

extension NSEntityDescription {
    package convenience init(_ name: String, _ properties: NSPropertyDescription...) {
        self.init()
        self.name = name
        self.properties = properties
    }
}

/// An attribute.
package func attribute(
    _ name: String,
    _ type: NSAttributeDescription.AttributeType = .string,
    _ change: (NSAttributeDescription) -> Void = { _ in }
) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.type = type
    change(attribute)
    return attribute
}

/// A relationship whose ends are set later, or never.
package func relationship(
    _ name: String,
    to destination: NSEntityDescription? = nil,
    maxCount: Int = 0
) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = name
    relationship.destinationEntity = destination
    relationship.maxCount = maxCount
    return relationship
}

/// Makes two relationships each other's inverse.
package func connect(_ first: NSRelationshipDescription, _ second: NSRelationshipDescription) {
    first.inverseRelationship = second
    second.inverseRelationship = first
}

/// Authors and their books, with a sub-entity, an index, a constraint, a configuration and a template.
package func libraryModel() -> NSManagedObjectModel {
    let author = NSEntityDescription("Author", attribute("name"))
    let book = NSEntityDescription("Book", attribute("title"), attribute("price", .decimal))
    let novel = NSEntityDescription("Novel", attribute("genre"))
    let books = relationship("books", to: book)
    let writer = relationship("author", to: author, maxCount: 1)
    connect(books, writer)
    author.properties.append(books)
    book.properties.append(writer)
    book.subentities = [novel]
    book.uniquenessConstraints = [["title"]]
    let element = NSFetchIndexElementDescription(property: book.properties[0], collationType: .binary)
    book.indexes = [NSFetchIndexDescription(name: "byTitle", elements: [element])]
    let model = NSManagedObjectModel(author, book)
    model.setEntities([author], forConfigurationName: "People")
    let request = NSFetchRequest<NSFetchRequestResult>()
    request.entity = book
    request.predicate = NSPredicate(format: "title BEGINSWITH $PREFIX AND price < $PRICE")
    model.setFetchRequestTemplate(request, forName: "CheapBooks")
    return model
}

extension NSManagedObjectModel {
    /// An entity that the test knows to be there.
    package func entity(_ name: String) throws -> NSEntityDescription {
        try require(entitiesByName[name])
    }
}
