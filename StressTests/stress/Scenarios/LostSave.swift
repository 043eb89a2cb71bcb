import CoreData

/// A save is acknowledged and then lost by the server, as after a failover or a restore.
///
/// The next save must be a conflict.
///
/// Another context has changed the row meanwhile, so that a plain count of its versions would be the same.
enum LostSave {
    private static let lost: Int64 = 5
    private static let others: Int64 = 3

    /// Makes the server lose a save of the first account, and changes the account meanwhile.
    ///
    /// At the end its balance is as before.
    ///
    /// - Throws: Errors that have nothing to do with the lost save.
    static func run(_ run: Run) throws {
        let stacks = [try run.open(), try run.open()]
        run.watchdog.beat(-1, "a save that the server loses")
        defer { run.watchdog.leave(-1) }
        let (mine, other) = (stacks[0].context(), stacks[1].context())
        let account = try account(mine)
        try mine.performAndWait { () throws in
            account.balance += lost
            try mine.save()
        }
        // The row gets the value and the version back that it had before.
        try DatabasePlace.openTransaction(
            """
            UPDATE account SET balance = balance - \(lost), strata_version = strata_version - (1::bigint << 28)
            WHERE number = 0
            """,
            at: run.storeURL
        )?.commit()
        let theirs = try self.account(other)
        try other.performAndWait { () throws in
            theirs.balance += others
            try other.save()
        }
        let isRefused = try mine.performAndWait { () throws -> Bool in
            account.balance += lost
            do {
                try mine.save()
                return false
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                return true
            }
        }
        if isRefused {
            try other.performAndWait { () throws in
                theirs.balance -= others
                try other.save()
            }
            run.count("lost-saves")
        } else {
            run.find("a save after one that the server has lost has overwritten what others have saved")
        }
        for stack in stacks { try run.close(stack) }
    }

    /// The first account, realised.
    private static func account(_ context: NSManagedObjectContext) throws -> Account {
        let id = try Bank.accountIDs(context)[0]
        return try context.performAndWait { () throws -> Account in
            guard let account = try context.existingObject(with: id) as? Account else {
                throw StressError("an account is of another class")
            }
            return account
        }
    }
}
