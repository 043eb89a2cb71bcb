import Foundation
import StrataLocks
import StrataRows

/// Changes in the stores, made by a save or otherwise: the keys of the changed rows.
///
/// A value: each thread may use its own copy.
package struct ChangeMessage: Sendable {
    /// One changed row.
    package struct Change: Sendable {
        package let key: Int64
        package unowned(unsafe) let layout: EntityLayout
        package let store: OpenStore
        /// A temporary ID or a count of removals.
        ///
        /// No row has both. A large save has a change for each row, so the two share one word.
        private var detail: Detail?
        /// The to-many relationships of a changed row whose members have changed; `nil` if that is not known.
        var relationships: SlotSet?

        package init(
            key: Int64,
            layout: EntityLayout,
            store: OpenStore,
            temporaryID: NSManagedObjectID? = nil
        ) {
            self.key = key
            self.layout = layout
            self.store = store
            detail = temporaryID.map { Detail.temporaryID($0) }
        }

        /// A count of removals, which the rows of a batch share.
        package final class RemovalCount: Sendable {
            fileprivate let value: UInt64

            package init(_ value: UInt64) { self.value = value }
        }

        private enum Detail: Sendable {
            case temporaryID(NSManagedObjectID)
            case removals(RemovalCount)
        }

        /// The ID of an object that only a tree of contexts has, under a negative key.
        package var temporaryID: NSManagedObjectID? {
            if case .temporaryID(let id) = detail { id } else { nil }
        }

        /// For a new row: the row cache's count of removals at a time when the row certainly existed; `nil` if unknown.
        var removals: UInt64? {
            if case .removals(let count) = detail { count.value } else { nil }
        }

        /// Notes how many rows the row cache had removed at a time when the new row certainly existed.
        package mutating func note(_ removals: RemovalCount) { detail = .removals(removals) }

        /// Adds the relationships that an earlier change of the row has changed.
        mutating func addRelationships(of earlier: Change) {
            guard let known = earlier.relationships else { return relationships = nil }
            relationships?.formUnion(known)
        }

        /// The ID of the row's object.
        var id: NSManagedObjectID { temporaryID?.latest ?? store.ids.id(key: key, layout: layout, store: store) }
    }

    package var inserted: [Change] = [] { didSet { sharedIDs = nil } }
    package var updated: [Change] = [] { didSet { sharedIDs = nil } }
    package var deleted: [Change] = [] { didSet { sharedIDs = nil } }
    /// The IDs of these rows, which the copies of the message share; `nil` once a list has been changed.
    private var sharedIDs: SharedIDs?

    package init() {}

    /// Makes the message of a save by a context on `coordinator`, including changes that the stores have made
    /// themselves.
    init(_ saved: SavedChanges, _ coordinator: NSPersistentStoreCoordinator?) {
        inserted = Self.changes(of: saved.inserted, coordinator)
        updated = Self.changes(of: saved.updated, coordinator)
        if saved.relationships.count == updated.count, saved.updated.count == updated.count {
            for (index, changed) in saved.relationships.enumerated() { updated[index].relationships = changed }
        }
        deleted = Self.changes(of: saved.deleted, coordinator)
        sharedIDs = SharedIDs()
        guard !saved.reread.isEmpty else { return }
        let known = Set((inserted + updated).map(RowName.init))
        updated.append(contentsOf: saved.reread.filter { !known.contains(RowName($0)) })
    }

    private final class SharedIDs: Sendable {
        let made = OnceReference<ChangedIDs>()
    }

    /// The IDs of the rows.
    ///
    /// All contexts that merge a save share the sets, which are made at the first request.
    ///
    /// - Complexity: O(number of rows) at the first request.
    var ids: ChangedIDs {
        guard let sharedIDs else { return ChangedIDs(of: self) }
        return sharedIDs.made.load() ?? sharedIDs.made.storeIfNil(ChangedIDs(of: self))
    }

    /// Lets go of the IDs after the last request for them, and the stores let go of those that no code holds.
    ///
    /// Otherwise a store would keep the IDs of a large save until it has made as many others.
    mutating func letGoOfIDs() {
        sharedIDs = nil
        guard count >= WorkSize.sweptIDs else { return }
        var stores: [OpenStore] = []
        for list in [inserted, updated, deleted] {
            // No change is copied, as there are many.
            for index in list.indices where !stores.contains(where: { $0 === list[index].store }) {
                stores.append(list[index].store)
            }
        }
        for store in stores { store.ids.sweep(after: count) }
    }

    /// The key under which a did-save notification carries the message, for contexts that merge it.
    static let key = "CoreData.savedChanges"

    /// The rows of stored objects of a context on `coordinator`.
    ///
    /// Only constant data of the objects is read, so the caller need not enter their context's scope.
    static func changes(of objects: [NSManagedObject], _ coordinator: NSPersistentStoreCoordinator?) -> [Change] {
        var changes: [Change] = []
        changes.reserveCapacity(objects.count)
        // Mostly all objects are in one store.
        var last: (index: Int32, store: OpenStore)?
        objects.forEachBorrowed { object in
            let storeIndex = object.storeIndex
            let store: OpenStore
            if let last, last.index == storeIndex {
                store = last.store
            } else {
                guard let found = openStore(of: object, coordinator) else { return }
                // Objects that are in no store yet may come into different stores.
                if storeIndex >= 0 { last = (storeIndex, found) }
                store = found
            }
            let id = object.key < 0 ? object.objectID : nil
            changes.append(Change(key: object.key, layout: object.layout, store: store, temporaryID: id))
        }
        return changes
    }

    private static func openStore(of object: NSManagedObject, _ coordinator: NSPersistentStoreCoordinator?)
        -> OpenStore?
    {
        if object.storeIndex < 0 { return coordinator?.storeForInsertion(of: object.layout) }
        return coordinator?.openStore(at: Int(object.storeIndex))
    }

    package var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
    var count: Int { inserted.count + updated.count + deleted.count }

    // MARK: - Coalescing

    /// Combines consecutive messages into one that names each row once.
    ///
    /// If a row was inserted and then deleted, the message names it as deleted, since a fetch may have found it in
    /// between. If a row was deleted and then inserted again, because memory won over the deletion, the message names
    /// it as inserted.
    ///
    /// - Complexity: O(number of rows).
    package init(coalescing messages: [ChangeMessage]) {
        guard messages.count > 1 else {
            self = messages.first ?? ChangeMessage()
            return
        }
        var changes = CoalescedRows()
        for message in messages {
            for change in message.inserted { changes.record(change, as: .inserted) }
            for change in message.updated { changes.record(change, as: .updated) }
            for change in message.deleted { changes.record(change, as: .deleted) }
        }
        for (change, kind) in changes.rows {
            switch kind {
            case .inserted: inserted.append(change)
            case .updated: updated.append(change)
            case .deleted: deleted.append(change)
            }
        }
        sharedIDs = SharedIDs()
    }

    private struct CoalescedRows {
        enum Kind {
            case inserted
            case updated
            case deleted
        }

        /// A row of a coordinator.
        ///
        /// A store keeps its index if it is migrated, but each coordinator numbers its own stores.
        private struct OwnedRow: Hashable {
            let coordinator: ObjectIdentifier
            let name: RowName
        }

        private(set) var rows: [(change: Change, kind: Kind)] = []
        private var positions: [OwnedRow: Int] = [:]

        mutating func record(_ change: Change, as kind: Kind) {
            let row = OwnedRow(coordinator: change.store.owner, name: RowName(change))
            guard let position = positions[row] else {
                positions[row] = rows.count
                return rows.append((change, kind))
            }
            // An update adds nothing to a row that was just inserted or deleted. The later change has the store in
            // which the row is now, if the store was migrated in between.
            var change = change
            change.addRelationships(of: rows[position].change)
            rows[position] = (change, kind == .updated ? rows[position].kind : kind)
        }
    }
}

extension RowName {
    /// Names the row of a change.
    package init(_ change: ChangeMessage.Change) {
        self.init(change.store, root: change.layout.rootNumber, key: change.key)
    }
}
