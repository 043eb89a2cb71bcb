/// The members of a collection of constants, with the sets that comparisons make of them, each made once however many values
/// are looked for in it.
final class ConstantMembers {
    let values: [PredicateValue]
    /// Whether they have an order, and not only the one in which a set happens to give them.
    let areOrdered: Bool
    private var sets: [StringFolding: PredicateValueSet] = [:]

    /// One member of each type.
    private(set) lazy var kinds: [PredicateValue] = {
        var known: Set<ResolvedType> = []
        return values.filter { known.insert(ResolvedType(of: $0)).inserted }
    }()

    /// The same members with the texts of numbers in their place, as SQLite compares a column of texts with them.
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
    /// A set operation, carried out if both sides are constants.
    static func combining(
        _ operation: SetOperation,
        _ first: ResolvedOperand,
        _ second: ResolvedOperand
    ) -> ResolvedOperand {
        guard case .constants(let members) = first, case .constants(let others) = second else {
            return .setOperation(operation, first, second)
        }
        return .constants(members.combined(operation, others))
    }
}
