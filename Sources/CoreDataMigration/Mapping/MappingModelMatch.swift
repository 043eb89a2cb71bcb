import CoreDataEssentials
import StrataPredicates

/// Compares a mapping model with the two models between which it is to be used.
struct MappingModelMatch {
    /// The problems, one sentence each.
    private(set) var problems: [String] = []

    init(_ mapping: NSMappingModel, from sourceModel: NSManagedObjectModel, to destinationModel: NSManagedObjectModel) {
        let source = sourceModel.entityVersionHashesByName
        let destination = destinationModel.entityVersionHashesByName
        check(mapping.entityMappings, source: source, destination: destination)
        let carried = Set(mapping.entityMappings.compactMap(\.sourceEntityName))
        let made = Set(mapping.entityMappings.compactMap(\.destinationEntityName))
        let abstract = Set((sourceModel.entities + destinationModel.entities).filter(\.isAbstract).compactMap(\.name))
        for (name, hash) in source.sorted(by: { $0.key < $1.key }) {
            // An abstract entity has no objects, so Xcode makes no mapping for it.
            guard let other = destination[name], other != hash, !abstract.contains(name),
                !carried.contains(name) || !made.contains(name)
            else { continue }
            let missing = carried.contains(name) ? "leads to it" : "starts from it"
            problems.append(
                "Entity \(name) differs between the models (\(Self.digits(hash)) and \(Self.digits(other))), and no mapping \(missing)."
            )
        }
    }

    /// The differences from the hashes that mappings have recorded, and the names that the models do not have.
    static func staleHashes(
        of mappings: [NSEntityMapping],
        from sourceModel: NSManagedObjectModel,
        to destinationModel: NSManagedObjectModel
    ) -> [String] {
        var match = MappingModelMatch()
        match.check(
            mappings,
            source: sourceModel.entityVersionHashesByName,
            destination: destinationModel.entityVersionHashesByName
        )
        return match.problems
    }

    private init() {}

    private mutating func check(_ mappings: [NSEntityMapping], source: [String: Data], destination: [String: Data]) {
        for entry in mappings {
            check(
                entry,
                name: entry.sourceEntityName,
                recorded: entry.sourceEntityVersionHash,
                side: "source",
                hashes: source
            )
            check(
                entry,
                name: entry.destinationEntityName,
                recorded: entry.destinationEntityVersionHash,
                side: "destination",
                hashes: destination
            )
        }
    }

    private mutating func check(
        _ mapping: NSEntityMapping,
        name: String?,
        recorded: Data?,
        side: String,
        hashes: [String: Data]
    ) {
        guard let name else { return }
        guard let hash = hashes[name] else {
            problems.append(
                "Mapping \(mapping.effectiveName) names entity \(name), which is not in the \(side) model."
            )
            return
        }
        guard let recorded, recorded != hash else { return }
        problems.append(
            """
            Mapping \(mapping.effectiveName) was made for another version of entity \(name): it has recorded \
            \(Self.digits(recorded)), the \(side) model has \(Self.digits(hash)). Was the model changed after the mapping was made?
            """
        )
    }

    /// The first 8 digits of a hash, with which people distinguish versions.
    static func digits(_ hash: Data) -> String {
        hash.prefix(4).map { byte in
            let text = String(byte, radix: 16)
            return text.count == 1 ? "0" + text : text
        }.joined()
    }
}
