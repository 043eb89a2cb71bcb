import CoreData

/// Prints objects.
enum FetchCommand: Command {
    static let name = "fetch"
    static let summary = "Prints the objects of an entity, its sub-entities included."
    static let options: [Option] = [
        .store, .model,
        Option("--entity", "NAME", required: true, help: "the entity"),
        Option(
            "--predicate",
            "TEXT",
            help: "which objects, in the predicate language: 'price > 10 AND name BEGINSWITH \"a\"'"
        ),
        Option("--sort", "KEY,-KEY", help: "the order, by keys or key paths; descending with a minus before"),
        Option("--limit", "N", help: "how many at most"),
        Option("--json", help: "one JSON object a line, instead of text"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let predicate = try arguments["--predicate"].map { try NSPredicate(validating: $0) }
        let limit = try arguments.number("--limit")
        let sortKeys = try arguments["--sort"].map(SortKey.list) ?? []

        let store = try Store(arguments)
        let entity = try entity(named: try arguments.required("--entity"), in: store.model)
        for key in sortKeys { try key.check(against: entity) }

        try store.context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
            request.predicate = predicate
            request.sortDescriptors = sortKeys.map { NSSortDescriptor(key: $0.path, ascending: $0.isAscending) }
            // For a request, 0 means no limit. For this option it means no objects.
            if let limit { request.fetchLimit = limit }
            guard limit != 0 else { return }
            for object in try store.context.fetch(request) {
                let json = ObjectValues.json(of: object)
                if arguments.has("--json") { print(json.text) } else { text(of: json).forEach(print) }
            }
        }
        return .success
    }

    static func entity(named name: String, in model: NSManagedObjectModel) throws -> NSEntityDescription {
        guard let entity = model.entitiesByName[name] else {
            let names = model.entitiesByName.keys.sorted().joined(separator: ", ")
            throw UsageError("the model has no entity “\(name)”, but \(names)")
        }
        return entity
    }

    /// An object as lines for readers: its ID, then a line for each property that has a value.
    static func text(of object: JSON) -> [String] {
        guard case .object(let members) = object else { return [object.text] }
        let rows = members.dropFirst(2).compactMap { member -> [String]? in
            switch member.value {
            case .null, .array([]): nil
            case .string(let text): [member.name, text]
            case .array(let values):
                [
                    member.name,
                    values.map { if case .string(let text) = $0 { text } else { $0.text } }.joined(separator: " "),
                ]
            case .object(let parts) where parts.first?.name == ObjectValues.undecodable:
                [member.name, "cannot be decoded (\(parts[0].value.text) bytes)"]
            default: [member.name, member.value.text]
            }
        }
        guard case .string(let id)? = members.first?.value else { return columns(rows) }
        return [id] + columns(rows)
    }
}

/// A key to sort by: `name`, `-price`, `city.name`.
struct SortKey: Equatable {
    let path: String
    let isAscending: Bool

    /// Reads a list of keys with commas between.
    static func list(_ text: String) throws -> [SortKey] {
        try text.split(separator: ",", omittingEmptySubsequences: false).map { piece in
            let descends = piece.hasPrefix("-")
            let path = String(descends ? piece.dropFirst() : piece)
            guard !path.isEmpty, !path.hasPrefix("."), !path.hasSuffix("."), !path.contains("..") else {
                throw UsageError("“\(piece)” in --sort is not a key")
            }
            return SortKey(path: path, isAscending: !descends)
        }
    }

    /// Checks that `entity` has the path: to-one relationships, and an attribute at the end.
    func check(against entity: NSEntityDescription) throws {
        var current: NSEntityDescription? = entity
        let names = path.split(separator: ".").map(String.init)
        for (index, name) in names.enumerated() {
            let isLast = index == names.count - 1
            switch current?.propertiesByName[name] {
            case is NSAttributeDescription where isLast: return
            case let relationship as NSRelationshipDescription where !isLast && !relationship.isToMany:
                current = relationship.destinationEntity
            case nil: throw UsageError("entity \(current?.name ?? "") has no property “\(name)” to sort by")
            default:
                throw UsageError(
                    "“\(path)” is nothing to sort by: it must end in an attribute, over to-one relationships"
                )
            }
        }
    }
}
