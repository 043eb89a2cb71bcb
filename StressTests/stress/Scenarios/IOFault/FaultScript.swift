import CoreData

/// Opens a store, saves, reads and closes under a plan of faults; then goes on without faults, and checks the store.
///
/// Every call must succeed or give a documented error, and its work must be done wholly or not at all. Acknowledged
/// work must be there at the end. A single fault may fail one call at most, which must succeed when it is tried
/// again.
final class FaultScript {
    /// How a program reacts to a failing store.
    struct Habits {
        /// Whether a failed call is tried again at once.
        ///
        /// Otherwise, the changes are saved with the next ones.
        var triesAgain = true
        /// Whether the store is closed while its disk still fails, with unsaved changes.
        ///
        /// Otherwise the fault ends first.
        var closesUnderFaults = false

        init() {}

        init(drawnFrom stream: inout SeededStream) {
            (triesAgain, closesUnderFaults) = (stream.chance(0.5), stream.chance(0.5))
        }
    }

    static let saves = 6
    /// The part of the model that a script needs.
    ///
    /// It is small, so that a script has few operations, and all can be tried.
    static let model: NSManagedObjectModel = {
        let model = StressModel.make()
        model.entities.removeAll { !["Account", "Node", "Mark"].contains($0.name ?? "") }
        return model
    }()

    /// The number of operations before the faults were lifted, for each kind that plans can count.
    private(set) var lengths: [Int: Int] = [:]
    /// The number of these operations that failed.
    private(set) var faults = 0
    /// The number of calls that gave an error.
    private(set) var failures = 0
    /// The number of saves that are known to be there.
    private(set) var acknowledged = 0
    let url: URL
    /// The work of the batches.
    var batches = FaultBatches()
    /// The expected history.
    var history = FaultHistory()
    private let run: Run
    private let name: String
    private let documented: Set<CocoaError.Code>
    private let plan: FaultFileSystem.Plan
    private let habits: Habits
    private var firstFailure = ""

    /// Prepares a script.
    ///
    /// - Parameters:
    ///   - run: Collects the findings.
    ///   - name: The beginning of each finding.
    ///   - documented: The codes that errors may have.
    ///   - plan: The faults.
    ///   - habits: The reaction to the faults.
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

    /// Plays the script.
    ///
    /// - Throws: Errors that no fault has caused.
    func play() throws {
        defer {
            FaultFileSystem.arm(FaultFileSystem.Plan())
            for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) }
            // If the folder cannot be removed, then it goes with the folder of the run.
            let support = ".\(url.deletingPathExtension().lastPathComponent)_SUPPORT"
            try? FileManager.default.removeItem(at: run.folder.appendingPathComponent(support))
        }
        FaultFileSystem.arm(plan)
        guard let stack = attempt("opening", alwaysAgain: true, { try open() }) else {
            lift()
            return try run.close(try open())
        }
        // The script runs on one thread, and the handler is called on it.
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

    /// Reports a finding.
    func find(_ text: String) { run.find("\(name): \(text)") }

    /// Closes a coordinator that `open` has returned.
    func close(_ stack: NSPersistentStoreCoordinator) throws { try run.close(stack) }

    // MARK: - Calls that may fail

    /// Makes a call that may fail, perhaps twice.
    ///
    /// - Parameters:
    ///   - doing: The name of the call.
    ///   - alwaysAgain: Whether it is tried again even if that is not the habit.
    ///   - failed: Runs after each failure, for checks.
    ///   - body: The call.
    /// - Returns: The result; `nil` if it failed.
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

    /// Records that a save has succeeded, with all changes whose save had failed before.
    func noteSaved(_ save: Int) {
        acknowledged = save + 1
        batches.settle()
        history.add("\(save)")
    }
}
