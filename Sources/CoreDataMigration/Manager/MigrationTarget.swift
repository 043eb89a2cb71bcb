import CoreDataCustomStores
import CoreDataEngineStores
import CoreDataEssentials
import Foundation
import StrataRows
import StrataSQLiteStore

/// The destination of a migration: a store that no other code opens before it is complete.
struct MigrationTarget {
    let stack: MigrationStack
    private let model: NSManagedObjectModel
    private let configuration: String?
    private let type: String
    private let destination: URL
    private let options: [AnyHashable: Any]
    /// The file that is written; it is the destination itself if the stores are not SQLite files.
    private let working: URL
    /// Whether a store existed at the destination before.
    private let isAddition: Bool
    /// Whether a file existed at the destination before.
    private let hadFile: Bool
    /// Whether the destination is the source, which the new store replaces.
    private let replacesSource: Bool
    /// Detects writes to the source during the migration, if the source is replaced.
    private let watch: FileWatch?
    /// The replacement of the source, for stores whose engine replaces it.
    private let replacement: (any StoreReplacement)?

    /// Opens the store to write; `nil` if the source is to be replaced, and has another model by now.
    ///
    /// - Parameters:
    ///   - model: The model of the new store.
    ///   - configuration: The configuration of `model` that the store holds, or `nil` for all.
    ///   - type: The type of the new store.
    ///   - url: The place of the new store.
    ///   - options: The options with which it is opened.
    ///   - source: The model and the configuration of the source, if that is at the same place, and is to be replaced.
    /// - Throws: `migrationManagerDestinationStore` (134160) with the reason as the underlying error;
    ///   `persistentStoreTimeout` (134090) if others keep the source locked.
    init?(
        model: NSManagedObjectModel,
        configuration: String?,
        type: String,
        at url: URL,
        options: [AnyHashable: Any]?,
        replacing source: (model: NSManagedObjectModel, configuration: String?)? = nil
    ) throws {
        self.model = model
        self.configuration = configuration
        self.type = type
        replacesSource = source != nil
        destination = url
        var options = MigrationOptions.withoutMigration(options)
        options[NSReadOnlyPersistentStoreOption] = nil
        self.options = options
        let storeClass = StoreTypes.storeClass(type)
        let engineClass = storeClass as? any MigratingStore.Type
        hadFile =
            try engineClass.map { try Self.hasStore($0, at: url) } ?? FileManager.default.fileExists(atPath: url.path)
        let isFile =
            type == NSSQLiteStoreType && storeClass == SQLiteStore.self && !url.path.hasPrefix("/dev/null")
        if let source, let engineClass {
            do {
                replacement = try engineClass.replacement(
                    of: url,
                    options: options,
                    model: source.model,
                    configuration: source.configuration
                )
            } catch {
                throw Self.failure(url, error)
            }
            guard replacement != nil else { return nil }
        } else {
            replacement = nil
        }
        working = replacement?.url ?? (isFile || replacesSource ? WorkingFile.url(beside: url) : url)
        do {
            watch = isFile && replacesSource ? try FileWatch(url) : nil
            isAddition = try !replacesSource && hadFile && (!isFile || Self.holdsStore(url))
            if isFile {
                // Leftovers of a killed migration are not needed any more.
                WorkingFile.removeLeftovers(beside: url)
                if isAddition {
                    try SQLiteEngine.copy(url, SQLiteOptions(url: url, options), to: working)
                }
            }
            let context = MigrationContext(concurrencyType: .privateQueueConcurrencyType)
            stack = try MigrationStack(
                model: model,
                configuration: configuration,
                type: type,
                at: working,
                options: options.merging(replacement?.options ?? [:]) { $1 },
                context: context,
                name: "migration"
            )
        } catch {
            if isFile { SQLiteEngine.removeAll(of: working) }
            replacement?.abandon()
            throw Self.failure(url, error)
        }
    }

    private static func failure(_ url: URL, _ error: any Error) -> CocoaError {
        // A time-out is reported as a time-out.
        if let error = error as? CocoaError, error.code == .persistentStoreTimeout { return error }
        return MigrationFailure.error(
            .migrationManagerDestinationStore,
            "The store \(url.placeName) cannot be migrated to: \(error.localizedDescription)",
            url: url,
            underlying: error
        )
    }

    /// Whether a file is a store already; an empty one is not.
    private static func holdsStore(_ url: URL) throws -> Bool {
        let size = (try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? NSNumber)?.intValue ?? 0
        do {
            _ = try SQLiteEngine.metadata(at: url)
            return true
        } catch let error as CocoaError where error.code == .persistentStoreTypeMismatch && size <= 65_536 {
            // A store that was destroyed leaves a database without tables.
            if try SQLiteEngine.isEmptyDatabase(at: url) { return false }
            throw error
        } catch  where size == 0 {
            return false
        }
    }

