import CoreData

/// Opens a store, saves, reads and closes under a plan of faults; then, without faults, goes on and looks at what is
/// there.
///
/// Every call has to succeed or to give a documented error, what it does must be wholly done or not at all, and what was
/// acknowledged has to be there in the end. A fault that comes once fails one call at most: what has failed succeeds when
/// it is tried again.
final class FaultScript {
    /// What whoever uses a failing store does about it.
    struct Habits {
        /// Whether a call that has failed is tried again at once; else what was not saved is saved with what comes next.
        var triesAgain = true
        /// Whether the store is closed while its disk still fails, with what is unsaved; else the fault goes first.
        var closesUnderFaults = false

        init() {}

        init(drawnFrom stream: inout SeededStream) {
            (triesAgain, closesUnderFaults) = (stream.chance(0.5), stream.chance(0.5))
        }
    }

    static let saves = 6
    /// The part of the model that is needed, so that a script has few operations, all of which can be tried.
    static let model: NSManagedObjectModel = {
        let model = StressModel.make()
        model.entities.removeAll { !["Account", "Node", "Mark"].contains($0.name ?? "") }
        return model
    }()

    /// How many operations there were until the faults were lifted, of the kinds that plans can count.
    private(set) var lengths: [Int: Int] = [:]
    /// How many of these failed.
    private(set) var faults = 0
    /// How many calls gave an error.
    private(set) var failures = 0
    /// The number of saves that are known to be there.
    private(set) var acknowledged = 0
    let url: URL
    /// What the batches have done.
    var batches = FaultBatches()
    /// What the history has to tell.
    var history = FaultHistory()
    private let run: Run
    private let name: String
    private let documented: Set<CocoaError.Code>
    private let plan: FaultFileSystem.Plan
    private let habits: Habits
    private var firstFailure = ""

    /// Prepares one.
    ///
    /// - Parameters:
    ///   - run: Takes the findings.
    ///   - name: What findings begin with.
    ///   - documented: The codes that errors may have.
    ///   - plan: The faults.
    ///   - habits: What is done about them.
    init(
        _ run: Run,
        _ name: String,
        _ documented: Set<CocoaError.Code>,
        _ plan: FaultFileSystem.Plan,
        _ habits: Habits
    ) {
        (self.run, self.name, self.documented, self.plan, self.habits) = (run, name, documented, plan, habits)
        url = run.folder.appendingPathComponent(UUID().uuidString + ".sqlite")
    }

    /// Plays it.
    ///
    /// - Throws: What nobody has asked for.
    func play() throws {
        defer {
            FaultFileSystem.arm(FaultFileSystem.Plan())
            for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) }
            // What cannot be removed goes with the folder of the run.
            let support = ".\(url.deletingPathExtension().lastPathComponent)_SUPPORT"
            try? FileManager.default.removeItem(at: run.folder.appendingPathComponent(support))
        }
        FaultFileSystem.arm(plan)
        guard let stack = attempt("opening", alwaysAgain: true, { try open() }) else {
            lift()
            return try run.close(try open())
        }
        // The script is played on one thread, which is the one that is told of errors.
        nonisolated(unsafe) let script = self
        stack.unreportableErrorHandler = { script.judge($0, $1) }
        let context = stack.context()
        context.performAndWait {
            work(context)
            read(context)
        }
        if habits.closesUnderFaults {
            do { try run.close(stack) } catch { judge(error, "closing") }
            lift()
        } else {
            lift()
            context.performAndWait {
                do {
                    if context.hasChanges {
                        try context.save()
                        noteSaved(Self.saves - 1)
                    }
                } catch { find("saving without faults gave \(describe(error))") }
            }
        }
        if !stack.persistentStores.isEmpty { try run.close(stack) }
        if faults > 0 { run.count(habits.closesUnderFaults ? "closed-under-faults" : "closed-after-faults") }
        try look()
    }

    private func lift() {
        faults = FaultFileSystem.counts.failures
        for (_, operations) in IOFault.figures { lengths[operations.rawValue] = FaultFileSystem.count(of: operations) }
        FaultFileSystem.arm(FaultFileSystem.Plan())
    }

    /// Opens the store, with a small log and a history.
    func open() throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model)
        let pragmas = ["wal_autocheckpoint": "16", "synchronous": "FULL"]
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: url,
            options: [NSSQLitePragmasOption: pragmas, NSPersistentHistoryTrackingKey: true]
        )
        return coordinator
    }

    /// Tells what was wrong.
    func find(_ text: String) { run.find("\(name): \(text)") }

    /// Closes what `open` has opened.
    func close(_ stack: NSPersistentStoreCoordinator) throws { try run.close(stack) }

    // MARK: - Calls that may fail

    /// Does something that may fail, if it does perhaps twice.
    ///
    /// - Parameters:
    ///   - doing: What it is.
    ///   - alwaysAgain: Whether it is tried again though nobody has the habit.
    ///   - failed: What has to be so when it has failed.
    ///   - body: Does it.
    /// - Returns: What came of it; `nil` if it failed.
    func attempt<R>(
        _ doing: String,
        alwaysAgain: Bool = false,
        failed: () -> Void = {},
        _ body: () throws -> R
    ) -> R? {
        do { return try body() } catch {
            judge(error, doing)
            failed()
        }
        guard !plan.isSticky, habits.triesAgain || alwaysAgain else { return nil }
        run.count("tried-again")
        if run.isSabotaged("second-fault") { FaultFileSystem.strikeAgain() }
        do { return try body() } catch {
            judge(error, doing + " again")
            failed()
        }
        return nil
    }

    private func judge(_ error: any Error, _ doing: String) {
        failures += 1
        if failures == 1 {
            firstFailure = "\(doing) gave \(describe(error))"
        } else if !plan.isSticky {
            find("\(doing) fails too, though the fault came once: \(describe(error)), after \(firstFailure)")
        }
        if plan.operations == .pieces { find("a short read fails a call: \(doing) gave \(describe(error))") }
        if let code = (error as? CocoaError)?.code, documented.contains(code) {
            return run.count("error-\(code.rawValue)")
        }
        find("\(doing) gave \(describe(error))")
    }

    /// Takes a save that has succeeded, with all that failed before it.
    func noteSaved(_ save: Int) {
        acknowledged = save + 1
        batches.settle()
        history.add("\(save)")
    }
}
