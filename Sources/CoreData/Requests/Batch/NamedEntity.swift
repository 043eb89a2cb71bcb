/// The entity of a batch request: known from the start, or by its name until the request is executed.
struct NamedEntity {
    private(set) var entity: NSEntityDescription?
    private let givenName: String

    init(_ name: String) { givenName = name }

    init(_ entity: NSEntityDescription) {
        self.entity = entity
        givenName = ""
    }

    var name: String { entity?.name ?? givenName }

    /// Notes the entity that the name has turned out to mean.
    mutating func note(_ entity: NSEntityDescription) { self.entity = self.entity ?? entity }

    /// Which entity is meant, as a fetch says it.
    var specification: FetchSpecification {
        var specification = FetchSpecification()
        specification.entity = entity
        specification.entityName = givenName.isEmpty ? nil : givenName
        return specification
    }
}
