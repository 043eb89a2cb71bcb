extension ResolvedCondition {
    /// How many branches in a row make a membership test worth it.
    private static let leastMembers = 16

    /// The branches of an OR, where long runs of `key == constant` for one key have become one membership test.
    ///
    /// It is what a set is for, and more than a matter of taste: SQLite compares the branches of an OR with each other,
    /// so that twenty thousand of them take ten seconds to prepare.
    static func gatheringMembers(_ branches: [ResolvedCondition]) -> [ResolvedCondition] {
        guard branches.count >= leastMembers else { return branches }
        var gathered: [ResolvedCondition] = []
        var start = 0
        while start < branches.count {
            let end = endOfRun(branches, start)
            if end - start >= leastMembers, case .comparison(let first) = branches[start] {
                let values = branches[start..<end].compactMap { $0.equality?.right.constantValue }
                gathered.append(.member(first.left, PredicateValueSet(values, folding: first.folding)))
            } else {
                gathered += branches[start..<end]
            }
            start = end
        }
        return gathered
    }

    /// Where the run ends that begins at a place: of equalities of one key with constants of one kind, or of one branch.
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

    /// The comparison, if it is one of a key with a constant that a set holds by its kind.
    private var equality: ResolvedComparison? {
        guard case .comparison(let comparison) = self, comparison.operator == .equal else { return nil }
        switch comparison.right.constantValue {
        case .int, .string, .reference: return comparison
        default: return nil
        }
    }
}
