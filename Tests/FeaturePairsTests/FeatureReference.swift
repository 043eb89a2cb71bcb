/// The contents of a store, of a context on it, and of the states to which undo leads back.
struct FeatureReference {
    private(set) var stored = FeatureState()
    private(set) var seen = FeatureState()
    /// The changes that can be undone: the state before and after each.
    private(set) var steps: [(before: FeatureState, after: FeatureState)] = []
    private(set) var undone: [(before: FeatureState, after: FeatureState)] = []
    /// The saves since the history was looked at: the stored states before and after each.
    var saves: [(before: FeatureState, after: FeatureState)] = []

    var pending: [Int: FeatureState.Change] { seen.changes(from: stored) }

    // MARK: - Changes of the context

    mutating func edit(_ change: (inout FeatureState) -> Void) {
        let before = seen
        change(&seen)
        steps.append((before, seen))
        undone = []
    }

    mutating func undo() {
        guard let step = steps.popLast() else { return }
        undone.append(step)
        restore(step.before)
    }

    mutating func redo() {
        guard let step = undone.popLast() else { return }
        steps.append(step)
        restore(step.after)
    }

    /// Derived attributes are those of the last save, and undo leaves them.
    private mutating func restore(_ state: FeatureState) {
        let former = seen
        seen = state
        for (serial, record) in former.records {
            for key in FeatureState.derived { seen.records[serial]?.values[key] = record.values[key] }
        }
    }

    mutating func forgetSteps() { (steps, undone) = ([], []) }

    mutating func save() {
        seen.derive()
        write(seen)
    }

    mutating func discard() {
        seen = stored
        forgetSteps()
    }

    // MARK: - Changes of others

    /// Whether what another context has stored can be merged in only one way.
    ///
    /// Attributes can: the context's own changes win. If both have changed a relationship, then the outcome is tested
    /// elsewhere.
    func canMerge(_ next: FeatureState) -> Bool {
        let own = pending
        return next.changes(from: stored).allSatisfy { serial, change in
            switch (change, own[serial]) {
            case (_, nil), (.inserted, _): true
            case (.deleted, _), (_, .deleted), (_, .inserted): false
            case (.updated(let theirs), .updated(let mine)):
                theirs.intersection(mine).allSatisfy { FeatureLink.named[$0] == nil }
            }
        }
    }

    /// Another context has stored a state, and the context has merged it.
    mutating func merge(_ next: FeatureState) {
        var next = next
        next.derive()
        let own = pending
        for (serial, change) in next.changes(from: stored, withDerived: true) {
            switch change {
            case .inserted: seen.records[serial] = next.records[serial]
            case .deleted: seen.records[serial] = nil
            case .updated(let keys):
                var mine: Set<String> = []
                if case .updated(let changed)? = own[serial] { mine = changed }
                for key in keys.subtracting(mine) {
                    if FeatureLink.named[key] == nil {
                        seen.records[serial]?.values[key] = next.records[serial]?.values[key]
                    } else {
                        seen.records[serial]?.links[key] = next.records[serial]?.links[key]
                    }
                }
            }
        }
        write(next)
        forgetSteps()
    }

    /// The store has a state, and the context shows the same.
    mutating func settle(_ next: FeatureState) {
        var next = next
        next.derive()
        write(next)
        seen = next
        forgetSteps()
    }

    /// Another context has stored a state, and the context has not merged it.
    mutating func settleElsewhere(_ next: FeatureState) {
        var next = next
        next.derive()
        write(next)
    }

    private mutating func write(_ next: FeatureState) {
        if !next.changes(from: stored).isEmpty { saves.append((stored, next)) }
        stored = next
    }

    /// Begins with an object that is new and not saved.
    mutating func begin(_ stored: FeatureState, _ seen: FeatureState) {
        (self.stored, self.seen, saves) = (stored, seen, [])
        forgetSteps()
    }
}
