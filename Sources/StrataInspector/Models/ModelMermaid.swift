import CoreData

/// Draws a model in the language of Mermaid, as an `erDiagram`, which GitHub and many editors show as a picture.
enum ModelMermaid {
    static func lines(of model: NSManagedObjectModel) -> [String] {
        var lines = ["erDiagram"]
        for entity in model.sortedEntities {
            let attributes = entity.ownAttributes
            guard !attributes.isEmpty else {
                lines.append("    \(name(entity))")
                continue
            }
            lines.append("    \(name(entity)) {")
            for attribute in attributes { lines.append("        \(row(attribute, of: entity))") }
            lines.append("    }")
        }
        for entity in model.sortedEntities {
            // Mermaid's entity diagrams have no inheritance: a dotted line with a name takes its place.
            if let parent = entity.superentity { lines.append("    \(name(parent)) ||..|| \(name(entity)) : \"is a\"") }
        }
        for pair in RelationshipPair.all(of: model) {
            guard let owner = pair.first.owner, let destination = pair.first.destinationEntity else { continue }
            let near = pair.second.map { end($0, left: true) } ?? "}o"
            let label = pair.second.map { "\(pair.first.name) / \($0.name)" } ?? pair.first.name
            let line = "\(name(owner)) \(near)--\(end(pair.first, left: false)) \(name(destination))"
            lines.append("    \(line) : \"\(label)\"")
        }
        return lines
    }

    private static func name(_ entity: NSEntityDescription) -> String { entity.name ?? "" }

    private static func row(_ attribute: NSAttributeDescription, of entity: NSEntityDescription) -> String {
        // Types are single words in Mermaid.
        let type = ModelCommand.typeName(of: attribute).split(separator: "(")[0]
        var words = [
            type.trimmingCharacters(in: .whitespaces).replacingOccurrences(of: " ", with: "_"), attribute.name,
        ]
        if entity.uniquenessConstraintNames.contains([attribute.name]) { words.append("UK") }
        if !attribute.isOptional { words.append("\"required\"") }
        return words.joined(separator: " ")
    }

    private static func end(_ relationship: NSRelationshipDescription, left: Bool) -> String {
        let isNeeded = !relationship.isOptional || relationship.minCount > 0 && relationship.isToMany
        if relationship.isToMany { return left ? (isNeeded ? "}|" : "}o") : (isNeeded ? "|{" : "o{") }
        return left ? (isNeeded ? "||" : "|o") : (isNeeded ? "||" : "o|")
    }
}
