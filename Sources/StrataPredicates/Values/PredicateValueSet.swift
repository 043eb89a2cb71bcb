/// The right side of `IN` when it is known beforehand: membership in O(1), typed for the common cases.
///
/// nil is a member like any other: `x IN {1, nil}` holds for a nil `x`.
package struct PredicateValueSet: Sendable {
    private enum Storage: Sendable {
        case integers(Set<Int64>)
        case strings(Set<ByteString>)
        case references(Set<PredicateIdentity>)
        case general(Set<PredicateValue>)
    }

    private let storage: Storage
    package let containsNull: Bool
    package let folding: StringFolding
    /// The members without nil and without duplicates, in the order they came in.
    package let members: [PredicateValue]

    package init(_ values: [PredicateValue], folding: StringFolding = []) {
        self.folding = folding
        containsNull = values.contains { $0.isNull }
        var seen: Set<PredicateValue> = []
        members = values.filter { !$0.isNull && seen.insert(Self.folded($0, folding)).inserted }
        let folded = folding.isEmpty ? members : members.map { Self.folded($0, folding) }
        storage = Self.storage(for: folded)
    }

    private static func storage(for values: [PredicateValue]) -> Storage {
        let integers = values.compactMap { if case .int(let value) = $0 { value } else { nil } }
        if integers.count == values.count { return .integers(Set(integers)) }
        let strings = values.compactMap { if case .string(let value) = $0 { ByteString(value) } else { nil } }
        if strings.count == values.count { return .strings(Set(strings)) }
        let references = values.compactMap { if case .reference(let value) = $0 { value } else { nil } }
        if references.count == values.count { return .references(Set(references)) }
        return .general(Set(values))
    }

    private static func folded(_ value: PredicateValue, _ folding: StringFolding) -> PredicateValue {
        guard !folding.isEmpty, case .string(let string) = value else { return value }
        return .string(folding.fold(string))
    }

    package func contains(_ value: PredicateValue) -> Bool {
        switch (storage, value) {
        case (.integers(let set), .int(let integer)): set.contains(integer)
        case (.strings(let set), .string(let string)): set.contains(ByteString(folding.fold(string)))
        case (.references(let set), .reference(let identity)): set.contains(identity)
        case (_, .null): containsNull
        case (.integers(let set), .double(let double)):
            if double.isNaN { containsNull } else { Int64(exactly: double).map(set.contains) ?? false }
        case (.general(let set), _): value.isNull ? containsNull : set.contains(Self.folded(value, folding))
        default: value.isNull && containsNull
        }
    }
}
