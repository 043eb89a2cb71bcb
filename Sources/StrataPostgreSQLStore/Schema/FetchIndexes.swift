import Foundation
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// The indexes that a model asks for, in the form for PostgreSQL.
///
/// A missing index costs only speed. So an index is left out if SQL cannot express it: an index of an expression that
/// is evaluated in the process, or a condition of an index with some rows only.
struct FetchIndexes {
    /// The part after the name in a statement that makes an index.
    struct Definition {
        let name: String
        /// The access method, the columns, and the condition for the rows.
        let text: String
        /// The columns; `nil` if the index has anything else.
        let columns: [SQLName]?
        /// Whether it contains only some rows.
        var isPartial = false
    }

    private let entity: EntityMapping
    private let mapping: SQLMapping

    init(_ entity: EntityMapping, _ mapping: SQLMapping) {
        self.entity = entity
        self.mapping = mapping
    }

    /// The indexes of an entity, with those of the folded texts that it declares.
    var definitions: [Definition] { folded + entity.layout.indexes.filter { !$0.isTwin }.compactMap(definition) }

    private var folded: [Definition] {
        entity.layout.ownSlots.flatMap { slot in
            entity.columns[slot.index].folded.map {
                Definition(
                    name: "\(entity.table.raw)_\($0.name.raw)_index",
                    text: "(\($0.name) NULLS FIRST)",
                    columns: [$0.name]
                )
            }
        }
    }

    private func definition(_ index: IndexDefinition) -> Definition? {
        let start = mapping.stored(PostgreSQLName.folded(entity.layout.name))
        let name = "\(start)_\(PostgreSQLName.folded(index.name))_index"
        let condition = index.predicate.flatMap(condition).map { " WHERE \($0)" } ?? ""
        let isPartial = !condition.isEmpty
        if let box = BoxIndex(index, entity) {
            let text = "USING gist (\(box.expression(nil)))\(condition)"
            return Definition(name: name, text: text, columns: nil, isPartial: isPartial)
        }
        let found = index.columns.compactMap { column -> [String]? in
            let texts = column.expression.map { expression($0).map { [$0] } } ?? self.columns(column.name)
            return texts?.map { "\($0) \(column.isAscending ? "NULLS FIRST" : "DESC NULLS LAST")" }
        }
        guard !found.isEmpty, found.count == index.columns.count else { return nil }
        let columns = found.flatMap(\.self)
        let plain = index.columns.flatMap { column in
            column.expression == nil ? entity.columns(named: column.name) ?? [] : []
        }
        let isPlain = zip(columns, plain).allSatisfy { $0.hasPrefix("\($1) ") } && plain.count == columns.count
        return Definition(
            name: name,
            text: "(\(columns.joined(separator: ", ")))\(condition)",
            columns: isPlain ? plain : nil,
            isPartial: isPartial
        )
    }

    /// The columns of a property, in the form that conditions compare; `nil` for bytes, which may be too long for an index.
    private func columns(_ name: String) -> [String]? {
        let slots = entity.layout.slots(named: name)
        let columns = slots.compactMap(column)
        return columns.isEmpty || columns.count < slots.count ? nil : columns
    }

    private func column(_ slot: Slot) -> String? {
        guard slot.kind != .data else { return nil }
        guard let name = entity.columns[slot.index].name?.description else { return nil }
        return switch slot.type {
        case .boolean: "(\(mapping.dialect.forms.attribute(name, .bool)))"
        case .decimal: "(\(mapping.dialect.forms.attribute(name, .decimal)))"
        default: name
        }
    }

    // MARK: - Expressions and conditions

    /// An expression in SQL, if PostgreSQL computes it as the process does.
    private func expression(_ text: String) -> String? {
        // An expression alone is no predicate, so it is compared with nil.
        guard let resolved = resolved("(\(text)) == nil"), case .isNull(let expression) = resolved.condition,
            SQLReach(mapping).says(resolved.condition, [entity.layout])
        else { return nil }
        switch expression {
        case .attribute, .function: break
        case .constant, .object, .aggregate, .conditional, .rowAggregate: return nil
        }
        return sql { try $0.write(expression, for: .comparison) }.map { "(\($0))" }
    }

    /// The condition for the rows of an index, if PostgreSQL can evaluate it from a row alone.
    private func condition(_ text: String) -> String? {
        guard let resolved = resolved(text) else { return nil }
        let condition = FoldedText.rewritten(resolved, of: entity.layout, in: mapping).condition.withoutSets
        guard let condition, SQLReach(mapping).saysAll(condition, [entity.layout]) else { return nil }
        return sql { try $0.writeWhole(condition) }
    }

    private func resolved(_ text: String) -> ResolvedPredicate? {
        guard let predicate = try? NSPredicate(validating: text),
            let resolved = try? PredicateResolver.resolve(predicate, schema: entity.layout), resolved.variableCount <= 1
        else { return nil }
        return resolved
    }

    /// The SQL of the compiler, with only columns of the row, and with literals instead of parameters, which an index
    /// cannot have.
    private func sql(_ body: (inout QueryCompiler) throws -> Void) -> String? {
        var compiler = QueryCompiler(mapping, storeNumber: 0, entity: entity, variableCount: 1)
        guard (try? body(&compiler)) != nil, compiler.joins.isEmpty else { return nil }
        let literals = compiler.bindings.map { SQLLiteral.text(PostgreSQLValue($0)) }
        return SQLLiteral.inlining(literals, in: compiler.takeText(), droppingAlias: "t0.")
    }
}

extension ResolvedCondition {
    /// The condition with each set of values as a choice between comparisons; `nil` if a set is large, or if the
    /// condition concerns other rows.
    fileprivate var withoutSets: ResolvedCondition? {
        switch self {
        case .constant, .isNull, .comparison, .between, .string: return self
        case .exists: return nil
        case .and(let operands): return Self.list(operands).map { .and($0) }
        case .or(let operands): return Self.list(operands).map { .or($0) }
        case .not(let operand): return operand.withoutSets.map { .not($0) }
        case .member(let operand, let set):
            guard set.members.count <= 50, set.folding.isEmpty else { return nil }
            let choices = set.members.map { member -> ResolvedCondition in
                .comparison(ResolvedComparison(left: operand, operator: .equal, right: .constant(member), folding: []))
            }
            return .or(choices + (set.containsNull ? [.isNull(operand)] : []))
        }
    }

    private static func list(_ operands: [ResolvedCondition]) -> [ResolvedCondition]? {
        let parts = operands.compactMap(\.withoutSets)
        return parts.count == operands.count ? parts : nil
    }
}
