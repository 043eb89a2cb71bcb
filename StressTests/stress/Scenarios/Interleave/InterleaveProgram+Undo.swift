import CoreData

extension InterleaveProgram {
    /// Takes the last step of a context back, or does it again.
    func stepBack(_ place: Int, _ context: NSManagedObjectContext, again: Bool) {
        guard again ? oracle.redo(place) : oracle.undo(place) else { return }
        note(place, again ? "redo" : "undo", 0)
        branches[again ? "redos" : "undos", default: 0] += 1
        if !run.isSabotaged("lost-undo") { if again { context.redo() } else { context.undo() } }
        // Insertions that were taken back, and deletions that were, are held again.
        for serial in oracle.entries[place].keys where held[place][serial] == nil {
            held[place][serial] = made[place][serial]
        }
    }

    /// Forgets all steps of a context, before it reads or writes rows.
    func endSteps(_ place: Int, _ context: NSManagedObjectContext) {
        context.undoManager?.removeAllActions()
        oracle.endSteps(place)
        made[place] = [:]
    }

    /// Demands that there is something to take back, or to do again, if and only if the oracle says so.
    func checkSteps(_ place: Int, _ context: NSManagedObjectContext) -> String? {
        guard let manager = context.undoManager, let steps = oracle.steps[place] else { return nil }
        for (what, shown, wanted) in [
            ("undo", manager.canUndo, !steps.toUndo.isEmpty), ("redo", manager.canRedo, !steps.toRedo.isEmpty),
        ] where shown != wanted { return "there is \(shown ? "something" : "nothing") to \(what)" }
        return nil
    }
}
