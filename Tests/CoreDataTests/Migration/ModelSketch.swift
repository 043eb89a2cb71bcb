import CoreData
import Foundation
import TestSupport

/// A model in few words, a line for each entity.
///
///     Dog(Animal){Hound} abstract #2: name{title} String!, tags String=none, owner -> Person/pets, walks =>> Walk/dogs | unique name
///
/// In braces stands the renaming identifier, behind `#` the modifier of the hash. `!` makes an attribute required and `=` gives a default. A
/// relationship is to one (`->`), to many (`->>`), or ordered (`=>>`), with `!` behind the arrow required; behind the slash stands the inverse, if there is
/// one.
enum ModelSketch {
    static func model(_ text: String) -> NSManagedObjectModel {
        var entities: [String: NSEntityDescription] = [:]
        var parents: [(String, String)] = []
        var links: [(NSRelationshipDescription, String, String?)] = []
        for line in text.split(separator: "\n").map({ $0.trimmingCharacters(in: .whitespaces) }) where !line.isEmpty {
            let parts = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let sides = parts[0].split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            let head = sides[0].split(separator: " ").map(String.init)
            let entity = NSEntityDescription()
            let (name, identifier) = named(head[0])
            let names = name.split(separator: "(").map(String.init)
            entity.name = names[0]
            entity.renamingIdentifier = identifier
            entity.isAbstract = head.contains("abstract")
            entity.versionHashModifier = head.first { $0.hasPrefix("#") }
            if names.count > 1 { parents.append((String(names[1].dropLast()), names[0])) }
            entities[names[0]] = entity
            let properties = sides.count > 1 ? sides[1].split(separator: ",") : []
            entity.properties = properties.map { text in
                property(text.split(separator: " ").map(String.init)) { links.append(($0, $1, $2)) }
            }
            entity.uniquenessConstraints = parts.dropFirst().filter { $0.hasPrefix("unique ") }.map {
                $0.dropFirst(7).split(separator: " ").map(String.init)
            }
        }
        for (parent, child) in parents {
            if let entity = entities[child] { entities[parent]?.subentities.append(entity) }
        }
        let model = NSManagedObjectModel()
        model.entities = entities.keys.sorted().compactMap { entities[$0] }
        for (relationship, destination, _) in links { relationship.destinationEntity = entities[destination] }
        for (relationship, destination, inverse) in links {
            relationship.inverseRelationship = inverse.flatMap { entities[destination]?.relationshipsByName[$0] }
        }
        return model
    }

    /// A name with the identifier that may stand in braces behind it.
    private static func named(_ text: String) -> (String, String?) {
        let parts = text.split(separator: "{").map(String.init)
        return (parts[0], parts.count > 1 ? String(parts[1].dropLast()) : nil)
    }

    private static func property(
        _ words: [String],
        _ link: (NSRelationshipDescription, String, String?) -> Void
    ) -> NSPropertyDescription {
        let (name, identifier) = named(words[0])
        let property: NSPropertyDescription
        if words.count == 3 {
            let relationship = NSRelationshipDescription()
            let arrow = words[1].filter { $0 != "!" }
            relationship.isOptional = arrow == words[1]
            relationship.maxCount = arrow == "->" ? 1 : 0
            relationship.isOrdered = arrow == "=>>"
            let ends = words[2].split(separator: "/").map(String.init)
            link(relationship, ends[0], ends.count > 1 ? ends[1] : nil)
            property = relationship
        } else {
            let attribute = NSAttributeDescription()
            let parts = words[1].split(separator: "=").map(String.init)
            attribute.isOptional = !parts[0].hasSuffix("!")
            let type = parts[0].filter { $0 != "!" }
            attribute.type = types[type] ?? .undefined
            if parts.count > 1 {
                attribute.defaultValue =
                    attribute.type == .string ? parts[1] : Int(parts[1]).map { NSNumber(value: $0) }
            }
            property = attribute
        }
        property.name = name
        property.renamingIdentifier = identifier
        return property
    }

    private static let types: [String: NSAttributeDescription.AttributeType] = [
        "String": .string, "Int16": .integer16, "Int32": .integer32, "Int64": .integer64, "Double": .double,
        "Bool": .boolean, "Date": .date, "Data": .binaryData, "UUID": .uuid, "Decimal": .decimal,
    ]
}

extension NSManagedObjectContext {
    /// All objects with all their values, a line for each; objects are called by their attribute `n`.
    func dump() throws -> [String] {
        var lines: [String] = []
        for entity in persistentStoreCoordinator?.managedObjectModel.entities ?? [] {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
            request.includesSubentities = false
            for object in try fetch(request) {
                let values = entity.propertiesByName.keys.sorted().filter { $0 != "n" }.map { name in
                    "\(name)=\(described(object.value(forKey: name)))"
                }
                lines.append(([entity.name ?? "", called(object)] + values).joined(separator: " "))
            }
        }
        return lines.sorted()
    }

    private func called(_ object: NSManagedObject) -> String { object.value(forKey: "n") as? String ?? "?" }

    private func described(_ value: Any?) -> String {
        switch value {
        case let object as NSManagedObject: called(object)
        case let set as NSOrderedSet:
            "[" + set.array.compactMap { ($0 as? NSManagedObject).map(called) }.joined(separator: " ") + "]"
        case let set as Set<NSManagedObject>: "{" + set.map(called).sorted().joined(separator: " ") + "}"
        case let set as NSSet:
            "{" + set.allObjects.compactMap { ($0 as? NSManagedObject).map(called) }.sorted().joined(separator: " ")
                + "}"
        case let value?: "\(value)"
        case nil: "-"
        }
    }

    /// Makes an object that is called `name`.
    @discardableResult
    func make(_ entity: String, _ name: String, _ values: [String: Any?] = [:]) -> NSManagedObject {
        insert(entity, values.merging(["n": name]) { $1 })
    }
}
