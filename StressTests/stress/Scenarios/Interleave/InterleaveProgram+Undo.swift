import CoreData

extension InterleaveProgram {
    /// Undoes or redoes the last step of a context.
    func stepBack(_ place: Int, _ context: NSManagedObjectContext, again: Bool) {
        guard again ? oracle.redo(place) : oracle.undo(place) else { return }
        note(place, again ? "redo" : "undo", 0)
        branches[again ? "redos" : "undos", default: 0] += 1
        if !run.isSabotaged("lost-undo") { if again { context.redo() } else { context.undo() } }
        // Objects whose insertion was redone, or whose deletion was undone, are held again.
        for serial in oracle.entries[place].keys where held[place][serial] == nil {
            held[place][serial] = made[place][serial]
        }
    }

    /// Forgets all steps of a context before it reads or writes rows.
    func endSteps(_ place: Int, _ context: NSManagedObjectContext) {
        context.undoManager?.removeAllActions()
        oracle.endSteps(place)
        made[place] = [:]
    }

    /// Demands that the context can undo, or redo, if and only if the oracle can.
    func checkSteps(_ place: Int, _ context: NSManagedObjectContext) -> String? {
        guard let manager = context.undoManager, let steps = oracle.steps[place] else { return nil }
        for (what, shown, wanted) in [
            ("undo", manager.canUndo, !steps.toUndo.isEmpty), ("redo", manager.canRedo, !steps.toRedo.isEmpty),
        ] where shown != wanted { return "there is \(shown ? "something" : "nothing") to \(what)" }
        return nil
    }
}
