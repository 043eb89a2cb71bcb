import CDispatch
import Foundation

extension NSManagedObjectContext {
    /// Runs `block` in turn, inside the context's scope, and returns at once.
    ///
    /// Never inline, not even from inside the scope. The block is one user event: when it has returned, pending changes are
    /// processed, so objects-did-change is posted on this queue. May be called on any thread; the context lives on
    /// until the block has run.
    public func perform(_ block: @escaping @Sendable () -> Void) {
        queue.async {
            ConfinementScope.enter(self) {
                block()
                self.endOfEvent()
            }
        }
    }

    /// Runs `block` inside the context's scope, after the blocks submitted before, and waits for it.
    ///
    /// Inline if the caller is in the scope already, at any depth. Does not end the event: pending changes are processed by
    /// the next `perform`, save or ``processPendingChanges()``. May be called on any thread, but never from a parent's
    /// scope onto a child that waits for that parent.
    ///
    /// - Returns: What the block returns.
    /// - Throws: What the block throws; the context's pending changes stay as they are then.
    public func performAndWait<T>(_ block: () throws -> T) rethrows -> T {
        if isInScope { return try ConfinementScope.enter(self, block) }
        return try MainQueue.keepingTrack {
            let stack = ConfinementScope.stack
            return try queue.sync { try ConfinementScope.enter(self, within: stack, block) }
        }
    }

    /// Runs `block` inside the context's scope and suspends until it has run.
    ///
    /// One user event, as ``perform(_:)``.
    ///
    /// - Parameters:
    ///   - schedule: `.immediate` runs the block at once if the caller is in the scope already.
    ///   - block: What to run.
    /// - Returns: What the block returns.
    /// - Throws: What the block throws.
    nonisolated(nonsending) public func perform<T>(
        schedule: ScheduledTaskType = .immediate,
        _ block: @escaping @Sendable () throws -> sending T
    ) async throws -> sending T {
        let result: Result<UncheckedBox<T>, any Error> = await run(schedule) {
            Result { UncheckedBox(try block()) }
        }
        return try result.get().value
    }

    /// As the throwing form, for blocks that do not throw.
    nonisolated(nonsending) public func perform<T>(
        schedule: ScheduledTaskType = .immediate,
        _ block: @escaping @Sendable () -> sending T
    ) async -> sending T {
        let box = await run(schedule) { UncheckedBox(block()) }
        return box.value
    }

    nonisolated(nonsending) private func run<Outcome: Sendable>(
        _ schedule: ScheduledTaskType,
        _ block: @escaping @Sendable () -> Outcome
    ) async -> Outcome {
        if schedule == .immediate, isInScope { return ConfinementScope.enter(self, block) }
        return await withCheckedContinuation { continuation in
            queue.async {
                let outcome = ConfinementScope.enter(self) {
                    let outcome = block()
                    self.endOfEvent()
                    return outcome
                }
                continuation.resume(returning: outcome)
            }
        }
    }

    /// Whether the current thread may use the context.
    final var isInScope: Bool {
        if ConfinementScope.contains(self) { return true }
        return concurrencyType == .mainQueueConcurrencyType && MainQueue.isCurrent
    }

    /// Stops the program if the current thread may not use the context.
    ///
    /// The rule is one of scopes: see ``ConfinementScope``.
    @inline(__always)
    final func assertCurrent(_ member: @autoclosure () -> String, object: NSManagedObject? = nil) {
        guard ConfinementScope.isChecked, !isInScope else { return }
        reportViolation(member(), object)
    }

    /// As ``assertCurrent(_:object:)``, for settings: those of a context without objects may be made anywhere, as they are
    /// by whoever has just made it.
    final func assertCurrentOrUnused(_ member: @autoclosure () -> String) {
        guard ConfinementScope.isChecked, !isInScope else { return }
        guard registeredCount > 0 || temporaryObjects.count > 0 else { return }
        reportViolation(member(), nil)
    }

    @inline(never)
    private func reportViolation(_ member: String, _ object: NSManagedObject?) -> Never {
        let what = object.map { "\(member) of \($0.objectID)" } ?? member
        let label = String(cString: dispatch_queue_get_label(nil))
        let here =
            (ConfinementScope.innermost as? NSManagedObjectContext)
            .map { "inside the scope of \($0.describedName), on queue \"\(label)\"" } ?? "on queue \"\(label)\""
        fatalError(
            """
            CoreData: \(what) was used \(here), but is confined to \(describedName), whose queue is "\(queue.label)". \
            Use it inside perform or performAndWait of that context, or pass the objectID instead.
            """
        )
    }

    /// Ends the user event that a `perform` is.
    private func endOfEvent() {
        processPendingChanges()
        sweepIfGrown()
        deliverRegistrations()
    }
}
