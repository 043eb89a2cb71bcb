import CoreData

/// A process saves and is killed, again and again, on the same file: every acknowledged save is there, and one that was under way
/// wholly or not at all, with its entry in the history.
enum Crash: Scenario {
    static let name = "crash"
    static let summary = "kills a saving process, by time or at the n-th file operation: acknowledged saves are there"
    static let stores = [StoreKind.sqlite]
    static let work = (figure: "lives", floor: 4)
    static let lives = Knob("lives", 0, "lives to end after; 0 to go on until the time is over")
    static let knobs = [lives]
    static let sabotages = [Sabotage("early-acknowledgement", "acknowledged")]

    /// So many lives share a file, so that looking at it stays quick.
    private static let livesOfFile = 20

    static func run(_ run: Run) throws {
        var stream = run.stream(0)
        let limit = run.knob(lives)
        var file = CrashedFile(run, 0)
        var life = 0
        while limit > 0 ? life < limit : !run.isOver {
            run.watchdog.beat(0, "a life")
            if life > 0, life % livesOfFile == 0 { file = CrashedFile(run, life) }
            life += 1
            let usesPoint = stream.chance(0.5)
            let point = usesPoint ? 1 + stream.below(400) : 0
            let child = try Child(
                ["child", "crash", file.url.path, file.ledger, "\(stream.next() >> 1)", "\(point)"]
                    + (run.isSabotaged("early-acknowledgement") ? ["early"] : []),
                output: FileHandle.standardError
            )
            if !usesPoint {
                usleep(UInt32(20_000 + stream.below(150_000)))
                child.kill()
            }
            let status = child.wait()
            if status != -SIGKILL { run.find("life \(life) ended with \(status), not by the signal") }
            run.count("lives")
            run.count(usesPoint ? "killed-at-point" : "killed-by-time")
            try file.check(life)
        }
        run.watchdog.leave(0)
    }
}

/// A file that processes have died on, and what is known of it.
struct CrashedFile {
    let url: URL
    let ledger: String
    private let run: Run
    /// How far the history was read.
    private var token: NSPersistentHistoryToken?
    private var lastNumber: Int64 = 0
    /// The saves that the history has told of.
    private var told: Set<Int64> = []
    /// What was counted of this file before.
    private var counted = (saves: 0, doubts: 0)

    /// Names a new file, after the life that begins it.
    init(_ run: Run, _ life: Int) {
        self.run = run
        let folder = run.folder.appendingPathComponent("from-\(life)")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        url = folder.appendingPathComponent("store.sqlite")
        ledger = run.folder.appendingPathComponent("ledger-\(life)").path
    }

    /// Opens what a life has left, and compares it with its ledger.
    mutating func check(_ life: Int) throws {
        let log = Ledger(reading: ledger)
        guard FileManager.default.fileExists(atPath: url.path) else {
            if !log.acknowledged.isEmpty { run.find("life \(life): there is no file, but saves were acknowledged") }
            return
        }
        run.count("recoveries", FileManager.default.fileExists(atPath: url.path + "-wal") ? 1 : 0)
        var tally = Tally()
        let opened = ContinuousClock.now
        let stack = try run.open([NSPersistentHistoryTrackingKey: true], at: url)
        tally.time("open", .now - opened)
        let context = stack.context()
        try context.performAndWait {
            let there = try look(context, log, life, &tally)
            try follow(context, there, life, &tally)
        }
        try run.close(stack)
        try run.audit("life \(life)", of: url)
        let (saves, doubts) = (log.acknowledged.count, log.begun.subtracting(log.acknowledged).count)
        tally.count("saves", saves - counted.saves)
        tally.count("in-doubt", doubts - counted.doubts)
        counted = (saves, doubts)
        run.add(tally)
    }

    /// The saves that are there, whole.
    private func look(
        _ context: NSManagedObjectContext,
        _ log: Ledger,
        _ life: Int,
        _ tally: inout Tally
    ) throws -> Set<Int64> {
        let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
        let marks = try context.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
        let groups = Dictionary(grouping: nodes, by: \.serial).mapValues { $0.map(\.first).sorted() }
        let batches = Dictionary(grouping: marks, by: \.serial).mapValues(\.count)
        let there = Set(groups.keys).union(batches.keys)
        for save in log.acknowledged where !there.contains(save) {
            tally.find("life \(life): save \(save), acknowledged, is missing")
        }
        for save in there where !log.begun.contains(save) {
            tally.find("life \(life): save \(save) is unknown to the ledger")
        }
        for (save, members) in groups where members != (0..<CrashChild.size(of: save)).map(Int64.init) {
            tally.find("life \(life): save \(save) is torn: \(members)")
        }
        for (save, count) in batches where count != CrashChild.size(of: save) {
            tally.find("life \(life): batch \(save) is torn: \(count) of \(CrashChild.size(of: save)) objects")
        }
        // Each save counts on one object; the sum is the number of saves that are there.
        let count = try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first?.balance ?? 0
        if count != Int64(groups.count) { tally.find("life \(life): \(count) saves counted, \(groups.count) there") }
        tally.count("batches", batches.count - told.count { CrashChild.isBatch($0) })
        return there
    }

    /// The history tells of the same saves, each once, with numbers that never go back.
    private mutating func follow(
        _ context: NSManagedObjectContext,
        _ there: Set<Int64>,
        _ life: Int,
        _ tally: inout Tally
    ) throws {
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
        if told != there {
            let (more, less) = (told.subtracting(there).count, there.subtracting(told).count)
            tally.find("life \(life): the history tells of \(more) saves that are not there, and not of \(less)")
        }
        // Half of the history is kept, so that the next life appends to one that was purged and to one that was not.
        guard life % 2 == 0, let token else { return }
        _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: token))
    }
}
