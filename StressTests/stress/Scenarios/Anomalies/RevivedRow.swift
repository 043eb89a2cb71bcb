import CoreData

/// Two contexts bring back a row that a third one has deleted.
///
/// The second must merge into what the first has stored.
enum RevivedRow {
    /// Calls a block after conflicts were resolved, and before the save is tried again.
    private final class InterruptedPolicy: NSMergePolicy, @unchecked Sendable {
        // @unchecked Sendable: the one property is a constant closure that is Sendable.
        private let interrupt: @Sendable () throws -> Void

        init(_ interrupt: @escaping @Sendable () throws -> Void) {
            self.interrupt = interrupt
            super.init(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        }

        override func resolve(mergeConflicts list: [Any]) throws {
            try super.resolve(mergeConflicts: list)
            try interrupt()
        }
    }

    /// Brings one row back twice.
    ///
    /// The second save must succeed, and keep the change of the first.
    ///
    /// - Throws: Errors that have nothing to do with the row.
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        run.watchdog.beat(0, "a row that two bring back")
        defer { run.watchdog.leave(0) }
        let maker = stack.context()
        let id = try maker.performAndWait { () throws -> NSManagedObjectID in
            let account = Account(context: maker)
            (account.number, account.balance) = (-1, 1)
            try maker.save()
            return account.objectID
        }
        let (first, second, third) = (stack.context(.mergeByPropertyObjectTrump), stack.context(), stack.context())
        try first.performAndWait { () throws in try account(id, first).number = -2 }
        try second.performAndWait { () throws in
            // The second save first finds that the row has gone, and then, when it is tried again, that the row is
            // there.
            second.mergePolicy = InterruptedPolicy { try first.performAndWait { () throws in try first.save() } }
            try account(id, second).balance = 2
        }
        try third.performAndWait { () throws in
            third.delete(try account(id, third))
            try third.save()
        }
        do { try second.performAndWait { () throws in try second.save() } } catch {
            return run.find("of two that have brought a row back, the second cannot save: \(describe(error))")
        }
        let reader = stack.context()
        let found = try reader.performAndWait { () throws -> [Int64] in
            let account = try account(id, reader)
            return [account.number, account.balance]
        }
        if found != [-2, 2] {
            run.find("of two that have brought a row back, one is lost: number and balance are \(found), not [-2, 2]")
        }
        run.count("revived-twice")
    }

    private static func account(_ id: NSManagedObjectID, _ context: NSManagedObjectContext) throws -> Account {
        guard let account = try context.existingObject(with: id) as? Account else {
            throw StressError("an account is of another class")
        }
        return account
    }
}
