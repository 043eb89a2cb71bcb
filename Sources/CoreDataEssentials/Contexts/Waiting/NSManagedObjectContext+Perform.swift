import CDispatch
import Foundation
import StrataLocks
import StrataRows

extension NSManagedObjectContext {
    /// Does the work of ``perform(_:)``, which subclasses may override.
    package final func submitCall(_ block: @escaping () -> Void) { submit(as: .call, block) }

    /// Like ``perform(_:)``, for internal blocks of the framework, which programs do not know of.
    ///
    /// The visits of such a block to contexts above never cause a deadlock with a block there that waits for this
    /// context.
    final func performInternally(_ block: @escaping @Sendable () -> Void) { submit(as: .internalBlock, block) }

    /// Like ``performInternally(_:)``, but also after everything submitted to the contexts above so far, such as merges.
    final func performInternallyInTree(_ block: @escaping @Sendable () -> Void) {
        guard let parent else { return performInternally(block) }
        parent.performInternallyInTree { self.performInternally(block) }
    }

    private func submit(as entry: ConfinementScope.Entry, _ block: @escaping () -> Void) {
        if entry == .call { noteUse() }
        // The block runs once, when its turn comes. The caller is responsible for what it captures: see `perform(_:)`.
        let block = UncheckedBox(block)
        enqueue(.perform, as: entry) {
            if entry == .call { self.watchingReads(block.value) } else { block.value() }
            self.endOfEvent()
        }
    }

    /// Submits a block to the queue, to run inside the scope.
    final func enqueue(
        _ kind: SlowOperation.Kind,
        as entry: ConfinementScope.Entry = .call,
        _ block: @escaping @Sendable () -> Void
    ) {
        let submitted = SlowOperationLog.submission(to: self)
        enqueueAlone { self.runTurn(kind, submitted: submitted, stack: ConfinementScope.stack, as: entry, block) }
    }

