/// The right side of `IN` if it is known beforehand: membership in O(1), typed for the common cases.
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
    /// The members without nil and without duplicates, in their order.
    package let members: [PredicateValue]

    package init(_ values: [PredicateValue], folding: StringFolding = []) {
        self.folding = folding
        containsNull = values.contains { $0.isNull }
        if let (set, members) = Self.distinct(values, { if case .int(let value) = $0 { value } else { nil } }) {
            (storage, self.members) = (.integers(set), members)
        } else if let (set, members) = Self.distinct(
            values,
            { if case .string(let value) = Self.folded($0, folding) { ByteString(value) } else { nil } }
        ) {
            (storage, self.members) = (.strings(set), members)
        } else if let (set, members) = Self.distinct(
            values,
            { if case .reference(let value) = $0 { value } else { nil } }
        ) {
            (storage, self.members) = (.references(set), members)
        } else {
            var set: Set<PredicateValue> = []
            members = values.filter { !$0.isNull && set.insert(Self.folded($0, folding)).inserted }
            storage = .general(set)
        }
    }

    /// The values without nil and duplicates, and a set of them as one type; `nil` if one of them is of another type.
    private static func distinct<Member: Hashable>(
        _ values: [PredicateValue],
        _ member: (PredicateValue) -> Member?
    ) -> (set: Set<Member>, members: [PredicateValue])? {
        guard let first = values.first(where: { !$0.isNull }) else { return ([], []) }
        guard member(first) != nil else { return nil }
        var set = Set<Member>(minimumCapacity: values.count)
        var members: [PredicateValue] = []
        members.reserveCapacity(values.count)
        for value in values where !value.isNull {
            guard let found = member(value) else { return nil }
            if set.insert(found).inserted { members.append(value) }
        }
        return (set, members)
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
