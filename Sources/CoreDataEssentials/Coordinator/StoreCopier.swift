import Foundation
import StrataRows

/// Copies all rows and relationships of one store into another, empty one.
///
/// Rows keep their keys and versions, so that contexts keep their objects, and saves find the same conflicts.
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

    /// The roots of the hierarchies that the stores hold completely or in part.
    private var roots: [EntityLayout] {
        // A configuration may hold a sub-entity without its super-entities.
        Set(source.entityNumbers.map { model.rootNumbers[$0 - 1] }).sorted().map { model.layouts[$0 - 1] }
    }

    /// Refuses to mix the objects of two stores.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the target has any objects.
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

    /// Copies the keys that an application has added to the source's metadata into the target.
    func copyMetadata() throws {
        var metadata = (source.store as? any EngineStore)?.copiedMetadata ?? source.store.metadata ?? [:]
        // Some keys, and the history if there is one, belong to the copy.
        for key in target.store.metadata.keys { metadata[key] = nil }
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
        /// The keys in the target, by those in the source, by the number of the root entity.
        var copied: [Int: KeyMap<Int64>] = [:]
        var owners: [(old: ObjectReference, new: ObjectReference, layout: EntityLayout)] = []
        let roots = roots
        // Keys that were given but have no row belong to objects that are not saved yet, or were deleted.
        var lastKeys = try source.rows.lastKeys(roots.map(\.number))
        for root in roots {
            var keys = KeyMap<Int64>()
            for row in try source.rows.rows(for: plan(root)) {
                let copy = row.copy()
                // Only a damaged file has other keys; elsewhere such keys mean unsaved objects.
                if row.key <= 0 { copy.setKey(TemporaryIDs.nextKey()) }
                // The target writes the next version. Below 0 a damaged file may have any version.
                copy.setVersion(max(row.version, 0) - 1)
                keys.set(copy.key, for: row.key)
                lastKeys[root.number] = max(lastKeys[root.number] ?? 0, row.key)
                owners.append(
                    (
                        ObjectReference(key: row.key, entity: row.layout.number),
                        ObjectReference(key: copy.key, entity: row.layout.number), row.layout
                    )
                )
                changes.inserted.append(copy)
            }
            copied[root.number] = keys
        }
        func mapped(_ reference: ObjectReference) -> ObjectReference? {
            let root = model.layouts[reference.entity - 1].rootNumber
            return copied[root]?[reference.key].map { ObjectReference(key: $0, entity: reference.entity) }
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
        changes.keptKeys = lastKeys
        // This comes after all reads, because these may have discovered a restoration.
        try (target.store as? any EngineStore)?.continueVersions(of: source.store)
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
        // The target's metadata says where its history begins.
        (target.store as? any EngineStore)?.copyMetadataFromEngine()
        return changes.inserted.map { ChangeMessage.Change(key: $0.key, layout: $0.layout, store: target) }
    }
}
