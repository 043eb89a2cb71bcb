import CoreData

/// A child context: it must show the objects of its parent with its own changes, which its saves move up.
extension SocietyProgram {
    /// Makes a child of a desk's context.
    private func child(of parent: SocietyDesk, undoes: Bool = false) -> SocietyDesk {
        let context = NSManagedObjectContext(.privateQueue)
        context.parent = parent.context
        if undoes { context.undoManager = UndoManager() }
        return SocietyDesk(context) { serial in parent.heldID(serial) }
    }

    func nest(_ stream: inout SeededStream) throws -> String? {
        let parent = desk()
        var above = stored
        _ = try parent.perform { try parent.picture() }
        if stream.chance(0.7) { try makeSome(4, .all, at: parent, &above, &stream) }
        if stream.chance(0.3) {
            try parent.perform {
                try parent.context.obtainPermanentIDs(for: Array(parent.context.insertedObjects))
            }
        }
        let child = child(of: parent, undoes: stream.chance(0.4))
        if stream.chance(0.5), let trouble = try ask(child, above, &stream) { return "in a child, \(trouble)" }
        if let trouble = try check(child, above, "in a child") { return trouble }
        var seen = above
        let scope: SocietyEdit.Scope = child.context.undoManager == nil ? .all : .reversible
        note("child:")
        let count = 1 + stream.below(5)
        for _ in 0..<count {
            try make(draw(seen, scope, &stream), at: child, &seen)
            if stream.chance(0.3), let trouble = try ask(child, seen, &stream) { return "in a child, \(trouble)" }
        }
        if let trouble = try check(child, seen, "in a child after edits") { return trouble }
        var merged = seen
        if stream.chance(0.4) { merged = try appendAbove(parent, above, seen, &stream) }
        note("save of the child")
        try child.perform { try child.context.save() }
        if let trouble = try check(parent, merged, "in the parent of a child that has saved") { return trouble }
        if child.context.undoManager != nil, stream.chance(0.5), merged == seen {
            // The saved changes, deletions included, are undone and moved up again.
            for _ in 0..<count { child.perform { child.context.undo() } }
            note("undo of all, save of the child")
            try child.perform { try child.context.save() }
            merged = above
            if let trouble = try check(parent, above, "in the parent of a child that has taken all back") {
                return trouble
            }
        }
        return try save(parent, merged, "after the save of a tree")
    }

    /// The parent adds a pupil behind the others, without the child's knowledge.
    ///
    /// - Returns: The society that the parent must show after the child has saved.
    private func appendAbove(
        _ parent: SocietyDesk,
        _ above: Society,
        _ seen: Society,
        _ stream: inout SeededStream
    ) throws -> Society {
        var merged = seen
        guard let teacher = above.people.keys.sorted().first(where: { seen.people[$0] != nil }) else { return merged }
        note("parent:")
        var unused = above
        let pupil = next()
        try make(.newPerson(pupil, style: nil, rank: 0), at: parent, &unused)
        try make(.teach(pupil, teacher), at: parent, &unused)
        merged.people[pupil] = Society.Person()
        merged.teach(pupil, teacher)
        return merged
    }

    /// A parent, its child and other contexts add to one number, each to the value that it sees.
    ///
    /// No stored addition may be lost.
    func countBesideStrangers(_ stream: inout SeededStream) throws -> String? {
        let serial = stream.pick(stored.people.keys.sorted())
        let parent = desk()
        let child = child(of: parent)
        child.context.parentConflictPolicy = .error
        _ = try parent.perform { try parent.picture() }
        var total = stored.people[serial]?.rank ?? 0
        // The additions that are not stored yet.
        var (above, below): (Int64, Int64) = (0, 0)
        var news: [Notification] = []
        func forget() {
            parent.perform { parent.context.rollback() }
            child.perform { child.context.reset() }
            (above, below) = (0, 0)
        }
        for _ in 0..<(6 + stream.below(10)) {
            switch stream.below(8) {
            case 0:
                note("stranger")
                let stranger = desk()
                let mail = SocietyMail(.NSManagedObjectContextDidSave, of: stranger.context)
                defer { mail.stop() }
                try stranger.perform {
                    try stranger.person(serial).rank += 1
                    try stranger.context.save()
                }
                news += mail.take()
                total += 1
            case 1 where above == 0 && below == 0:
                note("merge")
                for message in news {
                    parent.perform { parent.context.mergeChanges(fromContextDidSave: message) }
                }
                news = []
            case 2, 3:
                note("child adds")
                try child.perform { try child.person(serial).rank += 1 }
                below += 1
            case 4, 5:
                note("child saves")
                do {
                    try child.perform { try child.context.save() }
                    (above, below) = (above + below, 0)
                } catch let error as CocoaError where error.code == .managedObjectMerge { forget() }
            case 6:
                note("parent saves")
                do {
                    try parent.perform { try parent.context.save() }
                    (total, above) = (total + above, 0)
                } catch let error as CocoaError where error.code == .managedObjectMerge { forget() }
            case 7 where below == 0:
                note("child refreshes")
                child.perform { child.context.refreshAllObjects() }
            default:
                note("parent adds")
                try parent.perform { try parent.person(serial).rank += 1 }
                above += 1
            }
            let reader = desk()
            let rank = try reader.perform { try reader.person(serial).rank }
            if rank != total { return "\(serial) has \(rank), expected \(total): lost update" }
        }
        stored.people[serial]?.rank = total
        return nil
    }
}
