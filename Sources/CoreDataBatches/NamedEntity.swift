import CoreDataEssentials

/// The entity of a batch request, which is known from the start, or known only by name until the request is executed.
struct NamedEntity {
    private(set) var entity: NSEntityDescription?
    private let givenName: String

    init(_ name: String) { givenName = name }

    init(_ entity: NSEntityDescription) {
        self.entity = entity
        givenName = ""
    }

    var name: String { entity?.name ?? givenName }

    /// Notes the entity that was found for the name.
    mutating func resolve(to entity: NSEntityDescription) { self.entity = self.entity ?? entity }

    /// The entity, in the form of a fetch specification.
    var specification: FetchSpecification {
        var specification = FetchSpecification()
        specification.entity = entity
        specification.entityName = givenName.isEmpty ? nil : givenName
        return specification
    }
}
