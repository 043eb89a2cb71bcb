import CoreData

/// Says what a store is and what it holds.
enum InspectCommand: Command {
    static let name = "inspect"
    static let summary = "Says what a store is, which model it was made with and how many objects it holds."
    static let options: [Option] = [.store, .model]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let url = try Store.url(arguments)
        let metadata = try Store.metadata(at: url)
        facts(url, metadata).forEach(print)

        let store = try Store(arguments)
        let rows = try store.context.performAndWait { try entities(in: store) }
        print("")
        columns(
            [["Entity", "Parent", "Objects", "Version hash"]] + rows,
            rightAligned: [2],
            indent: 0
        ).forEach(print)
        return .success
    }

    /// What the metadata says, the keys of applications included; where the history begins is for `verify` only.
    static func facts(_ url: URL, _ metadata: [String: Any]) -> [String] {
        var rows = [["Store", url.path]]
        for (title, key) in [("Type", NSStoreTypeKey), ("UUID", NSStoreUUIDKey)] {
            rows.append([title, metadata[key].map { "\($0)" } ?? "none"])
        }
        let identifiers = (metadata[NSStoreModelVersionIdentifiersKey] as? [Any] ?? []).map { "\($0)" }
        rows.append(["Model versions", identifiers.filter { !$0.isEmpty }.joined(separator: ", ")])
        let own = [
            NSStoreTypeKey, NSStoreUUIDKey, NSStoreModelVersionIdentifiersKey, NSStoreModelVersionHashesKey,
            "StrataHistoryBaseline",
        ]
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) where !own.contains(key) {
            rows.append([key, (value as? Data)?.base64EncodedString() ?? "\(value)"])
        }
        return columns(rows, indent: 0)
    }

    private static func entities(in store: Store) throws -> [[String]] {
        let hashes = metadataHashes(store.metadata)
        return try store.model.entities.sorted { ($0.name ?? "") < ($1.name ?? "") }.map { entity in
            let name = entity.name ?? ""
            let request = NSFetchRequest<NSManagedObject>(entityName: name)
            request.includesSubentities = false
            // No store can be asked for an entity that is not of its configuration.
            let count =
                entity.isAbstract
                ? "abstract" : hashes[name] == nil ? "" : "\(try store.context.count(for: request))"
            return [
                name, entity.superentity?.name ?? "", count, hashes[name]?.base64EncodedString() ?? "not in the store",
            ]
        }
    }

    private static func metadataHashes(_ metadata: [String: Any]) -> [String: Data] {
        metadata[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:]
    }
}
