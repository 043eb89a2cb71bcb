import CoreData
import Expectations
import TestSupport
import Testing

/// Fetches with a lock and a `fetchLimit`, whose rows others lock, change or delete meanwhile.
@Suite("Row locks within a limit")
struct RowLockWindowTests {
    /// The parts of a request that a database computes, or that the process does.
    enum Shape: CaseIterable {
        case computedByTheDatabase
        case examinedByTheProcess
        case sortedByTheProcess

        /// A request for the accounts whose value is 0, in the order of their names.
        func request(limit: Int, offset: Int = 0, _ lock: RowLock) -> NSFetchRequest<NSManagedObject> {
            let examines = self == .examinedByTheProcess
            let request = RowLockTests.accounts(examines ? "value == 0 AND name MATCHES 'a.*'" : "value == 0", lock)
            if self == .sortedByTheProcess {
                let byName = NSSortDescriptor(key: "name", ascending: true, selector: "localizedStandardCompare:")
                request.sortDescriptors = [byName]
            }
            (request.fetchLimit, request.fetchOffset) = (limit, offset)
            return request
        }
    }

    private static let waiting = RowLock(.update)
    private static let skipping = RowLock(.update, lockedRows: .skip)

    private static func names(_ request: NSFetchRequest<NSManagedObject>, _ context: NSManagedObjectContext) throws
        -> [String]
    {
        try context.fetch(request).map { $0.value(forKey: "name") as? String ?? "nil" }
    }

    /// The names that a fetch finds after it has waited for a row, which the one before it changes and saves.
    private static func namesAfterWait(
        for name: String,
        _ bank: RowLockTests.Bank,
        _ request: NSFetchRequest<NSManagedObject>,
        _ change: @escaping @Sendable (NSManagedObject) -> Void
    ) throws -> [String] {
        let (hasLocked, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let other = bank.other("holder")
        let holder = onThread {
            try other.performAndWait(locking: .seconds(300)) {
                let account = try require(other.fetch(RowLockTests.accounts("name == '\(name)'", waiting)).first)
                hasLocked.signal()
                mayEnd.wait()
                change(account)
                try other.save()
            }
        }
        try require(hasLocked.wait(timeout: .now() + 30) == .success)
        let found = Shared<[String]>([])
        let (context, sent) = (bank.stack.context(), UncheckedSendable(request))
        let thread = onThread {
            try context.performAndWait(locking: .seconds(300)) {
                let names = try names(sent.value, context)
                found.update { $0 = names }
            }
        }
        // The fetch waits by now.
        usleep(300_000)
        mayEnd.signal()
        try holder.join()
        try thread.join()
        return found.current
    }

    @Test(arguments: StoreKind.allCases, Shape.allCases)
    func `a row that no longer matches after the wait makes room for the next one`(_ kind: StoreKind, _ shape: Shape)
        throws
    {
        let bank = try RowLockTests.Bank(kind, accounts: 5)
        let two = shape.request(limit: 2, Self.waiting)
        try expectEqual(
            Self.namesAfterWait(for: "a0", bank, two) { RowLockTests.add(1, to: $0) },
            ["a1", "a2"]
        )
        let afterOne = shape.request(limit: 2, offset: 1, Self.waiting)
        try expectEqual(
            Self.namesAfterWait(for: "a2", bank, afterOne) { RowLockTests.add(1, to: $0) },
            ["a3", "a4"]
        )
        try expectEqual(bank.values(), [1, 0, 1, 0, 0])
    }

    @Test(arguments: StoreKind.allCases, Shape.allCases)
    func `a row that was deleted during the wait makes room for the next one, and fewer rows than the limit remain`(
        _ kind: StoreKind,
        _ shape: Shape
    ) throws {
        let bank = try RowLockTests.Bank(kind, accounts: 4)
        let two = shape.request(limit: 2, Self.waiting)
        try expectEqual(
            Self.namesAfterWait(for: "a1", bank, two) { $0.managedObjectContext?.delete($0) },
            ["a0", "a2"]
        )
        let ten = shape.request(limit: 10, Self.waiting)
        try expectEqual(
            Self.namesAfterWait(for: "a0", bank, ten) { $0.managedObjectContext?.delete($0) },
            ["a2", "a3"]
        )
    }

    @Test(arguments: StoreKind.allCases, Shape.allCases)
    func `the rows of a limit are those that others have not locked, if the fetch leaves out locked ones`(
        _ kind: StoreKind,
        _ shape: Shape
    ) throws {
        let bank = try RowLockTests.Bank(kind, accounts: 6)
        let holder = try bank.hold(Self.waiting, "name IN {'a0', 'a2'}")
        let context = bank.stack.context()
        try context.performAndWait(locking: .seconds(300)) {
            // A block locks the whole store, unless single rows can be locked.
            let hasRows = kind == .postgreSQL
            let two = shape.request(limit: 2, Self.skipping)
            try expectEqual(Self.names(two, context), hasRows ? ["a1", "a3"] : [])
            let afterOne = shape.request(limit: 2, offset: 1, Self.skipping)
            try expectEqual(Self.names(afterOne, context), hasRows ? ["a3", "a4"] : [])
            try expectEqual(
                Self.names(shape.request(limit: 9, offset: 3, Self.skipping), context),
                hasRows ? ["a5"] : []
            )
        }
        try holder.end()
        try context.performAndWait(locking: .seconds(300)) {
            try expectEqual(Self.names(shape.request(limit: 2, offset: 1, Self.skipping), context), ["a1", "a2"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a limit is filled behind any number of locked rows`(_ kind: StoreKind) throws {
        let bank = try RowLockTests.Bank(kind, accounts: 300)
        // These are 201 of the names.
        let holder = try bank.hold(Self.waiting, "name < 'a28'")
        let context = bank.stack.context()
        try context.performAndWait(locking: .seconds(300)) {
            let request = Shape.examinedByTheProcess.request(limit: 3, Self.skipping)
            try expectEqual(Self.names(request, context), kind == .postgreSQL ? ["a28", "a280", "a281"] : [])
            request.fetchLimit = 0
            try expectEqual(Self.names(request, context).count, kind == .postgreSQL ? 99 : 0)
        }
        try holder.end()
    }
}
