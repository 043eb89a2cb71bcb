import StrataPredicates
import StrataRows

/// The content of a column after a migration: an expression over the former row.
package struct MigratedValue: Hashable, Sendable {
    /// A value of the new model in the expression.
    package struct Constant: Hashable, Sendable {
        package let binding: SQLBinding
        /// The attribute type of the value.
        package let type: AttributeType
    }

    /// A part of the expression.
    private enum Part: Hashable {
        case sql(String)
        /// A column of the former row, whose type may be another one.
        case column(SQLName)
        case constant(Constant)
    }

    private let parts: [Part]
    /// The column that the value is made of, if it is a single one that has no other use.
    package let base: SQLName?
    /// Whether the value is that column, unchanged.
    package let isPlain: Bool
    /// Whether the expression reads other rows.
    package let readsOthers: Bool
    /// Whether the value is NULL if its base is.
    let isStrict: Bool

    private init(
        _ parts: [Part],
        base: SQLName? = nil,
        isPlain: Bool = false,
        readsOthers: Bool = false,
        isStrict: Bool = false
    ) {
        self.parts = parts
        self.base = base
        self.isPlain = isPlain
        self.readsOthers = readsOthers
        self.isStrict = isStrict
    }

    static let null = MigratedValue([.sql("NULL")])

    package var isNull: Bool { self == .null }

    /// The constants of its parameters, in their order.
    package var constants: [Constant] {
        parts.compactMap { part in
            guard case .constant(let constant) = part else { return nil }
            return constant
        }
    }

    /// The value, if it is the same for all rows and not NULL.
    package var constant: Constant? { parts.count == 1 ? constants.first : nil }

    /// The expression.
    ///
    /// In a subquery the row is called `t`, and a parameter is a question mark.
    package var text: String { text { _ in "?" } }

    /// The values of the parameters.
    package var bindings: [SQLBinding] { constants.map(\.binding) }

    /// The expression, with the texts of parameters from `parameter`, and those of columns from `column`.
    package func text(
        column: (SQLName) -> String = { $0.description },
        _ parameter: (Constant) -> String
    ) -> String {
        parts.map { part in
            switch part {
            case .sql(let text): text
            case .column(let name): column(name)
            case .constant(let constant): parameter(constant)
            }
        }.joined()
    }

    /// The value of a column, unchanged.
    static func column(_ name: SQLName) -> MigratedValue {
        MigratedValue([.column(name)], base: name, isPlain: true, isStrict: true)
    }

    /// A value that is the same for all rows.
    static func constant(_ value: SQLBinding, _ type: AttributeType) -> MigratedValue {
        if case .null = value { return .null }
        return MigratedValue([.constant(Constant(binding: value, type: type))])
    }

    /// The value of a column, or another value if the column is NULL.
    static func column(_ name: SQLName, orElse value: SQLBinding, _ type: AttributeType) -> MigratedValue {
        if case .null = value { return column(name) }
        return MigratedValue(
            [
                .sql("COALESCE("), .column(name), .sql(", "), .constant(Constant(binding: value, type: type)),
                .sql(")"),
            ],
            base: name
        )
    }

    /// A value for the rows in which at least one of several columns is not NULL.
    static func constant(_ value: SQLBinding, ifAny known: [SQLName], _ type: AttributeType) -> MigratedValue {
        if case .null = value { return .null }
        let constant = Part.constant(Constant(binding: value, type: type))
        return MigratedValue([.sql("CASE WHEN \(hasAny(known)) THEN "), constant, .sql(" END")])
    }

    /// The value of a column, or a value if it is NULL; and another value in rows in which several columns are NULL.
    ///
    /// - Parameters:
    ///   - name: The column.
    ///   - value: The value in place of NULL; `nil` for none.
    ///   - known: The columns, one of which is the column itself.
    ///   - missing: The value for rows in which all of them are NULL.
    ///   - type: The type of the attribute.
    /// - Returns: The expression.
    static func column(
        _ name: SQLName,
        orElse value: SQLBinding?,
        ifAny known: [SQLName],
        missing: SQLBinding,
        _ type: AttributeType
    ) -> MigratedValue {
        let present = value.map { Self.column(name, orElse: $0, type) } ?? Self.column(name)
        let absent = Self.constant(missing, type)
        if present.isPlain, absent.isNull { return present }
        var parts: [Part] = [.sql("CASE WHEN \(hasAny(known)) THEN ")]
        parts += present.parts
        parts.append(.sql(" ELSE "))
        parts += absent.parts
        parts.append(.sql(" END"))
        return MigratedValue(parts, base: name)
    }

    /// The condition that at least one of several columns is not NULL.
    static func hasAny(_ names: [SQLName]) -> String {
        "(" + names.map { "\($0) IS NOT NULL" }.joined(separator: " OR ") + ")"
    }

    /// An expression over the row's own columns.
    static func expression(_ text: String, base: SQLName?, isStrict: Bool = false) -> MigratedValue {
        MigratedValue([.sql(text)], base: base, isStrict: isStrict)
    }

    /// An expression that reads other rows.
    static func query(_ text: String) -> MigratedValue { MigratedValue([.sql("(\(text))")], readsOthers: true) }

    /// Makes one value for rows of each group of entities; the column `entity` has the number of the entity.
    static func cases(_ groups: [(value: MigratedValue, numbers: [Int])], entity: SQLName) -> MigratedValue {
        let bases = Set(groups.compactMap { $0.value.isNull ? nil : $0.value.base })
        let isOfOne = bases.count == 1 && groups.allSatisfy { $0.value.isNull || $0.value.base != nil }
        let arms = groups.filter { !$0.value.isNull }.flatMap { group in
            let numbers = group.numbers.map(String.init).joined(separator: ", ")
            return [.sql(" WHEN \(entity) IN (\(numbers)) THEN ")] + group.value.parts
        }
        return MigratedValue(
            [.sql("CASE")] + arms + [.sql(" END")],
            base: isOfOne ? bases.first : nil,
            readsOthers: groups.contains { $0.value.readsOthers }
        )
    }
}

extension SQLBinding {
    /// Makes the value of a slot in the form that a column holds, except for references.
    ///
    /// Data has no tag, even for columns of external data. A decimal is a text if the database has a type for decimals.
    package init(valueOf slot: Slot, in row: Row, _ forms: SQLForms) {
        guard !row.isNull(slot.index) else {
            self = .null
            return
        }
        switch slot.kind {
        case .int: self = .integer(row.int(slot.word))
        case .double: self = .double(row.double(slot.word))
        case .string: self = .text(row.string(slot.word))
        case .data: self = .blob(row.data(slot.word))
        case .uuid: self = .blob(withUnsafeBytes(of: row.uuid(slot.word).uuid) { Data($0) })
        case .decimal:
            let decimal = row.decimal(slot.word)
            if forms.hasDecimals {
                self = .text("\(decimal)")
            } else if let whole = Int64("\(decimal)") {
                self = .integer(whole)
            } else {
                self = Double("\(decimal)").map { .double($0) } ?? .null
            }
        case .reference: self = .null
        }
    }
}
