import CoreData

/// A single context: what it shows must follow from its changes, with undo and redo, before and after the save.
extension SocietyProgram {
    func edit(_ stream: inout SeededStream) throws -> String? {
        let desk = desk(undoes: stream.chance(0.6))
        let scope: SocietyEdit.Scope = desk.context.undoManager == nil ? .all : .reversible
        let before = stored
        var steps = [stored]
        for _ in 0..<(1 + stream.below(8)) {
            if stream.chance(0.5), let trouble = try ask(desk, steps[steps.count - 1], &stream) { return trouble }
            var seen = steps[steps.count - 1]
            try make(draw(seen, scope, &stream), at: desk, &seen)
            steps.append(seen)
        }
        if run.isSabotaged("lost-edit") { steps[steps.count - 1] = before }
        if let trouble = try check(desk, steps[steps.count - 1], "after edits") { return trouble }
        if let trouble = try ask(desk, steps[steps.count - 1], &stream) { return trouble }
        let token = stack.currentPersistentHistoryToken(fromStores: nil)
        guard desk.context.undoManager != nil, stream.chance(0.6) else {
            return try save(desk, steps[steps.count - 1], "after a save") ?? checkHistory(from: before, since: token)
        }
        var place = steps.count - 1
        if let trouble = try walk(desk, steps, &place, to: 0) { return trouble }
        let left = desk.perform {
            desk.context.insertedObjects.union(desk.context.updatedObjects).union(desk.context.deletedObjects)
                .map {
                    "\($0.entity.name ?? "") \($0.value(forKey: "serial") ?? 0) \($0.changedValues().keys.sorted())"
                }
        }
        if !left.isEmpty { return "a context whose changes are all undone has changes, expected none: \(left)" }
        if let trouble = try walk(desk, steps, &place, to: stream.below(steps.count)) { return trouble }
        if let trouble = try save(desk, steps[place], "after undo and a save") { return trouble }
        // Saved changes can be undone, too.
        if let trouble = try walk(desk, steps, &place, to: stream.below(steps.count)) { return trouble }
        return try save(desk, steps[place], "after the undo of what was saved")
    }

    /// Undoes or redoes until a step is reached, and checks each step.
    private func walk(_ desk: SocietyDesk, _ steps: [Society], _ place: inout Int, to goal: Int) throws -> String? {
        while place != goal {
            let isBack = goal < place
            place += isBack ? -1 : 1
            note(isBack ? "undo" : "redo")
            desk.perform { if isBack { desk.context.undo() } else { desk.context.redo() } }
            if let trouble = try check(desk, steps[place], isBack ? "after an undo" : "after a redo") { return trouble }
        }
        return nil
    }

    /// Saves, and checks what this context and a new one show.
    func save(_ desk: SocietyDesk, _ society: Society, _ moment: String) throws -> String? {
        note("save")
        try desk.perform { try desk.context.save() }
        settle(society, desk)
        return try check(desk, society, moment) ?? checkStore(moment)
    }

    // MARK: - The history

    /// Demands that the history contains the differences from `before`, and nothing else.
    private func checkHistory(from before: Society, since token: NSPersistentHistoryToken?) throws -> String? {
        // The owner of a deleted tool is in the history only if the owner was changed as well.
        guard run.kind == .sqlite, before.tools.keys.allSatisfy({ stored.tools[$0] != nil }) else { return nil }
        let context = stack.context()
        let changes = try context.performAndWait {
            let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
            let all = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
            return all.flatMap { $0.changes ?? [] }
        }
        let told = changes.map { change in
            let names = change.changeType == .update ? (change.updatedProperties ?? []).map(\.name).sorted() : []
            return "\(change.changeType.rawValue) \(number(change.changedObjectID)) \(names)"
        }
        let wanted = differences(before, stored)
        if told.sorted() == wanted.sorted() { return nil }
        return "the history tells \(told.sorted()), expected \(wanted.sorted())"
    }

    private func number(_ id: NSManagedObjectID) -> Int64 { ids.first { $0.value == id }?.key ?? 0 }

    private func differences(_ before: Society, _ after: Society) -> [String] {
        let kinds: [(Set<Int64>, Set<Int64>)] = [
            (Set(before.people.keys), Set(after.people.keys)), (Set(before.clubs.keys), Set(after.clubs.keys)),
            (Set(before.tools.keys), Set(after.tools.keys)),
        ]
        var changes: [String] = []
        for (old, new) in kinds {
            changes += new.subtracting(old).map { "\(NSPersistentHistoryChangeType.insert.rawValue) \($0) []" }
            changes += old.subtracting(new).map { "\(NSPersistentHistoryChangeType.delete.rawValue) \($0) []" }
            for serial in old.intersection(new) {
                let names = changedNames(serial, before, after).sorted()
                if names.isEmpty { continue }
                changes.append("\(NSPersistentHistoryChangeType.update.rawValue) \(serial) \(names)")
            }
        }
        return changes
    }

    private func changedNames(_ serial: Int64, _ before: Society, _ after: Society) -> [String] {
        var names: [String] = []
        func compare(_ name: String, _ isEqual: Bool) { if !isEqual { names.append(name) } }
        if let old = before.people[serial], let new = after.people[serial] {
            compare("style", old.style == new.style)
            compare("rank", old.rank == new.rank)
            compare("name", old.name == new.name)
            compare("code", old.code == new.code)
            compare("portrait", old.portrait == new.portrait)
            compare("teacher", old.teacher == new.teacher)
            compare("pupils", old.pupils == new.pupils)
            compare("friends", old.friends == new.friends)
            compare("tools", old.tools == new.tools)
            compare("clubs", old.clubs == new.clubs)
        }
        if let old = before.clubs[serial], let new = after.clubs[serial] {
            compare("rank", old.rank == new.rank)
            compare("head", old.head == new.head)
            compare("branches", old.branches == new.branches)
            compare("members", old.members == new.members)
        }
        compare("weight", before.tools[serial] == after.tools[serial])
        return names
    }
}
