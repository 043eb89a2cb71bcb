import StrataLocks

extension ResolvedCondition {
    /// The branches of an OR, with long runs of `key == constant` for one key replaced by one membership test.
    ///
    /// A set finds a member faster. It is also necessary: SQLite compares the branches of an OR with each other, so
    /// that it takes ten seconds to prepare twenty thousand of them.
    static func gatheringMembers(_ branches: [ResolvedCondition]) -> [ResolvedCondition] {
        guard branches.count >= WorkSize.listedMembers else { return branches }
        var gathered: [ResolvedCondition] = []
        var start = 0
        while start < branches.count {
            let end = endOfRun(branches, start)
            if end - start >= WorkSize.listedMembers, case .comparison(let first) = branches[start] {
                let values = branches[start..<end].compactMap { $0.equality?.right.constantValue }
                gathered.append(.member(first.left, PredicateValueSet(values, folding: first.folding)))
            } else {
                gathered += branches[start..<end]
            }
            start = end
        }
        return gathered
    }

    /// The end of the run that begins at a place: equalities of one key with constants of one kind, or a single branch.
    private static func endOfRun(_ branches: [ResolvedCondition], _ start: Int) -> Int {
        guard let first = branches[start].equality else { return start + 1 }
        var end = start + 1
        while end < branches.count, let next = branches[end].equality, next.folding == first.folding,
            next.left.isSame(as: first.left)
        {
            end += 1
        }
        return end
    }

    /// The comparison, if it compares a key with a constant of a kind that sets can contain.
    private var equality: ResolvedComparison? {
        guard case .comparison(let comparison) = self, comparison.operator == .equal else { return nil }
        switch comparison.right.constantValue {
        case .int, .string, .reference: return comparison
        default: return nil
        }
    }
}
