import Foundation
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// A column that a statement writes, and the number of its parameter.
///
/// It contains no references, because it is copied for each value.
struct WriteColumn: Sendable {
    let slot: Int
    let word: Int
    let kind: SlotKind
    let parameter: Int
    /// The parameter for the number of the concrete destination, or 0.
    let entityParameter: Int
    let isTagged: Bool
}

/// A statement that writes rows of one entity.
///
/// Derived attributes are not among its columns: triggers fill them.
struct WriteShape: Sendable {
    let sql: SQL
    let columns: [WriteColumn]
    let keyParameter: Int
    let versionParameter: Int
    /// For an update: the parameter for the version that the row must have.
    let baseParameter: Int
    /// Slots whose relationship has an ordered inverse.
    ///
    /// A new member of it needs a position.
    let orderedColumns: [Slot]
}

/// The statements that write rows, by entity and by the slots that change.
final class WriteShapes: Sendable {
    private struct UpdateKey: Hashable {
        let entity: Int
        let changed: SlotSet
    }

    private let inserts: [WriteShape]
    private let updates = Locked<[UpdateKey: WriteShape]>([:])

    init(_ mapping: SQLMapping) {
        inserts = mapping.entities.map(Self.insert)
    }

    func insert(_ entity: EntityMapping) -> WriteShape { inserts[entity.number - 1] }

    /// The statement for an update of these slots, and of the version.
    func update(_ entity: EntityMapping, _ changed: SlotSet) -> WriteShape {
        let key = UpdateKey(entity: entity.number, changed: changed)
        return updates.withLock { updates in
            if let known = updates[key] { return known }
            if updates.count >= WorkSize.updateStatements { updates.removeAll() }
            let shape = Self.update(entity, changed)
            updates[key] = shape
            return shape
        }
    }

    private static func insert(_ entity: EntityMapping) -> WriteShape {
        var names = ["Z_PK", "Z_ENT", "Z_OPT"]
        let columns = writable(entity, names: &names) { _ in true }
        let marks = ["?", "\(entity.number)"] + Array(repeating: "?", count: names.count - 2)
        // The entity's number is a constant in the statement, so parameters after the key are one lower than columns.
        return WriteShape(
            sql: SQL(
                "INSERT INTO \(entity.table) (\(names.joined(separator: ", "))) VALUES (\(marks.joined(separator: ", ")))"
            ),
            columns: columns.map { $0.shifted(by: -1) },
            keyParameter: 1,
            versionParameter: 2,
            baseParameter: 0,
            orderedColumns: orderedColumns(entity, columns)
        )
    }

    private static func update(_ entity: EntityMapping, _ changed: SlotSet) -> WriteShape {
        var names: [String] = []
        let columns = writable(entity, names: &names) { changed.contains($0) }
        let ordered = orderedColumns(entity, columns)
        var assignments = names.map { "\($0) = ?" }
        // A member that leaves an ordered relationship loses its position. In the next one it gets another.
        assignments += ordered.compactMap { slot in entity.columns[slot.index].order.map { "\($0) = NULL" } }
        let count = names.count
        assignments.append("Z_OPT = ?")
        return WriteShape(
            sql: SQL(
                "UPDATE \(entity.table) SET \(assignments.joined(separator: ", ")) WHERE Z_PK = ? AND Z_OPT = ?"
            ),
            columns: columns,
            keyParameter: count + 2,
            versionParameter: count + 1,
            baseParameter: count + 3,
            orderedColumns: ordered
        )
    }

    /// The columns to write, numbered after those in `names`, to which they are added.
    private static func writable(
        _ entity: EntityMapping,
        names: inout [String],
        _ isIncluded: (Int) -> Bool
    ) -> [WriteColumn] {
        var columns: [WriteColumn] = []
        for slot in entity.layout.slots where isIncluded(slot.index) {
            let column = entity.columns[slot.index]
            guard let name = column.name, !column.isDerived else { continue }
            names.append("\(name)")
            let parameter = names.count
            var entityParameter = 0
            if let name = column.entity {
                names.append("\(name)")
                entityParameter = names.count
            }
            columns.append(
                WriteColumn(
                    slot: slot.index,
                    word: slot.word,
                    kind: slot.kind,
                    parameter: parameter,
                    entityParameter: entityParameter,
                    isTagged: column.isTagged
                )
            )
        }
        return columns
    }

    private static func orderedColumns(_ entity: EntityMapping, _ columns: [WriteColumn]) -> [Slot] {
        columns.map { entity.layout.slots[$0.slot] }.filter { entity.columns[$0.index].order != nil }
    }
}

extension WriteColumn {
    fileprivate func shifted(by count: Int) -> WriteColumn {
        WriteColumn(
            slot: slot,
            word: word,
            kind: kind,
            parameter: parameter + count,
            entityParameter: entityParameter == 0 ? 0 : entityParameter + count,
            isTagged: isTagged
        )
    }
}
