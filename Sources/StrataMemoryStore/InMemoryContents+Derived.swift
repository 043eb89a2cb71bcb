import Foundation
import StrataPredicates
import StrataRows

/// Rows of an in-memory store whose derived attributes may be out of date, by root entity and key.
package struct OutdatedRows: Sendable {
    /// For each row, whether the row itself was written; otherwise only rows that it leads to have changed.
    package private(set) var keys: [Int: [Int64: Bool]] = [:]

    package mutating func add(_ key: Int64, root: Int, isWritten: Bool = false) {
        if isWritten {
            keys[root, default: [:]][key] = true
        } else if keys[root]?[key] == nil {
            keys[root, default: [:]][key] = false
        }
    }
}

extension InMemoryContents {
    /// The most rounds of derivation: a derived attribute may be derived from another derived attribute.
    private static let deepestDerivation = 1000

    /// Brings the derived attributes up to date after changes.
    ///
    /// The rows that were handed over are not changed. If a value differs, then a copy replaces the row; it has the
    /// keys and the version that the save will set.
    ///
    /// - Parameters:
    ///   - permanent: The permanent keys of new rows, by their temporary keys.
    ///   - versions: The versions that the handed over rows will have, by root entity and key.
    ///   - keepsTimes: Whether the rows are copies, which keep the times of their last saves.
    /// - Returns: The rows that differ from the stored rows or from the rows that were handed over.
    package mutating func updateDerived(
        _ permanent: PermanentKeys = PermanentKeys(),
        versions: [Int: [Int64: Int64]] = [:],
        keepsTimes: Bool = false
    ) -> [Row] {
        guard let derived else { return [] }
        var changed: [Int: [Int64: Row]] = [:]
        var round = 0
        while !outdated.keys.isEmpty, round < Self.deepestDerivation {
            round += 1
            let keys = outdated.keys
            outdated = OutdatedRows()
            for (root, keys) in keys {
                for (key, isWritten) in keys {
                    guard let row = rows[root]?[key] else { continue }
                    let attributes = derived.attributes[row.layout.number]
                    guard !attributes.isEmpty else { continue }
                    let next = row.copy()
                    for attribute in attributes {
                        if case .now? = attribute.source, !isWritten || keepsTimes { continue }
                        next.setDerived(
                            value(of: attribute.source, in: row, key: key, permanent: permanent),
                            attribute.slot
                        )
                    }
                    guard !attributes.allSatisfy({ next.hasSameValue(as: row, in: $0.slot) }) else { continue }
                    next.setStored(key: key, version: versions[root]?[key], permanent: permanent)
                    enter(next, key: key, permanent: permanent)
                    // Attributes that are derived from a derived attribute are updated in the next round.
                    outdated.add(key, root: root)
                    changed[root, default: [:]][key] = next
                }
            }
        }
        return changed.values.flatMap(\.values)
    }

    private func value(
        of source: DerivedSource?,
        in row: Row,
        key: Int64,
        permanent: PermanentKeys
    ) -> PredicateValue {
        switch source {
        case nil: return .null
        case .now?: return .date(Date().timeIntervalSinceReferenceDate)
        case .function(let function, let slot)?: return function.apply([row.predicateValue(slot)])
        case .copy(let slot, let name)?:
            guard let target = row.reference(slot), let relationship = slot.relationship else { return .null }
            let root = RelationshipKey(relationship).destinationRoot
            return rows[root]?[permanent[target.key] ?? target.key]?.predicateValue(named: name) ?? .null
        case .count(let slot)?: return .int(Int64(memberCount(of: slot.relationship, ownedBy: key)))
        case .aggregate(let function, let slot, let name)?:
            let root = RelationshipKey(slot.relationship).destinationRoot
            let values = members(of: slot, ownedBy: key)
                .compactMap { rows[root]?[$0.key]?.predicateValue(named: name) }
                .filter { !$0.isNull }
            // As in SQL, an empty list has a sum, but no average.
            return values.isEmpty && function != .sum ? .null : function.aggregate(values)
        }
    }

    // MARK: - What a change makes out of date

    /// Notes the rows whose derived attributes become out of date when a row is entered or removed.
    package mutating func outdateDependants(of old: Row?, new: Row?, key: Int64, permanent: PermanentKeys) {
        guard let derived, let layout = (new ?? old)?.layout else { return }
        func differs(_ attribute: Slot?) -> Bool {
            guard let attribute else { return false }
            guard let old, let new else { return true }
            return !old.hasSameValue(as: new, in: attribute)
        }
        for (slot, dependants) in derived.owners[layout.number] {
            func owner(_ row: Row?) -> Int64? { row?.reference(slot).map { permanent[$0.key] ?? $0.key } }
            let (former, present) = (owner(old), owner(new))
            guard former != present || differs(dependants.attribute) else { continue }
            for owner in Set([former, present]) { owner.map { outdated.add($0, root: dependants.root) } }
        }
        for dependants in derived.looseOwners[layout.number] where differs(dependants.attribute) {
            if let owner = owner(of: key, in: dependants.relationship) { outdated.add(owner, root: dependants.root) }
        }
        // Rows that point at a new row are written together with it, and no row may point at a deleted one.
        guard old != nil, new != nil else { return }
        for dependants in derived.copies[layout.number] where differs(dependants.attribute) {
            pointing[dependants.relationship]?[key]?.sortedKeys.forEach { outdated.add($0, root: dependants.root) }
        }
    }
}

extension Row {
    /// Sets the key, the version and the references that the save will set in the row that was handed over.
    package func setStored(key: Int64, version: Int64?, permanent: PermanentKeys) {
        setKey(key)
        if let version { setVersion(version) }
        setStamp(CoarseClock.now)
        for slot in layout.referenceSlots {
            guard let reference = reference(slot), let key = permanent[reference.key] else { continue }
            setReference(ObjectReference(key: key, entity: reference.entity), slot)
        }
    }
}

extension StoreChanges {
    /// The versions that the written rows will have, by root entity and key.
    package func versions(_ result: StoreSaveResult) -> [Int: [Int64: Int64]] {
        var versions: [Int: [Int64: Int64]] = [:]
        for (row, key) in zip(inserted, result.insertedKeys) {
            versions[row.layout.rootNumber, default: [:]][key] = row.version + 1
        }
        for update in updated {
            versions[update.row.layout.rootNumber, default: [:]][update.row.key] = update.baseVersion + 1
        }
        return versions
    }
}

extension StoreSaveResult {
    /// Adds rows.
    ///
    /// A row replaces an earlier one with the same key.
    package mutating func replaceReread(_ rows: [Row]) {
        guard !rows.isEmpty else { return }
        let keys = Dictionary(grouping: rows, by: \.layout.rootNumber).mapValues { Set($0.map(\.key)) }
        reread.removeAll { keys[$0.layout.rootNumber]?.contains($0.key) == true }
        reread += rows
    }
}
