/// What contexts with an undo manager can take back and do again: a step is all that one call has changed.
///
/// Steps end with whatever reads or writes the store's rows; taking back what was saved is not this scenario's part.
extension InterleaveOracle {
    /// The unsaved changes before or after a step, by object; what was read since stays read.
    typealias Step = [Int64: Entry]

    /// The steps of one context, the last one last.
    struct Steps {
        var toUndo: [Step] = []
        var toRedo: [Step] = []
    }

    /// Takes a step, if the call has changed anything.
    ///
    /// - Parameters:
    ///   - before: How it was before the call.
    ///   - context: Where.
    mutating func noteStep(from before: Step, in context: Int) {
        guard steps[context] != nil, isChange(from: before, in: context) else { return }
        steps[context]?.toUndo.append(before)
        steps[context]?.toRedo = []
    }

    private func isChange(from before: Step, in context: Int) -> Bool {
        let after = entries[context]
        return Set(before.keys).union(after.keys).contains { serial in
            let (one, other) = (before[serial], after[serial])
            return one?.changes ?? [:] != other?.changes ?? [:]
                || one?.isInserted ?? false != other?.isInserted ?? false
                || one?.isDeleted ?? false != other?.isDeleted ?? false
        }
    }

    /// Takes the last step back.
    ///
    /// - Returns: Whether there was one.
    mutating func undo(_ context: Int) -> Bool {
        guard let step = steps[context]?.toUndo.popLast() else { return false }
        steps[context]?.toRedo.append(entries[context])
        restore(step, context)
        return true
    }

    /// Does again what was taken back last.
    ///
    /// - Returns: Whether there was anything.
    mutating func redo(_ context: Int) -> Bool {
        guard let step = steps[context]?.toRedo.popLast() else { return false }
        steps[context]?.toUndo.append(entries[context])
        restore(step, context)
        return true
    }

    /// Forgets all steps.
    mutating func endSteps(_ context: Int) { if steps[context] != nil { steps[context] = Steps() } }

    private mutating func restore(_ step: Step, _ context: Int) {
        let before = entries[context]
        for serial in Set(step.keys).union(before.keys) {
            guard var entry = step[serial] else {
                if before[serial]?.isInserted == true { entries[context][serial] = nil } else { clear(serial, context) }
                continue
            }
            if let now = before[serial], !entry.isInserted { entry.base = now.base }
            entries[context][serial] = entry
        }
        // Owners of children that come or go may count as changed, here as when it was done.
        for serial in Set(before.keys).union(entries[context].keys) {
            let owners = [before[serial], entries[context][serial]].map {
                $0.map { $0.isDeleted ? 0 : $0.values[2] } ?? 0
            }
            if owners[0] != owners[1] { touched[context].formUnion(owners) }
        }
    }

    private mutating func clear(_ serial: Int64, _ context: Int) {
        entries[context][serial]?.changes = [:]
        entries[context][serial]?.isDeleted = false
        entries[context][serial]?.freed = []
    }
}
