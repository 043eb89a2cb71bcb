import Foundation
import StrataLocks
import SwiftData

/// The calls of a store, and what it has to do wrong, for tests.
final class StoreProbe: Sendable {
    struct State: Sendable {
        var calls: [String] = []
        /// The error of the next saves.
        var failure: CocoaError?
        /// The wrong answer of the next calls.
        var lie: Lie?
        /// The open editors.
        var editors: Set<UUID> = []
        var authors: [String?] = []
        /// What the store adds to the names of saved objects.
        var suffix: String?
        /// Whether the store finds single objects.
        var hasCache = false
        /// Whether each fetch brings all objects of the store.
        var bringsRelated = false
        var lastKey = 0
    }

    enum Lie: CaseIterable, Sendable {
        case noIdentifiers, temporaryIdentifiers, otherStore, otherEntity, sameIdentifier, takenIdentifier
        case foundOtherEntity, foundTwice, foundOtherStore, noPredicates, noSorting
    }

    private let state = Locked(State())

    @discardableResult
    func change<Result: Sendable>(_ body: (inout sending State) -> Result) -> Result { state.withLock { body(&$0) } }

    var current: State { state.withLock { $0 } }

    /// The calls since the last time that this was called.
    func calls() -> [String] {
        change { state in
            defer { state.calls = [] }
            return state.calls
        }
    }
}

/// A store that keeps its objects in one file, as an app would write it.
struct JSONConfiguration: DataStoreConfiguration {
    typealias Store = JSONStore

    var name = "json"
    var schema: Schema?
    var file: URL
    let probe: StoreProbe
    var isInvalid = false

    static func == (left: JSONConfiguration, right: JSONConfiguration) -> Bool { left.file == right.file }

    func hash(into hasher: inout Hasher) { hasher.combine(file) }

    func validate() throws { if isInvalid { throw CocoaError(.fileReadNoPermission) } }
}

final class JSONStore: DataStore {
    typealias Configuration = JSONConfiguration
    typealias Snapshot = DefaultSnapshot

    let configuration: JSONConfiguration
    let schema: Schema
    var identifier: String { "the file " + configuration.file.lastPathComponent }
    private var probe: StoreProbe { configuration.probe }

    init(_ configuration: JSONConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
        guard let schema = configuration.schema else { throw CocoaError(.fileReadUnknown) }
        self.configuration = configuration
        self.schema = schema
        if FileManager.default.fileExists(atPath: configuration.file.path) { _ = try read() }
    }

    private func read() throws -> [PersistentIdentifier: DefaultSnapshot] {
        guard FileManager.default.fileExists(atPath: configuration.file.path) else { return [:] }
        let snapshots = try JSONDecoder().decode([DefaultSnapshot].self, from: Data(contentsOf: configuration.file))
        return Dictionary(uniqueKeysWithValues: snapshots.map { ($0.persistentIdentifier, $0) })
    }

    private func write(_ snapshots: [PersistentIdentifier: DefaultSnapshot]) throws {
        let sorted = snapshots.values.sorted { $0.persistentIdentifier < $1.persistentIdentifier }
        try JSONEncoder().encode(sorted).write(to: configuration.file, options: .atomic)
    }

    private func names<T: PersistentModel>(_ type: T.Type) -> Set<String> {
        func below(_ entity: Schema.Entity) -> [String] { [entity.name] + entity.subentities.flatMap { below($0) } }
        return Set(schema.entity(for: type).map { below($0) } ?? [])
    }

