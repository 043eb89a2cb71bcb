import StrataPredicates
import StrataRows

/// What a column holds after a migration: an expression over the row that was there before.
package struct MigratedValue: Hashable, Sendable {
    /// The expression; in a subquery the row is called `t`.
    package let text: String
    /// What its parameters are bound to.
    package let bindings: [SQLBinding]
    /// The column that it is made of, if that is one and serves no other purpose.
    package let base: SQLName?
    /// Whether it is that column, unchanged.
    package let isPlain: Bool
    /// Whether it looks at other rows.
    package let readsOthers: Bool
    /// Whether it is NULL where its base is.
    let isStrict: Bool

    private init(
        _ text: String,
        _ bindings: [SQLBinding],
        base: SQLName?,
        isPlain: Bool,
        readsOthers: Bool,
        isStrict: Bool
    ) {
        self.text = text
        self.bindings = bindings
        self.base = base
        self.isPlain = isPlain
        self.readsOthers = readsOthers
        self.isStrict = isStrict
    }

    static let null = MigratedValue("NULL", [], base: nil, isPlain: false, readsOthers: false, isStrict: false)

    package var isNull: Bool { text == "NULL" }

    /// A column as it is.
    static func column(_ name: SQLName) -> MigratedValue {
        MigratedValue(name.description, [], base: name, isPlain: true, readsOthers: false, isStrict: true)
    }

    /// A value that is the same for all rows.
    static func constant(_ value: SQLBinding) -> MigratedValue {
        if case .null = value { return .null }
        return MigratedValue("?", [value], base: nil, isPlain: false, readsOthers: false, isStrict: false)
    }

    /// A column, or a value where it is NULL.
    static func column(_ name: SQLName, orElse value: SQLBinding) -> MigratedValue {
        if case .null = value { return column(name) }
        return MigratedValue(
            "COALESCE(\(name), ?)",
            [value],
            base: name,
            isPlain: false,
            readsOthers: false,
            isStrict: false
        )
    }

    /// An expression over the row's own columns.
    static func expression(_ text: String, base: SQLName?, isStrict: Bool = false) -> MigratedValue {
        MigratedValue(text, [], base: base, isPlain: false, readsOthers: false, isStrict: isStrict)
    }

    /// An expression that looks at other rows.
    static func query(_ text: String) -> MigratedValue {
        MigratedValue("(\(text))", [], base: nil, isPlain: false, readsOthers: true, isStrict: false)
    }

    /// One value for the rows of some entities, another for those of others.
    static func cases(_ groups: [(value: MigratedValue, numbers: [Int])]) -> MigratedValue {
        let bases = Set(groups.compactMap { $0.value.isNull ? nil : $0.value.base })
        let isOfOne = bases.count == 1 && groups.allSatisfy { $0.value.isNull || $0.value.base != nil }
        let arms = groups.filter { !$0.value.isNull }.map { group in
            "WHEN Z_ENT IN (\(group.numbers.map(String.init).joined(separator: ", "))) THEN \(group.value.text)"
        }
        return MigratedValue(
            "CASE \(arms.joined(separator: " ")) END",
            groups.filter { !$0.value.isNull }.flatMap(\.value.bindings),
            base: isOfOne ? bases.first : nil,
            isPlain: false,
            readsOthers: groups.contains { $0.value.readsOthers },
            isStrict: false
        )
    }
}

extension SQLBinding {
    /// The value of a slot as a column holds it, but for references.
    ///
    /// Data is without the tag that columns of external data have.
    package init(valueOf slot: Slot, in row: Row) {
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
            if let whole = Int64("\(decimal)") {
                self = .integer(whole)
            } else {
                self = Double("\(decimal)").map { .double($0) } ?? .null
            }
        case .reference: self = .null
        }
    }
}
