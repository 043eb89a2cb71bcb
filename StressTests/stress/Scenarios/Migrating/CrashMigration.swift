import CoreData

/// A life of `crash` that migrates a store to the next version and back until it is killed.
enum CrashMigration {
    /// The most migrations in a life.
    ///
    /// They are enough to reach each point, whatever is counted.
    private static let most = 100

    /// Runs until it is killed.
    ///
    /// - Parameter arguments: The store, its ledger of migrations, how the process dies, and the name of a sabotage.
    /// - Throws: Errors that no process may meet here.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 3, let death = CrashDeath(arguments[2]) else {
            throw StressError("child migration needs a store, a ledger and a death")
        }
        if arguments.count > 3 { FaultPoints.switchOff(arguments[3]) }
        let url = URL(fileURLWithPath: arguments[0])
        var number = (Ledger(reading: arguments[1]).lastBegun ?? 1) / 2
        let ledger = try Ledger.Writer(arguments[1])
        death.arm()
        // A file that was not finished is made anew.
        var isNext = ((try? NextModel.isVersion(of: url)) ?? false) != true
        for _ in 0..<most {
            number += 1
            let entry = number * 2 + (isNext ? 1 : 0)
            ledger.note("i", entry)
            try NextModel.visit(url, isNext: isNext, [NSPersistentHistoryTrackingKey: true])
            ledger.note("a", entry)
            isNext.toggle()
        }
        throw StressError("\(arguments[2]) was not reached in \(most) migrations")
    }

    /// Checks the version of a store in which such lives have died.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - ledger: The ledger of its migrations.
    ///   - point: The named point at which the last life died, if it was at one.
    /// - Returns: The fault; `nil` if there is none.
    static func problem(_ url: URL, ledger: String, point: String?) -> String? {
        let log = Ledger(reading: ledger)
        guard let last = log.lastBegun else { return nil }
        let version: Bool?
        do { version = try NextModel.isVersion(of: url) } catch {
            return log.acknowledged.isEmpty ? nil : "the metadata of the store cannot be read: \(describe(error))"
        }
        guard let isNext = version else { return "the store has neither version" }
        let wanted = last % 2 == 1
        let name = isNext ? "the next version" : "the first version"
        if log.acknowledged.contains(last) {
            return isNext == wanted ? nil : "the store has \(name) after a migration away from it was acknowledged"
        }
        guard let point, point.hasPrefix("migration.") else { return nil }
        let isCommitted = !FaultPoints.failing.contains(point)
        return (isNext == wanted) == isCommitted ? nil : "the store has \(name) after a death at \(point)"
    }
}
