import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// A file on which processes have died, with what is known about it.
struct CrashedFile {
    let url: URL
    let ledger: String
    /// The ledger of the processes that migrate the file.
    let migrations: String
    /// The named point at which the last life died, if it was at one.
    private var lastPoint: String?
    /// Whether the last life has begun a migration.
    private var hasMigrated = false
    private var knownMigrations = 0
    /// Whether a life has left something that was not checked yet.
    private(set) var isHot = false
    private let run: Run
    /// How far the history was read: its last token and number.
    private var token: NSPersistentHistoryToken?
    private var lastNumber: Int64 = 0
    /// The saves that were in the history.
    private var told: Set<Int64> = []
    /// The saves that were missing when they were looked for, and must not come back.
    private var lost: Set<Int64> = []
    /// The saves during which a process died at a named point, and whether they were committed by then.
    private var fates: [Int64: (isCommitted: Bool, point: String)] = [:]
    /// The numbers of saves of this file that were counted before.
    private var counted = (saves: 0, doubts: 0)
    /// The numbers of saves in the ledger when the last life ended.
    private var known = (begun: 0, acknowledged: 0)

    /// Names a new file after the life that begins it.
    init(_ run: Run, _ life: Int) {
        self.run = run
        let folder = run.folder.appendingPathComponent("from-\(life)")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        url = folder.appendingPathComponent("store.sqlite")
        ledger = run.folder.appendingPathComponent("ledger-\(life)").path
        migrations = run.folder.appendingPathComponent("migrations-\(life)").path
    }

    /// Records that a life has ended, and what its death means for the save that was under way.
    mutating func noteEnd(_ death: CrashDeath) {
        let migrated = Ledger(reading: migrations).entries.count
        hasMigrated = migrated > knownMigrations
        knownMigrations = migrated
        let log = Ledger(reading: ledger)
        // If it has saved nothing, then it died while it opened the file that another life had left.
        run.count("died-opening-hot", isHot && log.entries.count == known.begun ? 1 : 0)
        isHot = true
        lastPoint = nil
        if case .named(let point, _) = death { lastPoint = point }
        run.count("saving-lives", log.acknowledged.count > known.acknowledged ? 1 : 0)
        if log.entries.count > known.begun, let save = log.lastBegun, !log.acknowledged.contains(save),
            case .named(let point, _) = death, !point.hasPrefix("checkpoint")
        {
            fates[save] = (!FaultPoints.failing.contains(point), point)
        }
        known = (log.entries.count, log.acknowledged.count)
    }

    /// Opens the file that lives have left, and compares it with their ledger.
    mutating func check(_ life: Int) throws {
        isHot = false
        let log = Ledger(reading: ledger)
        guard run.kind == .postgresql || FileManager.default.fileExists(atPath: url.path) else {
            if !log.acknowledged.isEmpty { run.find("life \(life): there is no file, but saves were acknowledged") }
            return
        }
        run.count("recoveries", FileManager.default.fileExists(atPath: url.path + "-wal") ? 1 : 0)
        var tally = Tally()
        let opened = ContinuousClock.now
        let stack: NSPersistentStoreCoordinator
        do {
            // A life that saves brings the file back to the first version with a migration that no ledger has.
            if hasMigrated,
                let problem = CrashMigration.problem(url, ledger: migrations, point: lastPoint)
            {
                run.find("life \(life): \(problem)")
            }
            // A server that has lost a session may still be recovering.
            stack = try ServerPatience(isNeeded: run.kind == .postgresql).trying {
                try run.open(NextModel.options.merging([NSPersistentHistoryTrackingKey: true]) { $1 }, at: url)
            }
        } catch { return run.find("life \(life): opening the file gave \(describe(error))") }
        tally.time("open", .now - opened)
        let context = stack.context()
        try context.performAndWait {
            let batches = told.count { CrashStep.isBatch($0) }
            try follow(context, life, &tally)
            tally.count("batches", told.count { CrashStep.isBatch($0) } - batches)
            settle(log, life, &tally)
            try CrashedRows(log, told: told).compare(context, "life \(life)", &tally)
        }
        try run.close(stack)
        try audit(life)
        let (saves, doubts) = (log.acknowledged.count, log.begun.subtracting(log.acknowledged).count)
        tally.count("saves", saves - counted.saves)
        tally.count("in-doubt", doubts - counted.doubts)
        counted = (saves, doubts)
        run.add(tally)
    }

    /// Reads the history: it must contain each save once, with numbers that never go back.
    private mutating func follow(_ context: NSManagedObjectContext, _ life: Int, _ tally: inout Tally) throws {
        let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
        let transactions = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
        for transaction in transactions {
            if transaction.transactionNumber != lastNumber + 1 {
                tally.find("life \(life): transaction \(transaction.transactionNumber) comes after \(lastNumber)")
            }
            lastNumber = transaction.transactionNumber
            token = transaction.token
            guard let save = transaction.author.flatMap({ Int64($0) }) else { continue }
            if !told.insert(save).inserted { tally.find("life \(life): the history tells of save \(save) twice") }
        }
        // Half of the histories are purged, so that the next life appends to purged ones and to others.
        guard life % 2 == 0, let token else { return }
        _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: token))
    }

    /// Compares the saves in the history with those that were begun, acknowledged, or found missing before.
    private mutating func settle(_ log: Ledger, _ life: Int, _ tally: inout Tally) {
        for save in log.acknowledged.subtracting(told).sorted() {
            tally.find("life \(life): save \(save), acknowledged, is missing in the history")
        }
        for save in told.subtracting(log.begun).sorted() {
            tally.find("life \(life): the history tells of save \(save), which is unknown to the ledger")
        }
        for save in told.intersection(lost).sorted() {
            tally.find("life \(life): save \(save) has come back after it was found missing")
        }
        for (save, fate) in fates.sorted(by: { $0.key < $1.key }) where told.contains(save) != fate.isCommitted {
            let there = fate.isCommitted ? "missing" : "there"
            tally.find("life \(life): save \(save) is \(there) after a death at \(fate.point)")
        }
        fates = [:]
        lost = log.begun.subtracting(told)
    }

    /// Checks the file as `strata verify` does.
    ///
    /// Nothing but external data of lost saves may be left over.
    private func audit(_ life: Int) throws {
        guard run.kind == .sqlite else { return try run.audit("life \(life)", of: url) }
        for suffix in ["-wal", "-journal"] where FileManager.default.fileExists(atPath: url.path + suffix) {
            run.find("life \(life): \(suffix) is left behind by a store that was closed")
        }
        for problem in try StoreVerifier(storeURL: url, model: StressModel.shared).problems() {
            if problem.hasSuffix("belongs to no row") { continue }
            run.find("life \(life): \(problem)")
        }
    }
}
