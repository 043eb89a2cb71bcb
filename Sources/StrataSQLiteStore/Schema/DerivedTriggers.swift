import StrataRows
import StrataSQL

/// The triggers that keep derived attributes up to date, named and worded as those of Apple's framework for counts.
///
/// Each reports the rows that it has changed through two functions. Every program that writes to such a table must have
/// registered these; see ``DerivedTriggers/updateCallback``.
package struct DerivedTriggers {
    /// Called by a trigger that has changed the derived value of another row.
    ///
    /// The arguments are table, entity, key, attribute and value.
    package static let updateCallback = "NSCoreDataDATriggerUpdatedAffectedObjectValue"
    /// Called by a trigger that has filled in a row which was just inserted.
    package static let insertCallback = "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue"

    package private(set) var statements: [String] = []
    /// The names of the triggers, in the order of the statements.
    package private(set) var names: [String] = []
    /// The statements that compute a column for all existing rows.
    package private(set) var computations: [(table: SQLName, column: SQLName, sql: String)] = []
    private let mapping: SQLMapping

    package init(_ mapping: SQLMapping) {
        self.mapping = mapping
        for entity in mapping.entities {
            for slot in entity.layout.ownSlots {
                guard let derivation = slot.traits?.derivation, let column = entity.columns[slot.index].name
                else { continue }
                add(derivation, Target(entity: entity, attribute: slot.name, column: column))
            }
        }
    }

    /// A derived attribute.
    private struct Target {
        let entity: EntityMapping
        let attribute: String
        let column: SQLName
        var table: SQLName { entity.table }
    }

    private mutating func add(_ derivation: Derivation, _ target: Target) {
        switch derivation {
        case .aggregate(let aggregate, let relationship, let attribute):
            guard let slot = target.entity.layout.toMany(named: relationship) else { return }
            switch target.entity.toMany[slot.index] {
            case .key(let key): add(aggregate, of: attribute, over: slot, by: key, to: target)
            case .join(let side) where aggregate == .count: addCount(side, target)
            case .join, .absent: return
            }
        case .copy(let relationship, let attribute): addCopy(over: relationship, of: attribute, to: target)
        case .function(let function, let attribute):
            guard let source = target.entity.column(named: attribute)?.name else { return }
            addSource(
                target,
                "\(mapping.dialect.function(function.predefined))(NEW.\(source))",
                after: source,
                functionName: function.rawValue
            )
        case .now:
            // Every save of a row advances its version.
            addSource(target, "((julianday('now') - 2451910.5) * 86400.0)", after: .version, functionName: "now")
        }
    }

    // MARK: - Counts, sums and the like

    private mutating func add(
        _ aggregate: Derivation.Aggregate,
        of attribute: String?,
        over slot: ToManySlot,
        by key: ToManyMapping.KeyColumn,
        to target: Target
    ) {
        if aggregate == .count { return addCount(key, target) }
        guard let attribute, let members = mapping.entity(modelNumber: slot.destinationNumber),
            let value = members.column(named: attribute)?.name
        else { return }
        let function: String
        switch aggregate {
        case .sum, .count: function = "IFNULL(SUM(\(value)), 0)"
        case .min: function = "MIN(\(value))"
        case .max: function = "MAX(\(value))"
        case .average: function = "AVG(\(value))"
        }
        func recompute(_ owner: String) -> String {
            "\(target.column) = (SELECT \(function) FROM \(key.table) WHERE \(key.column) = \(owner))"
        }
        addMemberTriggers(
            key,
            to: target,
            reading: value,
            whenInserted: recompute("NEW.\(key.column)"),
            whenGained: recompute("NEW.\(key.column)"),
            whenLost: recompute("OLD.\(key.column)")
        )
        addSourceInsert(target, recompute("NEW.Z_PK"))
    }

    private mutating func addCount(_ key: ToManyMapping.KeyColumn, _ target: Target) {
        let (column, count) = (key.column, target.column)
        addMemberTriggers(
            key,
            to: target,
            reading: nil,
            whenInserted: "\(count) = IFNULL(\(count), 0) + 1",
            whenGained: "\(count) = \(count) + 1",
            whenLost: "\(count) = \(count) - 1"
        )
        addSourceInsert(
            target,
            "\(count) = (SELECT IFNULL(COUNT(\(column)), 0) FROM \(key.table) WHERE \(column) = NEW.Z_PK)"
        )
    }

    /// Adds the triggers of members: one is inserted, gets this owner or another value, leaves the owner, or is deleted.
    private mutating func addMemberTriggers(
        _ key: ToManyMapping.KeyColumn,
        to target: Target,
        reading value: SQLName?,
        whenInserted inserted: String,
        whenGained gained: String,
        whenLost lost: String
    ) {
        let column = key.column
        let read = value.map { "\(column), \($0)" } ?? "\(column)"
        for (role, event, row, setting) in [
            ("INSERT", "INSERT", "NEW", inserted),
            ("UPDATE_INCREMENT", "UPDATE OF \(read)", "NEW", gained),
            ("UPDATE_DECREMENT", "UPDATE OF \(column)", "OLD", lost),
            ("DELETE", "DELETE", "OLD", lost),
        ] {
            add(
                to: target,
                firing: key.table,
                role: "PARAMETER_\(role)",
                on: event,
                if: "\(row).\(column) NOT NULL",
                setting: setting,
                ofRow: "\(row).\(column)"
            )
        }
    }

    private mutating func addCount(_ side: ToManyMapping.JoinSide, _ target: Target) {
        func recount(_ owner: String) -> String {
            "\(target.column) = (SELECT IFNULL(COUNT(\(side.owner)), 0) FROM \(side.table) WHERE \(side.owner) = \(owner))"
        }
        add(
            to: target,
            firing: side.table,
            role: "PARAMETER_INSERT",
            on: "INSERT",
            if: nil,
            setting: recount("NEW.\(side.owner)"),
            ofRow: "NEW.\(side.owner)"
        )
        add(
            to: target,
            firing: side.table,
            role: "PARAMETER_DELETE",
            on: "DELETE",
            if: nil,
            setting: recount("OLD.\(side.owner)"),
            ofRow: "OLD.\(side.owner)"
        )
        addSourceInsert(target, recount("NEW.Z_PK"))
    }

    // MARK: - Copies and functions

    private mutating func addCopy(over relationship: String, of attribute: String, to target: Target) {
        guard let slot = target.entity.layout.slot(named: relationship), slot.kind == .reference,
            let key = target.entity.columns[slot.index].name,
            let destination = mapping.entity(modelNumber: slot.destinationNumber),
            let value = destination.column(named: attribute)?.name
        else { return }
        let copy = "\(target.column) = (SELECT \(value) FROM \(destination.table) WHERE Z_PK = NEW.\(key))"
        add(
            to: target,
            firing: destination.table,
            role: "PARAMETER_INSERT",
            on: "INSERT",
            if: nil,
            setting: "\(target.column) = NEW.\(value)",
            ofRow: "NEW.Z_PK",
            matching: key
        )
        add(
            to: target,
            firing: destination.table,
            role: "PARAMETER_UPDATE",
            on: "UPDATE OF \(value)",
            if: nil,
            setting: "\(target.column) = NEW.\(value)",
            ofRow: "NEW.Z_PK",
            matching: key
        )
        addSourceInsert(target, copy)
        add(
            to: target,
            firing: target.table,
            role: "SOURCE_UPDATE",
            on: "UPDATE OF \(key)",
            if: ownRows(target),
            setting: copy,
            ofRow: "NEW.Z_PK"
        )
    }

    private mutating func addSource(_ target: Target, _ value: String, after column: SQLName, functionName: String) {
        addSourceInsert(target, "\(target.column) = \(value)")
        add(
            to: target,
            firing: target.table,
            role: "SOURCE_UPDATE",
            on: "UPDATE OF \(column)",
            if: ownRows(target),
            setting: "\(target.column) = \(value)",
            ofRow: "NEW.Z_PK"
        )
    }

    /// The condition that a row is of the entity, if others share its table.
    private func ownRows(_ target: Target) -> String? {
        guard target.entity.number != target.entity.rootNumber else { return nil }
        return "NEW.Z_ENT IN (\(target.entity.subtree.map(String.init).joined(separator: ", ")))"
    }

    // MARK: - Text

    private mutating func addSourceInsert(_ target: Target, _ assignment: String) {
        // The words are the same as in the trigger: each row is the new one.
        let condition = ownRows(target).map { " WHERE \($0)" } ?? ""
        computations.append(
            (target.table, target.column, "UPDATE \(target.table) AS NEW SET \(assignment)\(condition)")
        )
        add(
            to: target,
            firing: target.table,
            role: "SOURCE_INSERT",
            on: "INSERT",
            if: ownRows(target),
            setting: assignment,
            ofRow: "NEW.Z_PK",
            callback: Self.insertCallback
        )
    }

    private mutating func add(
        to target: Target,
        firing: SQLName,
        role: String,
        on event: String,
        if condition: String?,
        setting assignment: String,
        ofRow row: String,
        matching column: SQLName = .key,
        callback: String = updateCallback
    ) {
        let table = target.table
        let name = SQLName("Z_DA_\(firing.raw)_\(target.entity.layout.name)_\(target.attribute)_\(role)")
        let when = condition.map { "WHEN (\($0)) " } ?? ""
        let report =
            "SELECT \(callback)('\(table.raw)', Z_ENT, Z_PK, '\(target.attribute)', \(target.column)) FROM \(table) WHERE \(column) = \(row)"
        names.append(name.raw)
        statements.append(
            "CREATE TRIGGER \(name) AFTER \(event) ON \(firing) FOR EACH ROW \(when)"
                + "BEGIN UPDATE \(table) SET \(assignment) WHERE \(column) = \(row); \(report); END"
        )
    }
}
