/// The steps that contexts with an undo manager can undo and redo. A step is everything that one call has changed.
///
/// Steps end with each call that reads or writes the store's rows. Undo of saved changes is not part of this
/// scenario.
extension InterleaveOracle {
    /// The unsaved changes before or after a step, by object.
    ///
    /// Values that were read since then stay.
    typealias Step = [Int64: Entry]

    /// The steps of one context; the newest comes last.
    struct Steps {
        var toUndo: [Step] = []
        var toRedo: [Step] = []
    }

    /// Records a step, if the call has changed anything.
    ///
    /// - Parameters:
    ///   - before: The state before the call.
    ///   - context: The context.
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

    /// Undoes the last step.
    ///
    /// - Returns: Whether there was one.
    mutating func undo(_ context: Int) -> Bool {
        guard let step = steps[context]?.toUndo.popLast() else { return false }
        steps[context]?.toRedo.append(entries[context])
        restore(step, context)
        return true
    }

    /// Redoes the step that was undone last.
    ///
    /// - Returns: Whether there was one.
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
        // Owners of children that come or go may count as changed, as they did when the step was made.
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
