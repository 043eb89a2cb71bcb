import CoreData
import StrataSQLiteStore

/// Prints what a store is and what it contains.
enum InspectCommand: Command {
    static let name = "inspect"
    static let summary = "Says what a store is, how large it is, who reads its history, and how many objects it holds."
    static let options: [Option] = [.store, .model]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let place = try StorePlace(try arguments.required("--store"))
        let figures = try place.isFile ? StoreFigures(of: place.url) : nil
        let metadata = try Store.metadata(of: place)
        let opened = Result { try Store(arguments) }
        let coordinator = (try? opened.get())?.context.persistentStoreCoordinator
        let placement = coordinator?.statistics().stores.first?.tablePlacement
        facts(place.name, metadata: metadata, figures: figures, placement: placement).forEach(print)

        let store = try opened.get()
        let rows = try store.context.performAndWait { try entities(in: store) }
        print("")
        columns(
            [["Entity", "Parent", "Objects", "Version hash"]] + rows,
            rightAligned: [2],
            indent: 0
        ).forEach(print)
        return .success
    }

    /// The values in the metadata, including the keys of applications.
    ///
    /// The beginning of the history is left out: only `verify` uses it.
    static func facts(
        _ name: String,
        metadata: [String: Any],
        figures: StoreFigures? = nil,
        placement: CoreDataStatistics.TablePlacement? = nil
    ) -> [String] {
        var rows = [["Store", name]]
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
        if let placement {
            rows.append(["Tables", placement.rawValue])
            for consequence in consequences(of: placement) { rows.append(["", consequence]) }
        }
        if let figures { rows += self.rows(figures) }
        return columns(rows, indent: 0)
    }

    /// The consequences of the form of a store on a server, unless it is the usual one.
    private static func consequences(of placement: CoreDataStatistics.TablePlacement) -> [String] {
        switch placement {
        case .oneNode: []
        case .shardedBySchema:
            [
                "no context can be pinned to a version",
                "a fetch of several statements may see what others commit meanwhile",
            ]
        case .portable:
            [
                "saves that the history records commit one after the other",
                "changes of other processes are noticed within a second", "no foreign keys",
                "a migration copies all tables, and nobody may write meanwhile",
            ]
        }
    }

    /// The size of the store, and the readers that keep it from getting smaller.
    static func rows(_ figures: StoreFigures) -> [[String]] {
        var rows = [["File", bytes(figures.fileSize)], ["Log", bytes(figures.logSize)]]
        if figures.externalFiles > 0 {
            rows.append(["External data", "\(bytes(figures.externalSize)) in \(count(figures.externalFiles, "file"))"])
        }
        if let history = figures.history {
            let range = history.numbers.map { " (\($0.lowerBound) to \($0.upperBound))" } ?? ""
            rows.append(["History", count(history.count, "transaction") + range])
            for consumer in history.consumers {
                let reader = consumer.record
                let seen = Date(timeIntervalSinceReferenceDate: reader.lastSeen).ISO8601Format()
                let place = "\(reader.name) has read up to \(reader.number), \(consumer.unread) behind"
                rows.append(["Consumer", "\(place), last seen \(seen)"])
            }
        }
        if let oldest = figures.oldestReader {
            let holders = oldest.holders.map(\.description).joined(separator: ", ")
            rows.append(
                ["Oldest version read", "page \(oldest.frames) of \(oldest.newestFrames) of the log, by \(holders)"]
            )
        }
        return rows
    }

    private static func count(_ number: Int, _ what: String) -> String { "\(number) \(what)\(number == 1 ? "" : "s")" }

    private static func bytes(_ size: Int) -> String {
        size < 10_000 ? "\(size) bytes" : size < 10_000_000 ? "\(size / 1024) KiB" : "\(size / 1_048_576) MiB"
    }

    private static func entities(in store: Store) throws -> [[String]] {
        let hashes = metadataHashes(store.metadata)
        return try store.model.entities.sorted { ($0.name ?? "") < ($1.name ?? "") }.map { entity in
            let name = entity.name ?? ""
            let request = NSFetchRequest<NSManagedObject>(entityName: name)
            request.includesSubentities = false
            // A store cannot be asked for an entity that is not in its configuration.
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
