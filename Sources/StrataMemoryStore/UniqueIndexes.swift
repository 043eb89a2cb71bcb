import Foundation
import StrataRows

/// The uniqueness constraints of a model, each with an index over the rows of its hierarchy that have the attributes.
///
/// They work as the unique indexes of a table do. This is a value, like the contents that it belongs to.
package struct UniqueIndexes: Sendable {
    /// One constraint.
    private struct Constraint: Sendable {
        unowned(unsafe) let layout: EntityLayout
        let attributes: [String]
        let slots: [Slot]
    }

    private let constraints: [Constraint]
    /// The positions of the constraints that apply to an entity, by its number.
    private let byEntity: [[Int]]
    /// For each constraint: the keys of the rows, by the hash of their values.
    private var holders: [PersistentMap<[Int64]>]

    /// Empty indexes for the constraints of a model.
    package init(_ schema: Schema?) {
        var constraints: [Constraint] = []
        var byEntity: [[Int]] = Array(repeating: [], count: (schema?.entities.count ?? 0) + 1)
        for entity in schema?.entities ?? [] {
            for constraint in entity.uniquenessConstraints {
                let slots = constraint.slots
                for number in entity.root.subtree
                where schema?.entities[number - 1].shares(slots) == true { byEntity[number].append(constraints.count) }
                constraints.append(Constraint(layout: entity, attributes: constraint.properties, slots: slots))
            }
        }
        self.constraints = constraints
        self.byEntity = byEntity
        holders = Array(repeating: PersistentMap(), count: constraints.count)
    }

    /// Whether an entity has constraints.
    package func cover(_ layout: EntityLayout) -> Bool { !byEntity[layout.number].isEmpty }

    package mutating func insert(_ row: Row, _ key: Int64) {
        for index in byEntity[row.layout.number] {
            guard let hash = hash(row, constraints[index]) else { continue }
            holders[index].set((holders[index][hash] ?? []) + [key], for: hash)
        }
    }

    package mutating func remove(_ row: Row, _ key: Int64) {
        for index in byEntity[row.layout.number] {
            guard let hash = hash(row, constraints[index]), let keys = holders[index][hash] else { continue }
            let rest = keys.filter { $0 != key }
            holders[index][hash] = rest.isEmpty ? nil : rest
        }
    }

    /// The groups of rows with equal values that a save has made.
    ///
    /// - Parameters:
    ///   - rows: All rows of one hierarchy, with the rows of the save.
    ///   - saved: The keys of the save's rows of that hierarchy, each with the key that it had when it was handed over.
    /// - Returns: A conflict for each group.
    package func conflicts(in rows: PersistentMap<Row>, _ saved: [Int64: Int64]) -> [StoreConflict] {
        var conflicts: [StoreConflict] = []
        for (index, constraint) in constraints.enumerated() {
            var seen: Set<Int64> = []
            for key in saved.keys.sorted() where !seen.contains(key) {
                guard let row = rows[key], byEntity[row.layout.number].contains(index), let hash = hash(row, constraint)
                else { continue }
                let same = (holders[index][hash] ?? []).filter { other in
                    rows[other].map { hasSameValues($0, as: row, in: constraint) } ?? false
                }
                guard same.count > 1 else { continue }
                seen.formUnion(same)
                let own = same.filter { saved[$0] != nil }.sorted()
                let stored = same.first { saved[$0] == nil }
                conflicts.append(
                    .constraint(
                        entity: constraint.layout,
                        attributes: constraint.attributes,
                        keys: own.compactMap { saved[$0] },
                        persisted: stored.flatMap { rows[$0] }
                    )
                )
            }
        }
        return conflicts
    }

    /// For each constraint that a new row would break: its attributes, and the row that has the values.
    package func holders(of row: Row, in rows: PersistentMap<Row>) -> [(attributes: [String], holder: Row)] {
        byEntity[row.layout.number].compactMap { index in
            let constraint = constraints[index]
            guard let hash = hash(row, constraint) else { return nil }
            let same = (holders[index][hash] ?? []).lazy.compactMap { rows[$0] }
                .first { hasSameValues($0, as: row, in: constraint) }
            return same.map { (constraint.attributes, $0) }
        }
    }

    // MARK: - Values

    /// The hash of the constrained values; `nil` if one of them is null, because nulls are never equal.
    ///
    /// NaN counts as null, as in a table.
    private func hash(_ row: Row, _ constraint: Constraint) -> Int64? {
        var hasher = Hasher()
        for slot in constraint.slots {
            guard !row.isNull(slot.index) else { return nil }
            switch slot.kind {
            case .int: hasher.combine(row.int(slot.word))
            // A reference may still lead to a temporary key, so the hash leaves it out.
            case .reference: break
            case .double:
                let number = row.double(slot.word)
                guard !number.isNaN else { return nil }
                hasher.combine(number)
            case .string: hasher.combine(row.string(slot.word))
            case .data: hasher.combine(row.data(slot.word))
            case .uuid: hasher.combine(row.uuid(slot.word))
            case .decimal: hasher.combine(row.decimal(slot.word))
            }
        }
        return Int64(hasher.finalize())
    }

    private func hasSameValues(_ left: Row, as right: Row, in constraint: Constraint) -> Bool {
        constraint.slots.allSatisfy { left.hasSameValue(as: right, in: $0) }
    }
}