    // MARK: - Identity

    /// Gives the new store the identity of the old one.
    ///
    /// These are its UUID, the metadata that the application has added, and the place where the history continues. The
    /// history begins anew. But history tokens name the store by its UUID, so no token from before may fit by chance.
    ///
    /// - Throws: Errors of the stores.
    func adoptIdentity(of old: OpenStore) throws {
        let (source, store) = (old.store, stack.store.store)
        guard !isAddition, store is any EngineStore || store is NSAtomicStore else { return }
        let own = store.metadata ?? [:]
        var metadata = source.metadata ?? [:]
        var earlier = metadata.filter { $0.key == EarlierModels.key }
        EarlierModels.note(from: Self.hashes(metadata), to: Self.hashes(own), in: &earlier)
        if !(store is SQLiteStore) {
            // For the framework's keys the new store keeps its values.
            for key in StoreMetadata.ownKeys { metadata[key] = nil }
            metadata.merge(own) { _, own in own }
        }
        metadata[EarlierModels.key] = earlier[EarlierModels.key]
        store.metadata = metadata
        store.identifier = source.identifier
        if let last = try (old.rows as? any HistoryStore)?.lastGivenHistoryNumber() {
            try (stack.store.rows as? any HistoryStore)?.beginHistory(after: last)
        }
    }

    private static func hashes(_ metadata: [String: Any]) -> [String: Data] {
        metadata[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:]
    }

    /// Reserves the keys from 1 to the highest key of the source, so that objects can keep their keys.
    ///
    /// - Parameter highest: The highest key by the number of the destination's root entity.
    /// - Returns: The roots for which that was possible.
    /// - Throws: Errors of the store.
    func reserve(_ highest: [Int: Int64]) throws -> Set<Int> {
        guard !isAddition, stack.store.custom == nil else { return [] }
        let wanted = highest.filter { $0.value > 0 && $0.value < 1 << 53 }
        return wanted.isEmpty ? [] : try stack.store.rows.reserveKeys(upTo: wanted)
    }

    // MARK: - Ending

    /// Moves the store to its place.
    ///
    /// - Returns: Whether it is there; false if the source was to be replaced, and was written to meanwhile.
    /// - Throws: `migrationManagerDestinationStore` (134160) with the reason as the underlying error.
    func finish() throws -> Bool {
        do {
            try stack.store.store.saveMetadata()
            stack.close()
            guard working != destination else { return true }
            if let replacement {
                try replacement.finish(model, configuration: configuration)
                return true
            }
            if replacesSource {
                let isReplaced = try replaceSource()
                SQLiteEngine.removeAll(of: working)
                return isReplaced
            }
            if hadFile || FileManager.default.fileExists(atPath: working.path + "-wal") {
                // Others may have the file open: they see either the complete old store or the complete new one.
                try SQLiteEngine.replace(
                    at: destination,
                    SQLiteOptions(url: destination, options),
                    with: working,
                    SQLiteOptions(url: working, nil)
                )
                SQLiteEngine.removeAll(of: working)
            } else {
                try SQLiteEngine.moveClosed(from: working, to: destination)
            }
            return true
        } catch {
            abandon()
            throw Self.failure(destination, error)
        }
    }

    private func replaceSource() throws -> Bool {
        if let watch {
            let options = try SQLiteOptions(url: destination, options)
            return try SQLiteEngine.replaceContents(of: destination, options, by: working, ifUnchanged: watch)
        }
        // A custom store: its file replaces the old one at once.
        guard rename(working.path, destination.path) == 0 else {
            _ = try FileManager.default.replaceItemAt(destination, withItemAt: working)
            return true
        }
        return true
    }

    /// Whether there is a store in a database.
    ///
    /// - Throws: `migrationManagerDestinationStore` (134160) if that cannot be determined: an existing store must not
    ///   be taken for a new one, because a new one is removed if the migration fails.
    private static func hasStore(_ engine: any MigratingStore.Type, at url: URL) throws -> Bool {
        do {
            _ = try engine.metadataForPersistentStore(with: url)
            return true
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return false
        } catch {
            throw failure(url, error)
        }
    }

    /// Removes the written store.
    func abandon() {
        stack.close()
        if let replacement { return replacement.abandon() }
        if let storeClass = StoreTypes.storeClass(type) as? any WholeStore.Type, storeClass is any MigratingStore.Type {
            if !hadFile { storeClass.discardStore(at: destination) }
        } else if working != destination {
            SQLiteEngine.removeAll(of: working)
        } else if !hadFile, !destination.path.hasPrefix("/dev/null") {
            try? FileManager.default.removeItem(at: destination)
        }
    }
}
