import CoreData
import StrataLocks
import StrataSQLiteStore
import StrataStoreChecks
import Synchronization

/// A run of a scenario on one store: its seed, its time, its folder, and its findings so far.
final class Run: Sendable {
    let scenario: any Scenario.Type
    let options: StressOptions
    let kind: StoreKind
    /// The folder for stores and other files of the scenario; it is removed at the end.
    let folder: URL
    /// The number of this process among those that take part: 0 for the one that judges.
    let machine: Int
    let watchdog: Watchdog
    let start = ContinuousClock.now
    /// The end of the run's time.
    let end: ContinuousClock.Instant
    /// The latest end, if the run goes on to reach its floor.
    private let lastEnd: ContinuousClock.Instant
    private let sum = Locked(Tally())
    /// The places at which stores were opened.
    private let places = Locked<Set<URL>>([])
    /// The amount of the scenario's work that is done, including that of workers that have not finished.
    private let done = Atomic(0)

    /// Makes a folder and starts the watchdog.
    ///
    /// - Parameters:
    ///   - scenario: The scenario to run.
    ///   - options: The options of the command line.
    ///   - kind: The kind of store.
    ///   - folder: The run's folder, if another process has made it.
    ///   - machine: The number of this process among those of the run.
    /// - Throws: If the folder cannot be made.
    init(
        _ scenario: any Scenario.Type,
        _ options: StressOptions,
        _ kind: StoreKind,
        in folder: URL? = nil,
        machine: Int = 0
    ) throws {
        self.scenario = scenario
        self.options = options
        self.kind = kind
        let name = "strata-\(scenario.name)-" + UUID().uuidString
        self.folder = folder ?? URL(fileURLWithPath: options.folder).appendingPathComponent(name)
        self.machine = machine
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        watchdog = Watchdog(limit: options.stall)
        let seconds = options.seconds ?? scenario.seconds
        end = start + .seconds(seconds)
        lastEnd = end + .seconds(min(seconds * 9, 60))
        watchdog.start()
        if let sabotage = options.sabotage { FaultPoints.switchOff(sabotage) }
    }

    /// Runs the scenario.
    ///
    /// - Returns: The report of the run.
    /// - Throws: Errors that keep the scenario from running.
    func report() throws -> Report {
        defer {
            watchdog.stop()
            if kind == .postgresql, !options.keepsFolder {
                for url in places.withLock({ $0 }) {
                    // An error does not matter: at worst a schema is left on a server of this run.
                    try? NSPersistentStoreCoordinator(managedObjectModel: NSManagedObjectModel())
                        .destroyPersistentStore(at: url, type: kind.type, options: nil)
                }
            }
            // If the folder cannot be removed, then it stays in the temporary folder.
            if !options.keepsFolder { try? FileManager.default.removeItem(at: folder) }
        }
        try scenario.run(self)
        let tally = tally
        let took = ContinuousClock.now - start
        return Report(
            scenario: scenario.name,
            seed: options.seed,
            store: kind.rawValue,
            contexts: options.contexts,
            seconds: Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18,
            options: scenario.knobs.map { ($0.name, knob($0)) },
            tally: tally,
            isBelowFloor: scenario.works(on: kind).contains { tally[$0.figure] < options.floor ?? $0.floor }
        )
    }

    var isOver: Bool { ContinuousClock.now >= end || hasDoneEnough }

    /// Like ``isOver``, for a scenario whose steps take long on a busy machine: to reach its floor, it goes on for up
    /// to nine times its time, and for a minute at most.
    var isOverAndProven: Bool {
        hasDoneEnough || isOver && (hasReachedFloor || ContinuousClock.now >= lastEnd)
    }

    private var hasReachedFloor: Bool {
        scenario.works(on: kind).allSatisfy { figure($0.figure) >= options.floor ?? $0.floor }
    }

    /// Whether as much work is done as the command line asks for.
    var hasDoneEnough: Bool { options.ops.map { done.load(ordering: .relaxed) >= $0 } ?? false }

    /// The random stream of that number, the same in each run from this seed.
    ///
    /// Each process has its own streams, except those with negative numbers: they are the same in all processes, for
    /// what these have to agree on.
    func stream(_ number: Int) -> SeededStream {
        let number = number < 0 ? number : number + machine << 32
        return SeededStream(seed: options.seed, stream: UInt64(truncatingIfNeeded: number))
    }

    /// The work and the findings so far.
    var tally: Tally { sum.withLock { $0 } }

    func knob(_ knob: Knob) -> Int { options.knob(knob) }

    func isSabotaged(_ name: String) -> Bool { options.sabotage == name }

    // MARK: - Findings

    func find(_ text: String) { sum.withLock { $0.find(text) } }

    func count(_ name: String, _ number: Int = 1) {
        if name == scenario.work.figure { noteDone(number) }
        sum.withLock { $0.count(name, number) }
    }

    /// Adds work that a worker has counted for itself.
    func noteDone(_ number: Int) { done.add(number, ordering: .relaxed) }

    /// The value of a figure so far.
    func figure(_ name: String) -> Int { sum.withLock { $0[name] } }

    func add(_ tally: Tally) { sum.withLock { $0.add(tally) } }

    // MARK: - Stores

    var storeURL: URL { folder.appendingPathComponent("store.sqlite") }

    /// The place of the run's store, for a scenario that opens it in another way than by ``open(_:at:)``.
    var placeOfStore: URL {
        let place = kind.place(storeURL)
        places.withLock { _ = $0.insert(place) }
        return place
    }

