import CoreData

/// A process saves and is killed, again and again, on the same file: every acknowledged save is there, and a save that was
/// under way wholly or not at all.
enum Crash: Scenario {
    static let name = "crash"
    static let summary = "kills a saving process, by time or at the n-th file operation: acknowledged saves are there"
    static let stores = [StoreKind.sqlite]
    static let work = (figure: "lives", floor: 4)
    static let lives = Knob("lives", 0, "lives to end after; 0 to go on until the time is over")
    static let knobs = [lives]
    static let sabotages = [Sabotage("early-acknowledgement", "acknowledged")]

    static func run(_ run: Run) throws {
        let ledger = run.folder.appendingPathComponent("ledger").path
        var stream = run.stream(0)
        let limit = run.knob(lives)
        var life = 0
        while limit > 0 ? life < limit : !run.isOver {
            run.watchdog.beat(0, "a life")
            life += 1
            let usesPoint = stream.chance(0.5)
            let point = usesPoint ? 1 + stream.below(400) : 0
            let child = try Child(
                ["child", "crash", run.storeURL.path, ledger, "\(stream.next() >> 1)", "\(point)"]
                    + (run.isSabotaged("early-acknowledgement") ? ["early"] : [])
            )
            if !usesPoint {
                usleep(UInt32(20_000 + stream.below(150_000)))
                child.kill()
            }
            let status = child.wait()
            if status != -SIGKILL { run.find("life \(life) ended with \(status), not by the signal") }
            run.count("lives")
            run.count(usesPoint ? "killed-at-point" : "killed-by-time")
            try check(run, ledger, life)
        }
        run.watchdog.leave(0)
    }

    /// Opens what a life has left, and compares it with its ledger.
    private static func check(_ run: Run, _ ledger: String, _ life: Int) throws {
        let log = Ledger(reading: ledger)
        guard FileManager.default.fileExists(atPath: run.storeURL.path) else {
            if !log.acknowledged.isEmpty { run.find("life \(life): there is no file, but saves were acknowledged") }
            return
        }
        let hadLog = FileManager.default.fileExists(atPath: run.storeURL.path + "-wal")
        run.count("recoveries", hadLog ? 1 : 0)
        let opened = ContinuousClock.now
        let stack = try run.open()
        var tally = Tally()
        tally.time("open", .now - opened)
        let context = stack.context()
        let groups: [Int64: [Int64]] = try context.performAndWait {
            let all = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
            return Dictionary(grouping: all, by: \.serial).mapValues { $0.map(\.first).sorted() }
        }
        for save in log.acknowledged where groups[save] == nil {
            tally.find("life \(life): save \(save), acknowledged, is missing")
        }
        for (save, members) in groups {
            if !log.begun.contains(save) { tally.find("life \(life): save \(save) is unknown to the ledger") }
            let size = CrashChild.size(of: save)
            if members != (0..<size).map(Int64.init) {
                tally.find("life \(life): save \(save) is torn: \(members.count) of \(size) objects")
            }
        }
        // Each save counts on one object; the sum is the number of saves that are there.
        let count = try context.performAndWait {
            try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first?.balance ?? 0
        }
        if count != Int64(groups.count) { tally.find("life \(life): \(count) saves counted, \(groups.count) there") }
        try run.close(stack)
        try run.audit("life \(life)")
        // The figures of all lives are those of the ledger, which goes on.
        let before = run.figure("saves")
        tally["saves"] = log.acknowledged.count - before
        tally["in-doubt"] = log.begun.subtracting(log.acknowledged).count - run.figure("in-doubt")
        run.add(tally)
    }
}

/// What a process that may be killed has written down: a line before each save, and one after it.
struct Ledger {
    private(set) var begun: Set<Int64> = []
    private(set) var acknowledged: Set<Int64> = []
    private(set) var lastBegun: Int64?

    init(reading path: String) {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") {
            guard let number = Int64(line.dropFirst(2)) else { continue }
            if line.hasPrefix("i") {
                begun.insert(number)
                lastBegun = number
            } else {
                acknowledged.insert(number)
            }
        }
    }

    /// Writes through to the system, which a killed process does not take with it.
    struct Writer {
        private let file: Int32

        init(_ path: String) throws {
            file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            guard file >= 0 else { throw StressError("\(path) cannot be written") }
        }

        func note(_ mark: Character, _ number: Int64) {
            let line = Array("\(mark) \(number)\n".utf8)
            _ = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
    }
}

/// The process that saves until it is killed.
enum CrashChild {
    /// How many objects a save has.
    static func size(of save: Int64) -> Int { 1 + Int(save % 17) }

    /// Runs until it is killed.
    ///
    /// - Parameter arguments: The store, the ledger, the seed, the file operation to die at or 0, `early` for a sabotage.
    /// - Throws: What no process should meet here.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 4, let seed = UInt64(arguments[2]), let point = Int(arguments[3]) else {
            throw StressError("child crash needs a store, a ledger, a seed and a number")
        }
        if point > 0 { FaultFileSystem.install(.killing(at: point)) }
        var stream = SeededStream(seed: seed, stream: 0)
        let ledger = try Ledger.Writer(arguments[1])
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        // A small log, so that checkpoints come often.
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: URL(fileURLWithPath: arguments[0]),
            options: [NSSQLitePragmasOption: ["wal_autocheckpoint": stream.chance(0.5) ? "8" : "1000"]]
        )
        let context = coordinator.context()
        try context.performAndWait {
            let accounts = try context.fetch(NSFetchRequest<Account>(entityName: "Account"))
            let counter = accounts.first ?? Account(context: context)
            while true {
                let save = Int64(stream.next() >> 20)
                for place in 0..<size(of: save) {
                    let node = Node(context: context)
                    node.serial = save
                    node.first = Int64(place)
                    node.label = String(repeating: "x", count: stream.below(600))
                }
                counter.balance += 1
                ledger.note("i", save)
                if arguments.count > 4 { ledger.note("a", save) }
                try context.save()
                if arguments.count <= 4 { ledger.note("a", save) }
            }
        }
    }
}
