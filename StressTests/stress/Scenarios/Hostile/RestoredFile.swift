import CoreData

/// The contents of a store are replaced while it is open: by a backup of it, and by those of another store.
///
/// In both cases a row may have a version that was read before, with other values. A save on top of that is a conflict
/// after a backup, and is refused in another store.
enum RestoredFile {
    private static let mine: Int64 = 1
    private static let others: Int64 = 30

    /// Puts other contents into the file of a store, twice.
    ///
    /// - Throws: Errors that have nothing to do with the contents.
    static func run(_ run: Run) throws {
        for isOtherStore in [false, true] { try replace(run, isOtherStore) }
    }

    private static func replace(_ run: Run, _ isOtherStore: Bool) throws {
        let (url, source) = (
            try place(run, isOtherStore ? "another-store" : "restored"),
            try place(run, isOtherStore ? "another-store-aside" : "restored-aside")
        )
        let stack = try run.open(at: url)
        run.watchdog.beat(0, "a store whose contents are replaced")
        try Bank.open(stack, 1)
        if isOtherStore {
            let other = try run.open(at: source)
            try Bank.open(other, 1)
            try run.close(other)
        } else {
            try NSPersistentStoreCoordinator.backUpPersistentStore(at: url, type: .sqlite, to: source)
        }
        // The account has its second version, here and afterwards through other coordinators.
        let context = stack.context()
        let account = try context.performAndWait { () throws -> Account in
            let account = try self.account(context)
            account.balance += mine
            try context.save()
            return account
        }
        try NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared).replacePersistentStore(
            at: url,
            withPersistentStoreFrom: source,
            type: .sqlite
        )
        try change(run, url)
        let cause = "after \(isOtherStore ? "another store" : "a backup") was put into its file"
        context.performAndWait {
            account.balance += mine
            do {
                try context.save()
                run.find("a save has overwritten what others have saved \(cause)")
            } catch let error as CocoaError
                where error.code == (isOtherStore ? .persistentStoreOperation : .managedObjectMerge)
            {
                run.count("replaced-contents")
            } catch {
                run.find("a save gave \(describe(error)) \(cause)")
            }
        }
        try run.close(stack)
        let (reader, wanted) = (try run.open(at: url), Bank.opening + others)
        let sum = try Bank.total(reader.context())
        if sum != wanted { run.find("after contents were replaced \(sum) is stored, not \(wanted)") }
        try run.close(reader)
        try run.audit("after contents were replaced", of: url)
    }

    /// Changes the account through another coordinator, as another process does.
    private static func change(_ run: Run, _ url: URL) throws {
        let stack = try run.open(at: url)
        let context = stack.context()
        try context.performAndWait { () throws in
            try account(context).balance += others
            try context.save()
        }
        try run.close(stack)
    }

    private static func account(_ context: NSManagedObjectContext) throws -> Account {
        guard let account = try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first else {
            throw StressError("there is no account")
        }
        return account
    }

    /// A file in a new folder.
    private static func place(_ run: Run, _ name: String) throws -> URL {
        let folder = run.folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder.appendingPathComponent("store.sqlite")
    }
}
