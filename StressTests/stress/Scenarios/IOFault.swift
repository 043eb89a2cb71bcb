import CStrataSQLite
import CoreData

/// Fails each file operation of a fixed script in turn, once or from then on: every call gives a documented error or
/// succeeds, what was acknowledged is there, and the context can go on once the fault is gone.
enum IOFault: Scenario {
    static let name = "iofault"
    static let summary = "fails every file operation of a script in turn: no acknowledged save is lost, none is torn"
    static let stores = [StoreKind.sqlite]
    static let seconds = 20.0
    static let work = (figure: "points", floor: 20)
    static let stride = Knob("stride", 0, "operations from one failing point to the next; 0 to fit the time")
    static let knobs = [stride]
    static let sabotages = [Sabotage("lying-disk", "point")]

    /// Codes of errors that an I/O fault may end in, as documented.
    private static let documented: Set<CocoaError.Code> = [
        .sqlite, .fileWriteOutOfSpace, .fileReadCorruptFile, .persistentStoreOpen, .fileReadNoSuchFile,
        .persistentStoreTimeout,
    ]

    static func run(_ run: Run) throws {
        FaultFileSystem.install(FaultFileSystem.Plan())
        let whole = try script(run, "dry", FaultFileSystem.Plan(countsReads: true))
        if whole != 12 { run.find("without faults \(whole) of 12 saves succeed") }
        let length = FaultFileSystem.counts.operations
        run.count("operations", length)
        let kinds: [(name: String, plan: FaultFileSystem.Plan)] = [
            ("no space, once", FaultFileSystem.Plan(code: SQLITE_FULL, countsReads: false)),
            ("I/O error, once", FaultFileSystem.Plan(code: SQLITE_IOERR, countsReads: true)),
            ("I/O error, for good", FaultFileSystem.Plan(isSticky: true, code: SQLITE_IOERR, countsReads: true)),
            ("no space, for good", FaultFileSystem.Plan(isSticky: true, code: SQLITE_FULL, countsReads: false)),
        ]
        // Every point if asked for; else as many as fit, spread over the script, from an offset that the seed draws.
        let step = run.knob(stride)
        var stream = run.stream(0)
        var points = Array(1...length)
        if step > 0 {
            points = Array(Swift.stride(from: 1, through: length, by: step))
        } else {
            points.shuffle(using: &stream)
        }
        for point in points {
            for (kind, plan) in kinds {
                guard step > 0 || !run.isOver else { break }
                run.watchdog.beat(0, "a script with a fault")
                var plan = plan
                plan.point = point
                plan.lies = run.isSabotaged("lying-disk")
                _ = try script(run, "\(kind) at point \(point)", plan)
                run.count("points")
                run.count("faults", FaultFileSystem.counts.failures)
            }
        }
        FaultFileSystem.arm(FaultFileSystem.Plan())
        run.watchdog.leave(0)
    }

    /// Opens, saves, fetches, closes; then, without faults, goes on, closes and looks at what is there.
    ///
    /// - Returns: How many saves succeeded under the fault.
    private static func script(_ run: Run, _ name: String, _ plan: FaultFileSystem.Plan) throws -> Int {
        FaultFileSystem.arm(FaultFileSystem.Plan())
        let url = run.folder.appendingPathComponent(UUID().uuidString + ".sqlite")
        let options: [AnyHashable: Any] = [NSSQLitePragmasOption: ["wal_autocheckpoint": "6", "synchronous": "FULL"]]
        defer {
            for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) }
        }
        func open() throws -> NSPersistentStoreCoordinator {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
            try coordinator.addPersistentStore(type: .sqlite, configuration: nil, at: url, options: options)
            return coordinator
        }
        func judge(_ error: any Error, _ doing: String) {
            let code = (error as? CocoaError)?.code
            if let code, documented.contains(code) { return run.count("errors") }
            run.find("\(name): \(doing) gave \(describe(error))")
        }
        FaultFileSystem.arm(plan)
        let first: NSPersistentStoreCoordinator
        do {
            first = try open()
        } catch {
            judge(error, "opening")
            FaultFileSystem.arm(FaultFileSystem.Plan())
            try run.close(try open())
            return 0
        }
        var acknowledged: Set<Int64> = []
        let context = first.context()
        context.performAndWait {
            var retry = false
            for save in 0..<12 {
                // After a failure the same changes are saved with the next ones.
                for place in 0..<4 {
                    let node = Node(context: context)
                    node.serial = Int64(save)
                    node.first = Int64(place)
                    node.label = String(repeating: "y", count: save * 90)
                }
                do {
                    try context.save()
                    if retry { acknowledged.formUnion((0..<Int64(save))) }
                    acknowledged.insert(Int64(save))
                    retry = false
                } catch {
                    judge(error, "saving")
                    if !context.hasChanges { run.find("\(name): a failed save has taken the changes") }
                    retry = true
                }
                do { _ = try context.count(for: NSFetchRequest<Node>(entityName: "Node")) } catch {
                    judge(error, "counting")
                }
            }
        }
        let counts = FaultFileSystem.counts
        FaultFileSystem.arm(FaultFileSystem.Plan())
        // The fault is gone: what is unsaved can be saved.
        context.performAndWait {
            do {
                try context.save()
                acknowledged.formUnion(0..<12)
            } catch { run.find("\(name): saving without faults gave \(describe(error))") }
        }
        try run.close(first)
        try look(run, name, url, open, acknowledged)
        FaultFileSystem.restore(counts)
        return acknowledged.count
    }

    private static func look(
        _ run: Run,
        _ name: String,
        _ url: URL,
        _ open: () throws -> NSPersistentStoreCoordinator,
        _ acknowledged: Set<Int64>
    ) throws {
        let stack: NSPersistentStoreCoordinator
        do { stack = try open() } catch { return run.find("\(name): opening again gave \(describe(error))") }
        let context = stack.context()
        context.performAndWait {
            do {
                let all = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                let groups = Dictionary(grouping: all, by: \.serial).mapValues { $0.map(\.first).sorted() }
                for save in acknowledged.sorted() where groups[save] != [0, 1, 2, 3] {
                    run.find("\(name): save \(save), acknowledged, is \(groups[save].map { "\($0)" } ?? "missing")")
                }
            } catch { run.find("\(name): fetching afterwards gave \(describe(error))") }
        }
        try run.close(stack)
        do {
            for problem in try StoreVerifier(storeURL: url, model: StressModel.shared).problems() {
                run.find("\(name): \(problem)")
            }
        } catch { run.find("\(name): checking the file gave \(describe(error))") }
    }
}
