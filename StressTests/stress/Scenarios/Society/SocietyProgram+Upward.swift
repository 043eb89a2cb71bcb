import CoreData

/// Children hold what they have read, while their parents and other contexts save, merge and delete.
///
/// A save of a child must either build on what is stored, or be a conflict.
extension SocietyProgram {
    func moveUp(_ stream: inout SeededStream) throws -> String? {
        switch stream.below(8) {
        case 0, 1: return try saveUponGap(&stream)
        case 2: return try orderUponNewer(&stream)
        case 3: return try changeTheDeleted(&stream)
        case 4: return try reviveUpward(&stream)
        case 5: return try reportUpward(&stream)
        case 6: return try moveUponNewer(&stream)
        default: return try askForUnsaved(&stream)
        }
    }

    /// Makes a desk, and a child of it that knows the IDs of stored objects.
    private func tree(undoes: Bool = false) -> (root: SocietyDesk, child: SocietyDesk) {
        let root = desk()
        let context = NSManagedObjectContext(.privateQueue)
        context.parent = root.context
        if undoes { context.undoManager = UndoManager() }
        return (root, SocietyDesk(context) { [unowned self] in ids[$0] ?? root.heldID($0) })
    }

    /// Saves a child, and then its root.
    ///
    /// - Returns: The root's conflicts; `nil` if there were none.
    private func saveUp(_ child: SocietyDesk, _ root: SocietyDesk) throws -> [NSMergeConflict]? {
        note("save of the child, save of the root")
        try child.perform { try child.context.save() }
        do { try root.perform { try root.context.save() } } catch let error as CocoaError
            where error.code == .managedObjectMerge
        { return error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? [] }
        return nil
    }

    /// A save of another context must be a conflict, whatever the root saves before and after it.
    ///
    /// A save of the root alone must be none.
    private func saveUponGap(_ stream: inout SeededStream) throws -> String? {
        let serial = try newPeople(1)[0]
        let (root, child) = tree()
        _ = try child.perform { try child.person(serial).rank }
        func rename(_ name: String) throws {
            var seen = stored
            try make(.name(serial, name), at: root, &seen)
            note("save of the root")
            try root.perform { try root.context.save() }
            settle(seen, root)
            // The desk releases the root's object, so that it is read anew.
            root.letGo()
        }
        if stream.chance(0.6) { try rename("a") }
        let isOvertaken = stream.chance(0.7)
        if isOvertaken { try given([.rank(serial, 50)]) }
        if stream.chance(0.8) { try rename("b") }
        var seen = stored
        try make(.rank(serial, 70), at: child, &seen)
        if try saveUp(child, root) == nil {
            if isOvertaken { return "a child has saved upon what a stranger has changed: lost update" }
            settle(seen, desk())
        } else if !isOvertaken {
            return "what the root itself has saved is a conflict of its child's"
        }
        return try checkStore("after the save of a child")
    }

    /// A child's order must not overwrite an order that another context has saved.
    private func orderUponNewer(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(4)
        let (teacher, pupils) = (people[0], Array(people[1...]))
        try given(pupils.map { .teach($0, teacher) })
        let (root, child) = tree()
        _ = try child.perform { try child.person(teacher).pupils.map(\.serial) }
        let isOvertaken = stream.chance(0.7)
        if isOvertaken { try given([.shuffle(teacher, [pupils[1], pupils[0], pupils[2]])]) }
        var seen = stored
        try make(.shuffle(teacher, [pupils[0], pupils[2], pupils[1]]), at: child, &seen)
        if try saveUp(child, root) == nil {
            if isOvertaken { return "a child's order has replaced the one of a stranger: lost update" }
            settle(seen, desk())
        } else if !isOvertaken {
            return "a child's order is a conflict, though nobody else has changed it"
        }
        return try checkStore("after a child's order")
    }

    /// A deletion that the root has merged is no conflict.
    ///
    /// A deletion by the root itself is one, if the child asks for conflicts.
    private func changeTheDeleted(_ stream: inout SeededStream) throws -> String? {
        let serial = try newPeople(1)[0]
        let (root, child) = tree()
        _ = try child.perform { try child.person(serial).rank }
        if stream.chance(0.5) { _ = try root.perform { try root.person(serial).rank } }
        if stream.chance(0.5) {
            child.context.parentConflictPolicy = .error
            var above = stored
            try make(.deletePerson(serial), at: root, &above)
            var unused = stored
            try make(.rank(serial, 70), at: child, &unused)
            note("save of the child")
            do { try child.perform { try child.context.save() } } catch let error as CocoaError
                where error.code == .managedObjectMerge
            { return try save(root, above, "after a child was refused") }
            return "a child has changed what its parent has deleted, and was not refused"
        }
        let mail = SocietyMail(.NSManagedObjectContextDidSave)
        defer { mail.stop() }
        try given([.deletePerson(serial)])
        note("merge")
        for message in mail.take() { root.perform { root.context.mergeChanges(fromContextDidSave: message) } }
        root.letGo()
        try child.perform { try child.person(serial).rank = 70 }
        if try saveUp(child, root) != nil { return "a deletion that the root has merged is a conflict of its child's" }
        return try checkStore("after a child's change of what is gone")
    }

