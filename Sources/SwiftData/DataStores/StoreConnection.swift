import Foundation

/// A store of the program, whatever its type, which gives and takes default snapshots.
///
/// It is used by one thread at a time, which has the turn of the ``SnapshotStore``.
protocol StoreConnection: AnyObject {
    /// The store.
    var store: any DataStore { get }
    /// The classes of the store's container.
    var schema: Schema { get }

    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> StoreAnswer
    func count<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int
    func identifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier]
    func save(_ changes: StoreSave) throws -> StoreSaveAnswer
    func cached(_ identifier: PersistentIdentifier, _ editor: EditingState) throws -> DefaultSnapshot?
}

/// The answer of a store to a fetch.
struct StoreAnswer {
    let fetched: [DefaultSnapshot]
    let related: [DefaultSnapshot]
}

/// The changes of a context in one store.
struct StoreSave {
    /// An object that is saved.
    struct Change {
        let backing: any BackingData
        /// The members of to-many relationships that another context may have changed meanwhile.
        let members: [String: [PersistentIdentifier]]
    }

    let inserted: [Change]
    let updated: [Change]
    let deleted: [Change]
    let editor: EditingState
}

/// The answer of a store to a save.
struct StoreSaveAnswer {
    let storeIdentifier: String
    let remapped: [PersistentIdentifier: PersistentIdentifier]
    let reregistered: [DefaultSnapshot]
    let token: (any HistoryToken)?
}

/// The reason why a store's answer, or a snapshot for it, cannot be used.
struct UnusableSnapshot: Error {
    let description: String
}

/// The connection to a store of one type.
final class TypedConnection<Store: DataStore>: StoreConnection {
    private let typed: Store
    let schema: Schema
    var store: any DataStore { typed }

    init(_ store: Store, _ schema: Schema) {
        typed = store
        self.schema = schema
    }

    func fetch<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> StoreAnswer {
        try DefaultSnapshot.$schema.withValue(schema) {
            let result = try typed.fetch(request)
            return StoreAnswer(
                fetched: try result.fetchedSnapshots.map { try plain($0) },
                related: try result.relatedSnapshots.map { identifier, snapshot in
                    try plain(snapshot).copy(persistentIdentifier: identifier)
                }
            )
        }
    }

    func count<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        try DefaultSnapshot.$schema.withValue(schema) { try typed.fetchCount(request) }
    }

    func identifiers<T: PersistentModel>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier] {
        try DefaultSnapshot.$schema.withValue(schema) { try typed.fetchIdentifiers(request) }
    }

    func cached(_ identifier: PersistentIdentifier, _ editor: EditingState) throws -> DefaultSnapshot? {
        try DefaultSnapshot.$schema.withValue(schema) {
            try typed.cachedSnapshots(for: [identifier], editingState: editor)[identifier].map { try plain($0) }
        }
    }

    func save(_ changes: StoreSave) throws -> StoreSaveAnswer {
        try DefaultSnapshot.$schema.withValue(schema) {
            var backings: [PersistentIdentifier: any BackingData] = [:]
            for change in changes.inserted + changes.updated + changes.deleted {
                if let identifier = change.backing.persistentModelID { backings[identifier] = change.backing }
            }
            func snapshots(_ changes: [StoreSave.Change]) throws -> [Store.Snapshot] {
                try changes.map { try snapshot($0, &backings) }
            }
            let request = DataStoreSaveChangesRequest(
                inserted: try snapshots(changes.inserted),
                updated: try snapshots(changes.updated),
                deleted: changes.deleted.map { Store.Snapshot(from: $0.backing, relatedBackingDatas: &backings) },
                editingState: changes.editor
            )
            let result = try typed.save(request)
            return StoreSaveAnswer(
                storeIdentifier: result.storeIdentifier,
                remapped: result.remappedIdentifiers,
                reregistered: try result.snapshotsToReregister.map { identifier, snapshot in
                    try plain(snapshot).copy(persistentIdentifier: identifier)
                },
                token: result.historyToken
            )
        }
    }

    /// The snapshot of an object, all of whose values were read.
    private func snapshot(
        _ change: StoreSave.Change,
        _ backings: inout [PersistentIdentifier: any BackingData]
    ) throws -> Store.Snapshot {
        var complete = DefaultSnapshot(from: change.backing, relatedBackingDatas: &backings)
        if let unread = complete.unread {
            throw UnusableSnapshot(
                description:
                    "cannot be given \(complete.persistentIdentifier.uri), of which a value could not be read: \(unread)"
            )
        }
        complete.toMany.merge(change.members) { $1 }
        if let complete = complete as? Store.Snapshot { return complete }
        return Store.Snapshot(from: change.backing, relatedBackingDatas: &backings)
    }

    /// A snapshot of the store's type in the default form, by its coded form.
    private func plain(_ snapshot: Store.Snapshot) throws -> DefaultSnapshot {
        if let snapshot = snapshot as? DefaultSnapshot { return snapshot }
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf",
            negativeInfinity: "-inf",
            nan: "nan"
        )
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf",
            negativeInfinity: "-inf",
            nan: "nan"
        )
        return try decoder.decode(DefaultSnapshot.self, from: encoder.encode(snapshot))
    }
}
