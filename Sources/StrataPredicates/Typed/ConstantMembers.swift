/// The members of a collection of constants, with the sets that comparisons make of them.
///
/// Each set is made once, however many values are searched in it.
final class ConstantMembers {
    let values: [PredicateValue]
    /// Whether the members have an order, other than the arbitrary one of a set.
    let areOrdered: Bool
    private var sets: [StringFolding: PredicateValueSet] = [:]

    /// A member of each type.
    private(set) lazy var kinds: [PredicateValue] = {
        var known: Set<ResolvedType> = []
        return values.filter { known.insert(ResolvedType(of: $0)).inserted }
    }()

    /// The same members, with texts in place of numbers: SQLite compares a column of texts with these.
    private(set) lazy var asTexts: ConstantMembers = {
        guard kinds.contains(where: { ResolvedType(of: $0).isNumeric }) else { return self }
        let texts = values.map { value -> PredicateValue in
            switch value {
            case .int(let number): .string(String(number))
            case .double(let number): .string(String(number))
            default: value
            }
        }
        return ConstantMembers(texts, areOrdered: areOrdered)
    }()

    init(_ values: [PredicateValue], areOrdered: Bool = true) {
        (self.values, self.areOrdered) = (values, areOrdered)
    }

    func set(_ folding: StringFolding) -> PredicateValueSet {
        if let known = sets[folding] { return known }
        let set = PredicateValueSet(values, folding: folding)
        sets[folding] = set
        return set
    }

    /// The members of a set operation.
    func combined(_ operation: SetOperation, _ other: ConstantMembers) -> ConstantMembers {
        let areOrdered = areOrdered && other.areOrdered
        switch operation {
        case .union: return ConstantMembers(values + other.values, areOrdered: areOrdered)
        case .intersect:
            let kept = other.set([])
            return ConstantMembers(values.filter(kept.contains), areOrdered: areOrdered)
        case .minus:
            let removed = other.set([])
            return ConstantMembers(values.filter { !removed.contains($0) }, areOrdered: areOrdered)
        }
    }
}

extension ResolvedOperand {
    /// The result of a set operation if both sides are constants.
    static func combining(
        _ operation: SetOperation,
        of first: ResolvedOperand,
        and second: ResolvedOperand
    ) -> ResolvedOperand {
        guard case .constants(let members) = first, case .constants(let others) = second else {
            return .setOperation(operation, first, second)
        }
        return .constants(members.combined(operation, others))
    }
}
