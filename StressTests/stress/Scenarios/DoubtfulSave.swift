import CoreData

/// A save ends in doubt, and its context repeats it.
///
/// The saved objects must be there exactly once.
///
/// The answer to its commit is lost, and at first the server cannot be asked for the outcome.
enum DoubtfulSave {
    /// Makes one save that was committed, and one that was not.
    ///
    /// - Throws: Errors that have nothing to do with the doubt.
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        run.watchdog.beat(-1, "a save in doubt")
        defer { run.watchdog.leave(-1) }
        for (serial, isCommitted) in [(1, true), (2, false)] as [(Int64, Bool)] {
            let context = stack.context()
            FaultPoints.leaveInDoubt(isCommitted: isCommitted)
            defer { FaultPoints.clear() }
            let isInDoubt = try context.performAndWait { () throws -> Bool in
                Node(context: context).serial = serial
                do {
                    try context.save()
                    return false
                } catch let error as CocoaError where error.userInfo[NSPersistentStoreSaveInDoubtKey] != nil {
                    return true
                }
            }
            FaultPoints.clear()
            guard isInDoubt else {
                run.find("a save whose answer was lost is not in doubt")
                continue
            }
            // Any program repeats a save after an error of the environment.
            do { try context.performAndWait { () throws in try context.save() } } catch {
                run.find("what a save in doubt has stored cannot be saved again: \(describe(error))")
                continue
            }
            let reader = stack.context()
            let count = try reader.performAndWait { () throws -> Int in
                let request = NSFetchRequest<Node>(entityName: "Node")
                request.predicate = NSPredicate(format: "serial == %@", serial)
                return try reader.count(for: request)
            }
            if count != 1 {
                let fate = isCommitted ? "committed" : "rolled back"
                run.find("what a save in doubt has stored is there \(count) times once it was repeated: it was \(fate)")
            }
            run.count("saves-in-doubt")
        }
    }
}
