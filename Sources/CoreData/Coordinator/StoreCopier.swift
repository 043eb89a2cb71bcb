import Foundation
import StrataRows
import StrataSQLiteStore

/// Copies all rows and relationships of one store into another, empty one.
///
/// Keys are given anew.
struct StoreCopier {
    private let model: FrozenModel
    private let source: OpenStore
    private let target: OpenStore

    init(model: FrozenModel, from source: OpenStore, to target: OpenStore) {
        self.model = model
        self.source = source
        self.target = target
    }

    /// The plan for all rows of one hierarchy.
    private func plan(_ root: EntityLayout) -> FetchPlan {
        FetchPlan(
            layout: root,
            entityNumbers: Array(root.subtree),
            coversHierarchy: true,
            predicate: nil,
            sort: nil,
            limit: 0,
            offset: 0
        )
    }

    /// The roots of the hierarchies that the stores hold, or hold a part of.
    private var roots: [EntityLayout] {
        // A configuration may hold a sub-entity without its super-entities.
        Set(source.entityNumbers.map { model.rootNumbers[$0 - 1] }).sorted().map { model.layouts[$0 - 1] }
    }

    /// Refuses to mix the objects of two stores.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the target has any.
    func requireEmptyTarget() throws {
        guard try roots.contains(where: { try target.rows.count(for: plan($0)) > 0 }) else { return }
        throw CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store cannot be migrated to \(target.store.url?.placeName ?? ""): there is a store with objects already. Destroy it first, or name another place."
            ]
        )
    }

    /// Gives the target what an application has put into the source's metadata.
    func copyMetadata() throws {
        var metadata = source.store.metadata ?? [:]
        for key in target.store.metadata.keys { metadata[key] = nil }
        // The copy's keys, and its history if it has one, are its own.
        metadata[StoreMetadata.historyBaselineKey] = nil
        guard !metadata.isEmpty else { return }
        target.store.metadata = target.store.metadata.merging(metadata) { own, _ in own }
        try target.store.saveMetadata()
    }

    /// Copies in one transaction of the target.
    ///
    /// - Returns: The rows of the target.
    /// - Throws: Errors of either store, and `persistentStoreOperation` (134070) if the target refuses a row.
    func copy() throws -> [ChangeMessage.Change] {
        var changes = StoreChanges()
        var temporary: [Int: KeyMap<Int64>] = [:]
        var owners: [(old: ObjectReference, new: ObjectReference, layout: EntityLayout)] = []
        for root in roots {
            var keys = KeyMap<Int64>()
            for row in try source.rows.rows(for: plan(root)) {
                let copy = row.copy()
                copy.setKey(TemporaryIDs.nextKey())
                copy.setVersion(0)
                keys.set(copy.key, for: row.key)
                owners.append(
                    (
                        ObjectReference(key: row.key, entity: row.layout.number),
                        ObjectReference(key: copy.key, entity: row.layout.number), row.layout
                    )
                )
                changes.inserted.append(copy)
            }
            temporary[root.number] = keys
        }
        func mapped(_ reference: ObjectReference) -> ObjectReference? {
            let root = model.layouts[reference.entity - 1].rootNumber
            return temporary[root]?[reference.key].map { ObjectReference(key: $0, entity: reference.entity) }
        }
        for row in changes.inserted {
            for slot in row.layout.referenceSlots {
                guard let reference = row.reference(slot) else { continue }
                row.setReference(mapped(reference), slot)
            }
        }
        for owner in owners {
            for slot in owner.layout.toMany where !slot.isTransient {
                let inverse = slot.inverse
                let tellsMembership = inverse == nil || (inverse?.isToMany == true && slot.relationship.isCanonical)
                guard tellsMembership || slot.isOrdered else { continue }
                let members = try source.rows.members(of: slot, ownedBy: owner.old).compactMap(mapped)
                guard !members.isEmpty else { continue }
                changes.toMany.append(
                    ToManyChange(
                        relationship: slot,
                        owner: owner.new,
                        added: tellsMembership ? members : [],
                        removed: [],
                        order: slot.isOrdered ? members : nil
                    )
                )
            }
        }
        let conflicts = try target.rows.save(changes) { changes.settle($0) }
        guard conflicts.isEmpty else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(conflicts.count) rows could not be copied, since they break uniqueness constraints."
                ]
            ).marked(.data)
        }
        return changes.inserted.map { ChangeMessage.Change(key: $0.key, layout: $0.layout, store: target) }
    }
}
