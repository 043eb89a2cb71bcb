import CDispatch
import Foundation
import StrataLocks
import StrataRows

extension NSManagedObjectContext {
    /// Runs `block` in turn, inside the context's scope, and returns at once.
    ///
    /// Never inline, not even from inside the scope. The block is one user event: when it has returned, pending changes
    /// are processed, so objects-did-change is posted on this queue. May be called on any thread; the context lives on
    /// until the block has run.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// await worker.perform { print(worker.registeredObjects.count) }
    /// ```
    ///
    /// As on Apple's platforms, the compiler does not check what the block captures: code from there captures what it
    /// was given, such as a completion or the payload of a notification. If that is not `Sendable`, then nothing else
    /// may use it at the same time. In code of an actor, such as the main actor, the compiler takes the block for a part
    /// of the actor, though it runs on the queue of the context. So write `{ @Sendable in … }` there, or use
    /// ``perform(schedule:_:)``, whose block is checked.
    ///
    /// - Parameter block: The block to run.
    public func perform(_ block: @escaping () -> Void) { submit(as: .call, block) }

    /// As ``perform(_:)``, for blocks of the framework's own, which nobody expects to wait for anybody.
    ///
    /// Their visits to the contexts above never close a ring with a block there that waits for this context.
    final func performUnasked(_ block: @escaping @Sendable () -> Void) { submit(as: .unasked, block) }

    /// As ``performUnasked(_:)``, but after all that was submitted to the contexts above by now as well, such as
    /// merges.
    final func performUnaskedInTree(_ block: @escaping @Sendable () -> Void) {
        guard let parent else { return performUnasked(block) }
        parent.performUnaskedInTree { self.performUnasked(block) }
    }

    private func submit(as entry: ConfinementScope.Entry, _ block: @escaping () -> Void) {
        // It runs once, in its turn. The caller answers for what it captures: see `perform(_:)`.
        let block = UncheckedBox(block)
        enqueue(.perform, as: entry) {
            block.value()
            self.endOfEvent()
        }
    }

    /// Has a block run in its turn on the queue, inside the scope.
    final func enqueue(
        _ kind: SlowOperation.Kind,
        as entry: ConfinementScope.Entry = .call,
        _ block: @escaping @Sendable () -> Void
    ) {
        let submitted = SlowOperationLog.submission(to: self)
        queue.async {
            self.alone { self.runTurn(kind, submitted, ConfinementScope.stack, as: entry, block) }
        }
    }

