import CoreData

/// Prints a model.
enum ModelCommand: Command {
    static let name = "model"
    static let summary = "Prints a model: an .xcdatamodeld (its current version), an .xcdatamodel or its contents file."
    static let options: [Option] = []
    static let operand: String? = "PATH"

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        lines(of: try Store.model(at: arguments.operands[0])).forEach(print)
        return .success
    }

    /// The model as lines of text, entities and properties by name.
    static func lines(of model: NSManagedObjectModel) -> [String] {
        let identifiers = model.versionIdentifiers.map { "\($0)" }.filter { !$0.isEmpty }.sorted()
        var lines = columns(
            [["Versions", identifiers.joined(separator: ", ")], ["Checksum", model.versionChecksum]],
            indent: 0
        )
        let configurations = model.configurations.filter { $0 != "PF_DEFAULT_CONFIGURATION_NAME" }
        for name in configurations.sorted() {
            let members = model.entities(forConfigurationName: name)?.compactMap(\.name).sorted() ?? []
            lines.append("Configuration \(name): \(members.joined(separator: ", "))")
        }
        for entity in model.entities.sorted(by: { ($0.name ?? "") < ($1.name ?? "") }) {
            lines.append("")
            lines += self.lines(of: entity)
        }
        return lines
    }

    private static func lines(of entity: NSEntityDescription) -> [String] {
        var title = entity.isAbstract ? "Abstract entity" : "Entity"
        title += " " + (entity.name ?? "")
        if let parent = entity.superentity?.name { title += ": \(parent)" }
        var lines = [title, "  hash \(entity.versionHash.base64EncodedString())"]
        // What the parent has is printed with the parent.
        let inherited = Set((entity.superentity?.propertiesByName ?? [:]).keys)
        let own = entity.propertiesByName.filter { !inherited.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value)
        lines += columns(
            own.compactMap { $0 as? NSAttributeDescription }.map(row)
                + own.compactMap { $0 as? NSRelationshipDescription }.map(row)
                + own.compactMap { $0 as? NSFetchedPropertyDescription }.map { [$0.name, "fetched property"] }
        )
        for constraint in entity.uniquenessConstraints {
            let names = constraint.map { ($0 as? NSPropertyDescription)?.name ?? "\($0)" }
            lines.append("  unique \(names.joined(separator: ", "))")
        }
        for index in entity.indexes {
            lines.append("  index \(index.name) (\(index.elements.map(text).joined(separator: ", ")))")
        }
        return lines
    }

    private static func row(_ attribute: NSAttributeDescription) -> [String] {
        var notes: [String] = []
        if !attribute.isOptional { notes.append("required") }
        if attribute.isTransient { notes.append("transient") }
        if let value = attribute.defaultValue {
            notes.append("default \(ObjectValues.json(of: value, attribute).text)")
        }
        if attribute.allowsExternalBinaryDataStorage { notes.append("external storage") }
        if attribute.preservesValueInHistoryOnDeletion { notes.append("kept in history") }
        if let name = attribute.valueTransformerName { notes.append("transformer \(name)") }
        return [attribute.name, typeName(of: attribute), notes.joined(separator: ", ")]
    }

    private static func row(_ relationship: NSRelationshipDescription) -> [String] {
        var notes: [String] = []
        if !relationship.isOptional { notes.append("required") }
        if relationship.isOrdered { notes.append("ordered") }
        if relationship.minCount > 0 { notes.append("at least \(relationship.minCount)") }
        if relationship.maxCount > 1 { notes.append("at most \(relationship.maxCount)") }
        if let inverse = relationship.inverseRelationship?.name { notes.append("inverse \(inverse)") }
        switch relationship.deleteRule {
        case .noActionDeleteRule: notes.append("no action on delete")
        case .nullifyDeleteRule: notes.append("nullify on delete")
        case .cascadeDeleteRule: notes.append("cascade on delete")
        case .denyDeleteRule: notes.append("deny delete")
        }
        let arrow = relationship.isToMany ? "→→ " : "→ "
        return [relationship.name, arrow + (relationship.destinationEntity?.name ?? ""), notes.joined(separator: ", ")]
    }

    private static func text(of element: NSFetchIndexElementDescription) -> String {
        var text = element.propertyName ?? "expression"
        if element.collationType == .rTree { text += " r-tree" }
        return element.isAscending ? text : text + " descending"
    }

    /// The type as Xcode's editor calls it.
    static func typeName(of attribute: NSAttributeDescription) -> String {
        let name = attribute.attributeType.described
        guard let composite = attribute as? NSCompositeAttributeDescription else {
            return attribute is NSDerivedAttributeDescription ? "derived " + name : name
        }
        let elements = composite.elements.sorted { $0.name < $1.name }.map { "\($0.name): \(typeName(of: $0))" }
        return "\(name) (\(elements.joined(separator: ", ")))"
    }
}
