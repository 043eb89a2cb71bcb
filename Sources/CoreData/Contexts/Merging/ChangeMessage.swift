import Foundation
import StrataRows

/// What a save, or anything else, has changed in the stores: keys and, where they are known, the new rows.
///
/// Immutable; any thread may read it.
struct ChangeMessage: Sendable {
    /// One changed row.
    struct Change: Sendable {
        let key: Int64
        unowned(unsafe) let layout: EntityLayout
        let store: OpenStore
        /// The ID of an object that only a tree of contexts has, under a negative key.
        var temporaryID: NSManagedObjectID?
        /// Of a new row: the row cache's count of removals when it was there for sure; `nil` if nobody has noted that.
        var removals: UInt64?

        /// The ID of the row's object.
        var id: NSManagedObjectID { temporaryID?.latest ?? store.ids.id(key: key, layout: layout, store: store) }
    }

    var inserted: [Change] = []
    var updated: [Change] = []
    var deleted: [Change] = []

    init() {}

    /// What a context on `coordinator` has saved, with what the stores have changed on their own in that.
    init(_ saved: SavedChanges, _ coordinator: NSPersistentStoreCoordinator?) {
        inserted = Self.changes(of: saved.inserted, coordinator)
        updated = Self.changes(of: saved.updated, coordinator)
        deleted = Self.changes(of: saved.deleted, coordinator)
        guard !saved.reread.isEmpty else { return }
        let known = Set((inserted + updated).map(RowName.init))
        updated.append(contentsOf: saved.reread.filter { !known.contains(RowName($0)) })
    }

    /// Under what key a did-save notification carries the message, for those who merge it.
    static let key = "CoreData.savedChanges"

    /// The rows of stored objects of a context on `coordinator`.
    ///
    /// Of the objects only what does not change any more is read, so their context's scope does not have to be entered.
    static func changes(of objects: [NSManagedObject], _ coordinator: NSPersistentStoreCoordinator?) -> [Change] {
        var stores: [Int32: OpenStore] = [:]
        return objects.compactMap { object in
            let storeIndex = object.storeIndex
            guard let store = stores[storeIndex] ?? openStore(of: object, coordinator) else { return nil }
            stores[storeIndex] = store
            let id = object.key < 0 ? object.objectID : nil
            return Change(key: object.key, layout: object.layout, store: store, temporaryID: id)
        }
    }

    private static func openStore(of object: NSManagedObject, _ coordinator: NSPersistentStoreCoordinator?)
        -> OpenStore?
    {
        if object.storeIndex < 0 { return coordinator?.storeForInsertion(of: object.layout) }
        return coordinator?.openStore(at: Int(object.storeIndex))
    }

    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
    var count: Int { inserted.count + updated.count + deleted.count }

    // MARK: - Coalescing

    /// One message of several that came one after the other: each row once.
    ///
    /// A row that was inserted and deleted is told as deleted, since somebody may have fetched it in between; one that
    /// was deleted and is back, because memory won over a deletion, as inserted.
    ///
    /// - Complexity: O(number of rows).
    init(coalescing messages: [ChangeMessage]) {
        guard messages.count > 1 else {
            self = messages.first ?? ChangeMessage()
            return
        }
        var changes = CoalescedRows()
        for message in messages {
            for change in message.inserted { changes.note(change, .inserted) }
            for change in message.updated { changes.note(change, .updated) }
            for change in message.deleted { changes.note(change, .deleted) }
        }
        for (change, kind) in changes.rows {
            switch kind {
            case .inserted: inserted.append(change)
            case .updated: updated.append(change)
            case .deleted: deleted.append(change)
            }
        }
    }

    private struct CoalescedRows {
        enum Kind {
            case inserted
            case updated
            case deleted
        }

        private(set) var rows: [(change: Change, kind: Kind)] = []
        private var positions: [RowName: Int] = [:]

        mutating func note(_ change: Change, _ kind: Kind) {
            let name = RowName(change)
            guard let position = positions[name] else {
                positions[name] = rows.count
                return rows.append((change, kind))
            }
            // An update is no news of a row that was just inserted, nor of one that is gone.
            if kind != .updated { rows[position].kind = kind }
        }
    }

    /// The row of a change, told from all others.
    struct RowName: Hashable {
        let store: ObjectIdentifier
        let root: Int
        let key: Int64

        init(_ change: Change) {
            self.init(change.store, root: change.layout.rootNumber, key: change.key)
        }

        init(_ store: OpenStore, root: Int, key: Int64) {
            self.store = ObjectIdentifier(store)
            self.root = root
            self.key = key
        }
    }
}