    /// Returns a new coordinator with the run's store.
    ///
    /// Unless the store is in memory, several coordinators may share it.
    ///
    /// - Parameters:
    ///   - options: The store's options.
    ///   - url: The place of the store; the run's own if `nil`.
    /// - Returns: The coordinator, with a model of all scenarios.
    /// - Throws: Errors of the coordinator when it adds the store.
    func open(_ options: [AnyHashable: Any]? = nil, at url: URL? = nil) throws -> NSPersistentStoreCoordinator {
        watchdog.beat(-1, "opening a store")
        defer { watchdog.leave(-1) }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        let place = kind.place(url ?? storeURL)
        places.withLock { _ = $0.insert(place) }
        try coordinator.addPersistentStore(type: kind.type, configuration: nil, at: place, options: options)
        return coordinator
    }

    /// Returns coordinators on one store: as many as the option says, or one or two, drawn from the seed, if it is 0.
    ///
    /// Whether the stores keep a history is drawn as well. On PostgreSQL, the history feeds the row caches of the
    /// other coordinators.
    func openSeveral(_ knob: Knob) throws -> [NSPersistentStoreCoordinator] {
        var drawing = stream(-1)
        let drawn = 1 + drawing.below(2)
        // Stores in memory cannot be shared.
        let number = kind.isShared ? (self.knob(knob) == 0 ? drawn : self.knob(knob)) : 1
        let recordsHistory = kind.isShared && drawing.below(2) == 0
        count("stacks", number)
        if recordsHistory { count("with a history", number) }
        let options: [AnyHashable: Any]? = recordsHistory ? [NSPersistentHistoryTrackingKey: true] : nil
        return try (0..<number).map { _ in try open(options) }
    }

    /// Closes a coordinator that `open` has returned.
    func close(_ coordinator: NSPersistentStoreCoordinator) throws {
        watchdog.beat(-1, "closing a store")
        defer { watchdog.leave(-1) }
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    /// Checks a closed store as `strata verify` does.
    ///
    /// - Parameters:
    ///   - moment: A name for the moment, which findings begin with.
    ///   - url: The file, which is alone in its folder; the run's own if `nil`.
    ///   - model: The model of the store.
    /// - Throws: If the folder or the file cannot be read.
    func audit(_ moment: String = "audit", of url: URL? = nil, model: NSManagedObjectModel = StressModel.shared) throws
    {
        guard kind != .memory else { return }
        watchdog.beat(-1, "checking a store")
        defer { watchdog.leave(-1) }
        let url = url ?? storeURL
        guard kind == .sqlite else {
            let problems = try DatabasePlace.problems(at: kind.place(url), model)
            for problem in problems { find("\(moment): \(problem)") }
            return
        }
        // This comes first, because the verifier, which only reads, makes these files anew and leaves them there.
        let rest = try FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path)
        for name in rest where name.hasSuffix("-wal") || name.hasSuffix("-journal") {
            find("\(moment): \(name) is left behind by a store that was closed")
        }
        for problem in try StoreVerifier(storeURL: url, model: model).problems() {
            find("\(moment): \(problem)")
        }
    }

    // MARK: - Workers

    /// Runs `body` on `count` separate threads, and waits for all.
    ///
    /// It uses threads, and no pool, since the framework is tested under contention, and not the width of a pool. An
    /// error of a worker is a finding.
    ///
    /// - Parameters:
    ///   - count: The number of threads.
    ///   - first: The number of the first worker; each worker's random stream comes from its number.
    ///   - body: The work of each.
    func race(_ count: Int, from first: Int = 0, _ body: @escaping @Sendable (Worker) throws -> Void) {
        let group = DispatchGroup()
        for number in first..<(first + count) {
            group.enter()
            Thread.detachNewThread {
                let worker = Worker(self, number)
                do { try body(worker) } catch { worker.tally.find("worker \(number): \(describe(error))") }
                worker.leave()
                group.leave()
            }
        }
        group.wait()
    }
}

/// An error in words, with its code.
func describe(_ error: any Error) -> String {
    guard let error = error as? CocoaError else { return "\(error.localizedDescription) [\(error)]" }
    return "\(error.localizedDescription) [\(error.code.rawValue)]"
}

/// One thread of a run.
final class Worker {
    let run: Run
    let number: Int
    var stream: SeededStream
    var tally = Tally()
    /// The amount of its work that the run has counted.
    private var told = 0

    init(_ run: Run, _ number: Int) {
        self.run = run
        self.number = number
        stream = run.stream(number)
    }

    var isOver: Bool {
        let done = tally[run.scenario.work.figure]
        if done > told { run.noteDone(done - told) }
        told = done
        return run.isOver
    }

    /// Reports to the watchdog that the worker goes on, and what it is about to do.
    func beat(_ doing: StaticString) { run.watchdog.beat(number, doing) }

    /// Pins a context to a version, so that everything it reads until its next reset or save is of one moment.
    ///
    /// - Parameters:
    ///   - context: The context.
    ///   - index: Its number among the contexts to pin: a store keeps few versions.
    /// - Returns: The context; `nil` if the store keeps no versions, and for the ninth context and later ones.
    /// - Throws: Errors of the pinning.
    func pinned(_ context: NSManagedObjectContext, _ index: Int) throws -> NSManagedObjectContext? {
        guard run.kind.isShared, index < 8 else { return nil }
        if !run.isSabotaged("unpinned") { try context.performAndWait { try context.setQueryGenerationFrom(.current) } }
        return context
    }

    /// Runs `body`, and records how long it took if it succeeds.
    func time<R>(_ name: String, _ body: () throws -> R) rethrows -> R {
        let start = ContinuousClock.now
        let result = try body()
        tally.time(name, .now - start)
        return result
    }

    /// Ends the worker's part of the run.
    func leave() {
        run.watchdog.leave(number)
        run.add(tally)
    }
}