    /// Runs `block` inside the context's scope, after the blocks submitted before, and waits for it.
    ///
    /// Inline if the caller is in the scope already, at any depth. Does not end the event: pending changes are
    /// processed by the next `perform`, save or ``processPendingChanges()``, and in a context of the main queue with its
    /// next turn at the latest. May be called on any thread, but never from a parent's scope onto a child that waits for
    /// that parent: a ring of contexts that wait for each other stops the program, with the chain spelled out. If the
    /// main queue lets a caller wait for long, ``SlowOperationLog`` tells of it (``SlowOperationLog/waitThreshold``).
    ///
    /// If a read inside the block has failed where nothing can throw, such as that of a property, and the block throws
    /// nothing, then this throws the error of that read. A block that cannot throw leaves it to the block around it:
    /// see <doc:Concurrency>.
    ///
    /// If a program declares such a method itself, as programs do that are older than Apple's, then calls choose that.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = try worker.performAndWait { try worker.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
    /// ```
    ///
    /// - Parameter block: The code to run. It is not kept.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block; the context's pending changes stay as they are then.
    @_disfavoredOverload
    public func performAndWait<T, Failure: Error>(_ block: () throws(Failure) -> T) throws(Failure) -> T {
        let result: Result<T, Failure> = wait(as: .call) {
            do throws(Failure) { return .success(try failingWithReads(block)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// As the form for blocks that throw, for those that do not.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = worker.performAndWait { worker.registeredObjects.count }
    /// ```
    ///
    /// - Parameter block: The code to run. It is not kept.
    /// - Returns: The result of the block.
    public func performAndWait<T>(_ block: () -> T) -> T {
        // No form is more specific. So the body of a program's own `performAndWait` calls this one, and not itself. It
        // can also be passed on as a function, `(() -> Void) -> Void`.
        wait(as: .call) { failingWithReads(block) }
    }

    /// Runs `block` inside the scope of this context, for a context below that is amid an operation, and waits for it.
    final func receive<T>(_ block: () throws -> T) rethrows -> T {
        guard ConfinementScope.isUnasked, !isInScope else { return try wait(as: .ascent, block) }
        return try WaitGraph.visit(self, block)
    }

    private func wait<T>(as entry: ConfinementScope.Entry, _ block: () throws -> T) rethrows -> T {
        if isInScope { return try ConfinementScope.enter(self, within: ConfinementScope.stack, as: entry, block) }
        return try MainQueue.keepingTrack {
            let stack = ConfinementScope.stack
            let submitted = SlowOperationLog.submission(to: self)
            let watch = MainQueueWatch.begin(self)
            return try WaitGraph.sync(queue, of: self, gate, stack, as: entry) {
                watch?.end()
                return try runTurn(.performAndWait, submitted, stack, as: entry, block)
            }
        }
    }

    /// Runs a block whose turn has come, inside the scope.
    ///
    /// - Parameters:
    ///   - kind: The kind of the block, for the slow-operation log.
    ///   - submitted: When the block was submitted, if the slow-operation log wants to know.
    ///   - stack: The scopes that the block is in besides.
    ///   - entry: How the scope comes to be entered.
    ///   - block: The code to run.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block.
    final func runTurn<T>(
        _ kind: SlowOperation.Kind,
        _ submitted: ContinuousClock.Instant?,
        _ stack: ConfinementScope.Stack,
        as entry: ConfinementScope.Entry = .call,
        _ block: () throws -> T
    ) rethrows -> T {
        guard let submitted else {
            return try ConfinementScope.enter(self, within: stack, as: entry, block)
        }
        return try SlowOperationLog.watching(self, kind, submitted) { tally in
            try ConfinementScope.enter(self, within: stack, tally: tally, as: entry, block)
        }
    }

    /// Runs `block` inside the context's scope and suspends until it has run.
    ///
    /// One user event, as ``perform(_:)``.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = try await worker.perform { try worker.count(for: NSFetchRequest<Venue>(entityName: "Venue")) }
    /// ```
    ///
    /// - Parameters:
    ///   - schedule: `.immediate` runs the block at once if the caller is in the scope already.
    ///   - block: The code to run. It is sent to the context: what it captures must be `Sendable`, or must not be used
    ///     elsewhere afterwards, such as a request or an array of dictionaries that was made for it.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block. If the block may throw and does not, but a read inside it has failed where
    ///   nothing can throw, such as that of a property, then the error of that read.
    nonisolated(nonsending) public func perform<T, Failure: Error>(
        schedule: ScheduledTaskType = .immediate,
        _ block: sending @escaping () throws(Failure) -> sending T
    ) async throws(Failure) -> sending T {
        try await run(schedule, as: .call, block)
    }

    /// As ``perform(schedule:_:)``, for blocks of the framework's own: see the other form.
    nonisolated(nonsending) final func performUnasked<T, Failure: Error>(
        _ block: @escaping @Sendable () throws(Failure) -> sending T
    ) async throws(Failure) -> sending T {
        try await run(.immediate, as: .unasked, block)
    }

    nonisolated(nonsending) private func run<T, Failure: Error>(
        _ schedule: ScheduledTaskType,
        as entry: ConfinementScope.Entry,
        _ block: sending @escaping () throws(Failure) -> sending T
    ) async throws(Failure) -> sending T {
        // Sent, so that no other code uses it.
        let block = UncheckedBox(block)
        let result: Result<UncheckedBox<T>, Failure> = await outcome(schedule, as: entry) {
            do throws(Failure) {
                return .success(UncheckedBox(try self.failingWithReads(block.value)))
            } catch {
                return .failure(error)
            }
        }
        return try result.get().value
    }

    nonisolated(nonsending) private func outcome<Outcome: Sendable>(
        _ schedule: ScheduledTaskType,
        as entry: ConfinementScope.Entry,
        _ block: @escaping @Sendable () -> Outcome
    ) async -> Outcome {
        if schedule == .immediate, isInScope { return ConfinementScope.enter(self, block) }
        let submitted = SlowOperationLog.submission(to: self)
        return await withAnswer { answer in
            queue.async {
                let outcome = self.alone {
                    self.runTurn(.perform, submitted, ConfinementScope.stack, as: entry) {
                        let outcome = block()
                        self.endOfEvent()
                        return outcome
                    }
                }
                answer(outcome)
            }
        }
    }

    /// Whether the current thread may use the context.
    final var isInScope: Bool {
        if ConfinementScope.contains(self) { return true }
        return concurrencyType == .mainQueueConcurrencyType && MainQueue.isCurrent
    }

    /// Stops the program if the current thread may not use the context, or says so, as `ConcurrencyDebug` wants it.
    ///
    /// The rule is one of scopes: see ``ConfinementScope``.
    @inline(__always)
    final func assertCurrent(_ member: @autoclosure () -> String, object: NSManagedObject? = nil) {
        guard ConfinementScope.isChecked, !isInScope else { return }
        reportViolation(member(), object)
    }

    /// As ``assertCurrent(_:object:)``, for settings: those of a context without objects may be made anywhere, as they
    /// are by whoever has just made it.
    final func assertCurrentOrUnused(_ member: @autoclosure () -> String) {
        guard ConfinementScope.isChecked, !isInScope else { return }
        guard !identityMap.isEmpty else { return }
        reportViolation(member(), nil)
    }

    /// Ends the user event that a `perform` is.
    final func endOfEvent() {
        // What a handler of the notification changes is told as well, unless handlers go on changing something for
        // ever.
        var rounds = 0
        repeat {
            processPendingChanges()
            rounds += 1
        } while !changeTracker.eventObjects.isEmpty && rounds < 100
        sweepIfGrown()
        deliverRegistrations()
    }
}