    /// An object that a child brings back, with a policy or with undo, must be back in its parent and in the store.
    private func reviveUpward(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        try given([.befriend(people[0], people[1]), .teach(people[0], people[1])])
        let undoes = stream.chance(0.6)
        let (root, child) = tree(undoes: undoes)
        if let trouble = try check(child, stored, "in a child") { return trouble }
        var seen = stored
        if undoes {
            try make(.deletePerson(people[0]), at: child, &seen)
            note("save of the child")
            try child.perform { try child.context.save() }
            if let trouble = try check(root, seen, "in the parent of a deletion") { return trouble }
            note("undo")
            child.perform { child.context.undo() }
            seen = stored
            for _ in 0..<3 { if let trouble = try ask(child, seen, &stream) { return "after an undo, \(trouble)" } }
        } else {
            let lonely = try newPeople(1)[0]
            child.context.parentConflictPolicy = .mergeByPropertyObjectTrump
            _ = try child.perform { try child.person(lonely).rank }
            var unused = stored
            try make(.deletePerson(lonely), at: root, &unused)
            seen = stored
            try make(.rank(lonely, 70), at: child, &seen)
        }
        note("save of the child")
        try child.perform { try child.context.save() }
        if let trouble = try check(root, seen, "in the parent of what is back") { return trouble }
        return try save(root, seen, "after the save of what is back")
    }

    /// A conflict must name stored objects, not those that were new when the child read them.
    private func reportUpward(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        let (root, child) = tree()
        let teacher = next()
        var above = stored
        try make(.newPerson(teacher, style: nil, rank: 0), at: root, &above)
        try make(.teach(people[0], teacher), at: root, &above)
        _ = try child.perform { try child.person(people[0]).teacher?.rank }
        note("save of the root")
        try root.perform { try root.context.save() }
        settle(above, root)
        root.letGo()
        try given([.rank(people[0], 50), .teach(people[0], 0)])
        if stream.chance(0.7) { _ = try root.perform { try root.person(people[0]).rank } }
        var seen = stored
        try make(.teach(people[0], people[1]), at: child, &seen)
        guard let conflicts = try saveUp(child, root) else {
            return "a child has given \(people[0]) a teacher upon what a stranger has changed: lost update"
        }
        return try root.perform {
            for conflict in conflicts {
                for values in [conflict.objectSnapshot, conflict.cachedSnapshot, conflict.persistedSnapshot] {
                    let id = values?["teacher"] as? NSManagedObjectID ?? (values?["teacher"] as? Person)?.objectID
                    if let id, id.isTemporaryID { return "a conflict names \(id), which is in no store" }
                }
            }
            return nil
        } ?? checkStore("after a refused save")
    }

    /// A child moves an object that its parent has changed.
    ///
    /// All relationships of the parent must then agree.
    private func moveUponNewer(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(6)
        let (from, to, mover) = (people[0], people[1], people[2])
        try given([.teach(mover, from), .teach(people[3], from), .teach(people[4], to), .teach(people[5], to)])
        let (root, child) = tree()
        if let trouble = try check(child, stored, "in a child") { return trouble }
        if stream.chance(0.5), let trouble = try check(root, stored, "in a parent") { return trouble }
        var seen = stored
        var above = stored
        try make(.rank(mover, 50), at: root, &above)
        let place = stream.below(3)
        let edit: SocietyEdit = stream.chance(0.5) ? .teach(mover, to) : .place(mover, to, place)
        try make(edit, at: child, &seen)
        seen.people[mover]?.rank = 50
        note("save of the child")
        try child.perform { try child.context.save() }
        if let trouble = try check(root, seen, "in the parent of a move") { return trouble }
        return try save(root, seen, "after a child's move")
    }

    /// An object that the parent has not saved yet must be found once, as the child has changed it, or not at all if
    /// it was deleted.
    private func askForUnsaved(_ stream: inout SeededStream) throws -> String? {
        let (root, child) = tree()
        var seen = stored
        let people = (0..<3).map { _ in next() }
        for serial in people { try make(.newPerson(serial, style: nil, rank: Int64(stream.below(4))), at: root, &seen) }
        if stream.chance(0.3) {
            try root.perform { try root.context.obtainPermanentIDs(for: Array(root.context.insertedObjects)) }
        }
        if let trouble = try check(child, seen, "in a child") { return trouble }
        try make(.rank(people[0], Int64(4 + stream.below(4))), at: child, &seen)
        try make(.deletePerson(people[1]), at: child, &seen)
        if stream.chance(0.6) {
            note("permanent IDs")
            try root.perform { try root.context.obtainPermanentIDs(for: Array(root.context.insertedObjects)) }
        }
        let count = try child.perform { try child.context.count(for: NSFetchRequest<Person>(entityName: "Person")) }
        if count != seen.people.count { return "a child counts \(count) people, expected \(seen.people.count)" }
        for _ in 0..<4 { if let trouble = try ask(child, seen, &stream) { return "in a child, \(trouble)" } }
        note("save of the child")
        try child.perform { try child.context.save() }
        for _ in 0..<2 { if let trouble = try ask(root, seen, &stream) { return "in a parent, \(trouble)" } }
        return try save(root, seen, "after the save of a tree")
    }
}