    /// Runs `block` inside the context's scope, after the blocks submitted before, and waits for it.
    ///
    /// The block runs directly if the caller is inside the scope already, at any depth. This call does not end the
    /// event: pending changes are processed by the next `perform`, save or ``processPendingChanges()``. In a context of
    /// the main queue, the main queue's next turn processes them at the latest. May be called on any thread, but never
    /// from a parent's scope onto a child that waits for that parent. If contexts wait for each other in a ring, the
    /// program stops with a message that names them. If the main queue lets a caller wait for long,
    /// ``SlowOperationLog`` reports it (``SlowOperationLog/waitThreshold``).
    ///
    /// Some reads inside the block cannot throw, such as that of a property. If such a read has failed, and the block
    /// throws nothing, this method throws the error of the read. A block that cannot throw passes the error to the
    /// block around it: see <doc:Concurrency>.
    ///
    /// A program that is older than Apple's method may declare such a method itself. Calls then choose the program's
    /// method.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = try worker.performAndWait { try worker.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
    /// ```
    ///
    /// - Parameter block: The code to run. It is not kept.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block; the context's pending changes then stay as they are.
    @_disfavoredOverload
    public func performAndWait<T, Failure: Error>(_ block: () throws(Failure) -> T) throws(Failure) -> T {
        noteUse()
        let result: Result<T, Failure> = wait(as: .call) {
            do throws(Failure) { return .success(try runBlock(block, as: .call)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Runs a block that does not throw, otherwise like the form for blocks that throw.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = worker.performAndWait { worker.registeredObjects.count }
    /// ```
    ///
    /// - Parameter block: The code to run. It is not kept.
    /// - Returns: The result of the block.
    public func performAndWait<T>(_ block: () -> T) -> T {
        // Neither form is more specific. So the body of a program's own `performAndWait` calls this one, and not
        // itself. This form can also be passed on as a function, `(() -> Void) -> Void`.
        noteUse()
        return wait(as: .call) { failingWithReads { watchingReads(block) } }
    }

    /// Runs a short block inside the scope, as ``performAndWait(_:)-(()->T)`` does, and without the queue if the scope is
    /// free and no block waits for its turn.
    ///
    /// Otherwise the block waits for its turn on the queue. So it waits as ``performAndWait(_:)-(()->T)`` does: contexts
    /// that wait for each other in a ring stop the program with a message that names them. If a block of the context waits
    /// for this thread in another way, such as by a semaphore, then both wait forever.
    package final func performAtOnce<T>(_ block: () -> T) -> T {
        if isInScope { return block() }
        guard SlowOperationLog.submission(to: self) == nil, let gate, gate.enterAhead() else {
            return performAndWait(block)
        }
        defer { gate.leave() }
        return ConfinementScope.enter(self) { failingWithReads(block) }
    }

    /// Runs `block` inside the scope of this context, for a context below during an operation, and waits for it.
    final func receive<T>(_ block: () throws -> T) rethrows -> T {
        guard ConfinementScope.isInternalBlock, !isInScope else { return try wait(as: .ascent, block) }
        return try WaitGraph.visit(self, block)
    }

    private func wait<T>(as entry: ConfinementScope.Entry, _ block: () throws -> T) rethrows -> T {
        if isInScope { return try ConfinementScope.enter(self, within: ConfinementScope.stack, as: entry, block) }
        let submitted = SlowOperationLog.submission(to: self)
        if submitted == nil, contextQueue.occupyUnmade() {
            defer { contextQueue.leaveUnmade() }
            return try runTurn(.performAndWait, submitted: nil, stack: ConfinementScope.stack, as: entry, block)
        }
        return try MainQueue.keepingTrack {
            let stack = ConfinementScope.stack
            let watch = MainQueueWatch.begin(self)
            return try WaitGraph.sync(on: queue, of: self, gate: gate, stack: stack, as: entry) {
                watch?.end()
                return try runTurn(.performAndWait, submitted: submitted, stack: stack, as: entry, block)
            }
        }
    }

    /// Runs a block inside the scope, when its turn has come.
    ///
    /// - Parameters:
    ///   - kind: The kind of the block, for the slow-operation log.
    ///   - submitted: The time when the block was submitted, if the slow-operation log needs it.
    ///   - stack: The other scopes that the block is in.
    ///   - entry: The way in which the scope is entered.
    ///   - block: The code to run.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block.
    final func runTurn<T>(
        _ kind: SlowOperation.Kind,
        submitted: ContinuousClock.Instant?,
        stack: ConfinementScope.Stack,
        as entry: ConfinementScope.Entry = .call,
        _ block: () throws -> T
    ) rethrows -> T {
        defer { lastOrderedSet = nil }
        guard let submitted else {
            return try ConfinementScope.enter(self, within: stack, as: entry, block)
        }
        return try SlowOperationLog.watching(self, kind: kind, submitted: submitted) { tally in
            try ConfinementScope.enter(self, within: stack, tally: tally, as: entry, block)
        }
    }

    /// Runs `block` inside the context's scope and suspends until it has run.
    ///
    /// The block is one user event, as with ``perform(_:)``.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = try await worker.perform { try worker.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
    /// ```
    ///
    /// - Parameters:
    ///   - schedule: `.immediate` runs the block at once if the caller is in the scope already.
    ///   - block: The code to run. It is sent to the context: its captures must be `Sendable`, or must not be used
    ///     elsewhere afterwards, such as a request or an array of dictionaries that was made for it.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block. If the block may throw and does not, but a read inside it has failed that
    ///   cannot throw, such as that of a property, then the error of that read.
    nonisolated(nonsending) public func perform<T, Failure: Error>(
        schedule: ScheduledTaskType = .immediate,
        _ block: sending @escaping () throws(Failure) -> sending T
    ) async throws(Failure) -> sending T {
        try await run(schedule, as: .call, block)
    }

    /// Like ``perform(schedule:_:)``, for internal blocks of the framework; see the other form of this method.
    package nonisolated(nonsending) final func performInternally<T, Failure: Error>(
        _ block: @escaping @Sendable () throws(Failure) -> sending T
    ) async throws(Failure) -> sending T {
        try await run(.immediate, as: .internalBlock, block)
    }

    nonisolated(nonsending) private func run<T, Failure: Error>(
        _ schedule: ScheduledTaskType,
        as entry: ConfinementScope.Entry,
        _ block: sending @escaping () throws(Failure) -> sending T
    ) async throws(Failure) -> sending T {
        if entry == .call { noteUse() }
        // The block was sent, so no other code uses it.
        let block = UncheckedBox(block)
        let result: Result<UncheckedBox<T>, Failure> = await outcome(schedule, as: entry) {
            do throws(Failure) {
                return .success(UncheckedBox(try self.runBlock(block.value, as: entry)))
            } catch {
                return .failure(error)
            }
        }
        return try result.get().value
    }

    /// Runs a block inside the scope; only those of the program are watched.
    private func runBlock<T, Failure: Error>(
        _ block: () throws(Failure) -> T,
        as entry: ConfinementScope.Entry
    ) throws(Failure) -> T {
        guard entry == .call else { return try failingWithReads(block) }
        return try failingWithReads { () throws(Failure) in try watchingReads(block) }
    }

    nonisolated(nonsending) private func outcome<Outcome: Sendable>(
        _ schedule: ScheduledTaskType,
        as entry: ConfinementScope.Entry,
        _ block: @escaping @Sendable () -> Outcome
    ) async -> Outcome {
        if schedule == .immediate, isInScope { return ConfinementScope.enter(self, block) }
        let submitted = SlowOperationLog.submission(to: self)
        return await withAnswer { answer in
            enqueueAlone {
                let outcome = self.runTurn(.perform, submitted: submitted, stack: ConfinementScope.stack, as: entry) {
                    let outcome = block()
                    self.endOfEvent()
                    return outcome
                }
                answer(outcome)
            }
        }
    }

    /// Whether the current thread may use the context.
    final var isInScope: Bool {
        if ConfinementScope.contains(self) { return true }
        guard concurrencyType == .mainQueueConcurrencyType, MainQueue.isCurrent else { return false }
        noteUse()
        return true
    }

    /// Notes that the program uses the context.
    @inline(__always)
    private func noteUse() {
        if !isInUse.load(ordering: .relaxed) { isInUse.store(true, ordering: .relaxed) }
    }

    /// Checks that the current thread may use the context, and else stops the program or reports it.
    ///
    /// `ConcurrencyDebug` decides which of the two happens. A thread may use a context if it is inside its scope: see
    /// ``ConfinementScope``.
    @inline(__always)
    package final func assertCurrent(_ member: @autoclosure () -> String, object: NSManagedObject? = nil) {
        guard ConfinementScope.isChecked, !isInScope else { return }
        reportViolation(member(), object)
    }

    /// Like ``assertCurrent(_:object:)``, for settings; those of a context that the program has not used yet, or that has
    /// no objects, may be changed on any thread.
    ///
    /// So the code that makes a context can configure it at once. A context that merges automatically may have objects
    /// before it is used.
    final func assertCurrentOrUnused(_ member: @autoclosure () -> String) {
        guard ConfinementScope.isChecked, !isInScope else { return }
        guard isInUse.load(ordering: .relaxed), !identityMap.isEmpty else { return }
        reportViolation(member(), nil)
    }

    /// Ends the user event of a `perform`.
    final func endOfEvent() {
        // Changes that a handler makes are reported as well. The number of rounds is limited, in case handlers never
        // stop making changes.
        var rounds = 0
        repeat {
            endEvent(isMerge: false)
            rounds += 1
        } while !changeTracker.eventObjects.isEmpty && rounds < 100
        lastOrderedSet = nil
        sweepIfGrown()
        deliverRegistrations()
    }
}
