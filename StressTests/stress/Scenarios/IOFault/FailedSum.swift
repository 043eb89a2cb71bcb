import CoreData

/// Adds to a value whose read fails, and saves when the disk works again.
///
/// No sum may be stored that was computed with zero. Each read of a file that a sum needs fails in turn, once or
/// until the sum is made.
enum FailedSum {
    private enum Way: String, CaseIterable {
        /// An account adds to its own balance.
        case own = "its own"
        /// An account that was read before adds the balance of one that was not.
        case other = "another one's"
    }

    private static let opening: Int64 = 1_000
    private static let amount: Int64 = 5
    /// There are so many accounts that the first and the last one are on different pages of the file.
    private static let size = 600
    /// No row needs more reads of a file.
    private static let most = 40

    /// Makes all sums.
    ///
    /// - Throws: Errors that no fault has caused.
    static func run(_ run: Run) throws {
        let url = run.folder.appendingPathComponent("sums.sqlite")
        defer {
            FaultFileSystem.arm(FaultFileSystem.Plan())
            for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) }
        }
        var balances = [opening, opening]
        let places = try fill(run, url)
        for way in Way.allCases {
            for isSticky in [false, true] {
                var point = 1
                while point <= most, try add(run, url, places, way, isSticky, point, &balances) { point += 1 }
                // If no read has failed, then nothing is proved.
                if point == 1 { run.find("a sum with a balance, \(way.rawValue): nothing is read that can fail") }
                run.count("failed-sums", point - 1)
            }
        }
    }

    /// Stores the accounts.
    ///
    /// - Returns: The URIs of the first and the last one.
    private static func fill(_ run: Run, _ url: URL) throws -> [URL] {
        let stack = try run.open(at: url)
        try Bank.open(stack, size)
        let ids = try Bank.accountIDs(stack.context())
        try run.close(stack)
        return [ids[0], ids[size - 1]].map { $0.uriRepresentation() }
    }

    /// Makes one sum while the disk fails, and saves it afterwards.
    ///
    /// A refused save must succeed after a rollback.
    ///
    /// - Parameters:
    ///   - run: Collects the findings.
    ///   - url: The store.
    ///   - places: The two accounts.
    ///   - way: The way to make the sum.
    ///   - isSticky: Whether all reads fail from the point on.
    ///   - point: The first read that fails.
    ///   - balances: The balances of the two accounts.
    /// - Returns: Whether a read has failed: there may be fewer reads than `point`.
    /// - Throws: Errors that no fault has caused.
    private static func add(
        _ run: Run,
        _ url: URL,
        _ places: [URL],
        _ way: Way,
        _ isSticky: Bool,
        _ point: Int,
        _ balances: inout [Int64]
    ) throws -> Bool {
        let stack = try run.open(at: url)
        run.watchdog.beat(0, "a sum of what cannot be read")
        // Errors of calls that cannot throw would be printed.
        stack.unreportableErrorHandler = { _, _ in }
        let context = stack.context()
        let accounts = try context.performAndWait { () throws -> [Account] in
            try places.map { place -> Account in
                guard let id = stack.managedObjectID(forURIRepresentation: place),
                    let account = context.object(with: id) as? Account
                else { throw StressError("an account is of another class") }
                return account
            }
        }
        let (first, last) = (accounts[0], accounts[1])
        if way == .other { try context.performAndWait { () throws in _ = last.balance } }
        func sum() {
            switch way {
            case .own: first.balance += amount
            case .other: last.balance += first.balance
            }
        }
        FaultFileSystem.arm(FaultFileSystem.Plan(point: point, isSticky: isSticky, operations: .reads))
        // The program goes on after the error.
        try? context.performAndWait { () throws in sum() }
        let hasFailed = FaultFileSystem.counts.failures > 0
        FaultFileSystem.arm(FaultFileSystem.Plan())
        let name = "a sum with a balance, \(way.rawValue), whose read \(point) fails\(isSticky ? " for good" : "")"
        let refusal = context.performAndWait { () -> (any Error)? in Self.failure { try context.save() } }
        if let refusal {
            run.count("refused-sums")
            if (refusal as? CocoaError)?.code != .persistentStoreSave {
                run.find("\(name): saving without faults gave \(describe(refusal))")
            }
            let failure = context.performAndWait { () -> (any Error)? in
                context.rollback()
                sum()
                return Self.failure { try context.save() }
            }
            if let failure { run.find("\(name): saving after a rollback gave \(describe(failure))") }
        }
        try run.close(stack)
        switch way {
        case .own: balances[0] += amount
        case .other: balances[1] += balances[0]
        }
        let stored = try look(run, url, places)
        if stored != balances {
            run.find("\(name): \(stored) are stored, not \(balances): computed from what was not read")
            balances = stored
        }
        return hasFailed
    }

    /// The error of a call; `nil` if it succeeds.
    private static func failure(_ body: () throws -> Void) -> (any Error)? {
        do { try body() } catch { return error }
        return nil
    }

    /// The balances of the two accounts.
    private static func look(_ run: Run, _ url: URL, _ places: [URL]) throws -> [Int64] {
        let stack = try run.open(at: url)
        run.watchdog.beat(0, "looking at a sum")
        let context = stack.context()
        let balances = try context.performAndWait { () throws -> [Int64] in
            try places.map { place -> Int64 in
                guard let id = stack.managedObjectID(forURIRepresentation: place),
                    let account = try context.existingObject(with: id) as? Account
                else { throw StressError("an account is of another class") }
                return account.balance
            }
        }
        try run.close(stack)
        return balances
    }
}
