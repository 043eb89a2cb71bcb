import CoreData

/// Others save, and a context that has loaded some of their objects merges that. It must show what is stored with its
/// own changes.
extension SocietyProgram {
    func merge(_ stream: inout SeededStream) throws -> String? {
        let observer = desk(undoes: stream.chance(0.3))
        let isAutomatic = stream.chance(0.3)
        observer.perform { observer.context.automaticallyMergesChangesFromParent = isAutomatic }
        try load(observer, &stream)
        let results = try SocietyResults(observer, &stream)
        var own: [SocietyEdit] = []
        var mine = stored
        if stream.chance(0.5) {
            for _ in 0..<(1 + stream.below(2)) {
                let edit = draw(mine, .values, &stream)
                // Such a swap needs a value that the others may give to a third person.
                if case .swapCodes = edit { continue }
                if case .code = edit { continue }
                own.append(edit)
                try make(edit, at: observer, &mine)
            }
        }
        // A change that was changed back is no change.
        let effective = own.filter { edit in
            var (old, new) = (stored, mine)
            edit.change(&old)
            edit.change(&new)
            return old != stored && new == mine
        }
        let changed = own.reduce(into: Set<Int64>()) { $0.formUnion($1.people) }
        if let trouble = try results.check(own.reduce(into: stored) { $1.change(&$0) }) { return trouble }
        let mail = SocietyMail(
            stream.chance(0.4) ? .NSManagedObjectContextDidSaveObjectIDs : .NSManagedObjectContextDidSave
        )
        defer { mail.stop() }
        let before = stored
        // Another drill is about objects that are changed here and deleted there.
        var isShared = false
        for _ in 0..<(1 + stream.below(2)) {
            _ = try letOthersSave(4, changed.isEmpty ? .all : .lasting, &stream)
            // If others have set a property to the same value, then it is no change any more once that is merged. It
            // depends on the order whether that happens before they set it to something else.
            for edit in effective {
                var changed = stored
                edit.change(&changed)
                if changed == stored { isShared = true }
            }
        }
        var messages = mail.take()
        if stream.chance(0.3) { messages.reverse() }
        if !isAutomatic {
            for message in messages where !run.isSabotaged("lost-merge") {
                note("merge")
                observer.perform { observer.context.mergeChanges(fromContextDidSave: message) }
            }
        } else {
            observer.perform {}
        }
        if isShared { return nil }
        let wanted = effective.reduce(into: stored) { $1.change(&$0) }
        let moment = "after a merge"
        if let trouble = try results.check(wanted) { return "\(moment): \(trouble)" }
        if let trouble = try check(observer, wanted, moment) ?? ask(observer, wanted, &stream) { return trouble }
        // Undo restores the value before the change, whatever others have saved since.
        guard observer.context.undoManager != nil, changed.allSatisfy({ before.people[$0] == stored.people[$0] }) else {
            return nil
        }
        for _ in own { observer.perform { observer.context.undo() } }
        return try check(observer, stored, "after a merge and undo")
    }

    /// Loads some of the objects, and some of their relationships.
    func load(_ desk: SocietyDesk, _ stream: inout SeededStream) throws {
        let query = SocietyQuery.draw(&stream)
        note("load \(query)")
        let society = stored
        try desk.perform {
            _ = try desk.context.fetch(query.request(Person.self))
            for serial in society.people.keys.sorted() where stream.chance(0.7) {
                let person = try desk.person(serial)
                if stream.chance(0.5) { _ = person.pupils.count }
                if stream.chance(0.5) { _ = person.friends.count }
                if stream.chance(0.5) { _ = person.tools.count }
                if stream.chance(0.5) { _ = person.clubs.count }
                if stream.chance(0.2) { desk.context.refresh(person, mergeChanges: false) }
            }
            for serial in society.clubs.keys.sorted() where stream.chance(0.5) {
                _ = try desk.club(serial).members.map(\.isFault)
            }
        }
    }
}