    func fetch<T>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, DefaultSnapshot> {
        let descriptor = request.descriptor
        probe.change { state in
            state.calls.append("fetch \(T.self)\(descriptor.predicate == nil ? "" : " where")")
            state.authors.append(request.editingState.author)
        }
        if probe.current.lie == .noPredicates || probe.current.lie == .noSorting {
            throw DataStoreError.unsupportedFeature
        }
        if descriptor.predicate != nil { throw DataStoreError.preferInMemoryFilter }
        if !descriptor.sortBy.isEmpty { throw DataStoreError.preferInMemorySort }
        let names = names(T.self)
        let all = try read()
        var found = all.values.filter { names.contains($0.persistentIdentifier.entityName) }
            .sorted { $0.persistentIdentifier < $1.persistentIdentifier }
        found = Array(found.dropFirst(descriptor.fetchOffset ?? 0).prefix(descriptor.fetchLimit ?? found.count))
        switch probe.current.lie {
        case .foundOtherEntity: found = Array(all.values)
        case .foundTwice: found += found
        case .foundOtherStore:
            found = try found.map {
                $0.copy(persistentIdentifier: try .identifier(for: "other", entityName: "Slip", primaryKey: 1))
            }
        default: break
        }
        return DataStoreFetchResult(
            descriptor: descriptor,
            fetchedSnapshots: found,
            relatedSnapshots: probe.current.bringsRelated ? all : [:]
        )
    }

    func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
        -> DataStoreSaveChangesResult<DefaultSnapshot>
    {
        probe.change { state in
            state.calls.append(
                "save \(request.inserted.count) new, \(request.updated.count) changed, \(request.deleted.count) deleted"
            )
            state.authors.append(request.editingState.author)
        }
        if let failure = probe.current.failure { throw failure }
        var remapped: [PersistentIdentifier: PersistentIdentifier] = [:]
        var rows = try read()
        for new in request.inserted {
            let temporary = new.persistentIdentifier
            let key = probe.change { state in
                state.lastKey += 1
                return state.lastKey
            }
            remapped[temporary] = try PersistentIdentifier.identifier(
                for: probe.current.lie == .otherStore ? "other" : identifier,
                entityName: probe.current.lie == .otherEntity ? "Page" : temporary.entityName,
                primaryKey: probe.current.lie == .sameIdentifier ? "same" : "\(100_000 + key)-\(UUID().uuidString)"
            )
            if probe.current.lie == .takenIdentifier {
                remapped[temporary] = rows.keys.first { $0.entityName == temporary.entityName }
            }
        }
        if probe.current.lie == .temporaryIdentifiers {
            remapped = Dictionary(uniqueKeysWithValues: remapped.keys.map { ($0, $0) })
        }
        for snapshot in request.inserted + request.updated {
            let identifier = remapped[snapshot.persistentIdentifier] ?? snapshot.persistentIdentifier
            rows[identifier] = snapshot.copy(persistentIdentifier: identifier, remappedIdentifiers: remapped)
        }
        for snapshot in request.deleted { rows[snapshot.persistentIdentifier] = nil }
        if probe.current.lie == .noIdentifiers { remapped = [:] }
        guard probe.current.lie == nil else {
            return DataStoreSaveChangesResult(for: identifier, remappedIdentifiers: remapped)
        }
        try write(rows)
        guard let suffix = probe.current.suffix else {
            return DataStoreSaveChangesResult(for: identifier, remappedIdentifiers: remapped)
        }
        // The store changes names by itself, as a server may do.
        let text = String(decoding: try Data(contentsOf: configuration.file), as: UTF8.self)
        try Data(text.replacingOccurrences(of: "!", with: suffix).utf8).write(to: configuration.file)
        let saved = Set(remapped.values).union(request.updated.map(\.persistentIdentifier))
        return DataStoreSaveChangesResult(
            for: identifier,
            remappedIdentifiers: remapped,
            snapshotsToReregister: try read().filter { saved.contains($0.key) }
        )
    }

    func erase() throws {
        probe.change { $0.calls.append("erase") }
        try write([:])
    }

    func initializeState(for editingState: EditingState) { probe.change { _ = $0.editors.insert(editingState.id) } }

    func invalidateState(for editingState: EditingState) { probe.change { _ = $0.editors.remove(editingState.id) } }

    func cachedSnapshots(
        for persistentIdentifiers: [PersistentIdentifier],
        editingState: EditingState
    ) throws -> [PersistentIdentifier: DefaultSnapshot] {
        guard probe.current.hasCache else { return [:] }
        probe.change { $0.calls.append("cached \(persistentIdentifiers.count)") }
        return try read().filter { persistentIdentifiers.contains($0.key) }
    }
}
