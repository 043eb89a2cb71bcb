import StrataPredicates
import StrataRows

/// What a column holds after a migration: an expression over the row that was there before.
package struct MigratedValue: Hashable, Sendable {
    /// A value of the new model that stands in the expression.
    package struct Constant: Hashable, Sendable {
        package let binding: SQLBinding
        /// The attribute that the value is one of.
        package let type: AttributeType
    }

    /// What the expression consists of.
    private enum Part: Hashable {
        case sql(String)
        /// A column of the row that was there before, whose type may be another one.
        case column(SQLName)
        case constant(Constant)
    }

    private let parts: [Part]
    /// The column that it is made of, if that is one and serves no other purpose.
    package let base: SQLName?
    /// Whether it is that column, unchanged.
    package let isPlain: Bool
    /// Whether it looks at other rows.
    package let readsOthers: Bool
    /// Whether it is NULL where its base is.
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

    /// What its parameters stand for, in their order.
    package var constants: [Constant] {
        parts.compactMap { part in
            guard case .constant(let constant) = part else { return nil }
            return constant
        }
    }

    /// The value, if it is the same for all rows and not NULL.
    package var constant: Constant? { parts.count == 1 ? constants.first : nil }

    /// The expression; in a subquery the row is called `t`, and a parameter is a question mark.
    package var text: String { text { _ in "?" } }

    /// What the parameters are bound to.
    package var bindings: [SQLBinding] { constants.map(\.binding) }

    /// The expression, with parameters as `parameter` writes them, and columns whose values it takes as `column` does.
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

    /// A column as it is.
    static func column(_ name: SQLName) -> MigratedValue {
        MigratedValue([.column(name)], base: name, isPlain: true, isStrict: true)
    }

    /// A value that is the same for all rows.
    static func constant(_ value: SQLBinding, _ type: AttributeType) -> MigratedValue {
        if case .null = value { return .null }
        return MigratedValue([.constant(Constant(binding: value, type: type))])
    }

    /// A column, or a value where it is NULL.
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

    /// A value for the rows that have one in some column of several.
    static func constant(_ value: SQLBinding, ifAny known: [SQLName], _ type: AttributeType) -> MigratedValue {
        if case .null = value { return .null }
        let constant = Part.constant(Constant(binding: value, type: type))
        return MigratedValue([.sql("CASE WHEN \(hasAny(known)) THEN "), constant, .sql(" END")])
    }

    /// A column, or a value where it is NULL; and another value in the rows that have none in any column of several.
    ///
    /// - Parameters:
    ///   - name: The column.
    ///   - value: The value in place of NULL; `nil` for none.
    ///   - known: The columns, of which the column is one.
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

    /// Whether some column of several has a value.
    static func hasAny(_ names: [SQLName]) -> String {
        "(" + names.map { "\($0) IS NOT NULL" }.joined(separator: " OR ") + ")"
    }

    /// An expression over the row's own columns.
    static func expression(_ text: String, base: SQLName?, isStrict: Bool = false) -> MigratedValue {
        MigratedValue([.sql(text)], base: base, isStrict: isStrict)
    }

    /// An expression that looks at other rows.
    static func query(_ text: String) -> MigratedValue { MigratedValue([.sql("(\(text))")], readsOthers: true) }

    /// One value for the rows of some entities, whose numbers are in the column `entity`, another for those of others.
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
    /// The value of a slot as a column holds it, but for references.
    ///
    /// Data is without the tag that columns of external data have. A decimal is a text where the database has a type for them.
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
