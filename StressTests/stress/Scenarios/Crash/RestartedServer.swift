import CoreData

/// A server loses an acknowledged save and is started again, while a process has the saved row in its cache.
///
/// From then on the process must read what the server has.
enum RestartedServer {
    private static let lost: Int64 = 5

    /// Makes the server lose the last save of an account, and starts it again.
    ///
    /// - Throws: Errors that have nothing to do with the lost save.
    static func run(_ run: Run, _ server: DatabaseServer) throws {
        run.watchdog.beat(-1, "a server that is started again")
        defer { run.watchdog.leave(-1) }
        let file = run.folder.appendingPathComponent("restarted.sqlite")
        // The run does not know this store, as its server is gone when the run removes the stores that it knows.
        let stack = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        let store = try stack.addPersistentStore(type: run.kind.type, at: run.kind.place(file))
        try Bank.open(stack, 1)
        let id = try Bank.accountIDs(stack.context())[0]
        let context = stack.context()
        try context.performAndWait { () throws in
            try account(id, context).balance += lost
            try context.save()
        }
        // The row gets the value and the number of saves back that it had before.
        try DatabasePlace.openTransaction(
            "UPDATE account SET balance = balance - \(lost), strata_version = strata_version - (1::bigint << 28)",
            at: file
        )?.commit()
        try server.crash()
        for isFetched in [true, false] {
            let reader = stack.context()
            let balance = try reader.performAndWait { () throws -> Int64? in
                guard isFetched else { return try account(id, reader).balance }
                return try reader.fetch(NSFetchRequest<Account>(entityName: "Account")).first?.balance
            }
            if balance == Bank.opening {
                run.count("lost-saves")
            } else {
                let way = isFetched ? "a fetch" : "a fault"
                run.find("after the server was started again \(way) shows a save that the server has lost")
            }
        }
        try stack.remove(store)
    }

    private static func account(_ id: NSManagedObjectID, _ context: NSManagedObjectContext) throws -> Account {
        guard let account = try context.existingObject(with: id) as? Account else {
            throw StressError("an account is of another class")
        }
        return account
    }
}
