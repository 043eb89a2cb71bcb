import CoreDataContainer
import CoreDataEssentials
import CoreDataOperations
import Foundation
import StrataLocks

/// The open stores of a ``TenantContainer``, and those that are being opened or closed.
///
/// A tenant has an entry as long as its store is not closed. All work that may block runs on a queue of operations, at most one operation
/// for each tenant at a time.
final class OpenTenants: Sendable {
    /// Takes the container of a store whose use has begun.
    ///
    /// The receiver makes the ``Tenant``. An answer that carried it would keep it for a moment longer than its receiver.
    typealias Answer = @Sendable (Result<NSPersistentContainer, any Error>) -> Void
    /// Opens a store, or makes it if the parameter says so.
    typealias Opening = @Sendable (_ isNew: Bool) throws -> NSPersistentContainer

    private struct Entry {
        enum Phase {
            case opening
            case open(NSPersistentContainer)
            /// The store is closed, and perhaps something else is done with it.
            case occupied
        }

        var phase: Phase
        /// The number of ``Tenant`` objects.
        var uses = 0
        /// The callers that wait until the store is open.
        var waiting: [Waiting] = []
    }

    /// A caller that waits for a tenant.
    private struct Waiting {
        let isNew: Bool
        let answer: Answer
        let open: Opening
    }

    private struct State {
        var entries: [TenantKey: Entry] = [:]
        var idle = IdleOrder()
        var isClosed = false
        var isTimerSet = false
        var counts = TenantStatistics()
    }

    private let settings: TenantContainer.Settings
    private let state = Locked(State())
    private let work = OperationQueue()

    init(_ settings: TenantContainer.Settings) {
        self.settings = settings
        work.name = "strata.tenants"
        work.maxConcurrentOperationCount = max(settings.mostAtOnce, 1)
    }

    func statistics() -> TenantStatistics {
        state.withLock { state in
            var result = state.counts
            for entry in state.entries.values {
                switch entry.phase {
                case .opening: result.opening += 1
                case .open:
                    result.open += 1
                    if entry.uses > 0 { result.inUse += 1 }
                case .occupied: result.closing += 1
                }
            }
            return result
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Whether the store of a tenant is open, or something is done with it.
    func isBusy(_ name: String) -> Bool { state.withLock { $0.entries[TenantKey(name)] != nil } }

    /// The number of callers that wait for a tenant, for tests that script an interleaving.
    func waitingCount(_ name: String) -> Int { state.withLock { $0.entries[TenantKey(name)]?.waiting.count ?? 0 } }

    // MARK: - Using

    /// Begins the use of a tenant's store, and calls `answer` with its container, at once if it is open.
    func use(_ name: String, isNew: Bool, _ answer: @escaping Answer, open: @escaping Opening) {
        let name = TenantKey(name)
        let found: Result<NSPersistentContainer, any Error>? = state.withLock { state in
            if state.isClosed { return .failure(CocoaError.closedTenants) }
            let caller = Waiting(isNew: isNew, answer: answer, open: open)
            guard var entry = state.entries[name] else {
                startOpening(name, for: [caller], &state)
                return nil
            }
            guard case .open(let container) = entry.phase else {
                entry.waiting.append(caller)
                state.entries[name] = entry
                return nil
            }
            guard !isNew else { return .failure(CocoaError.existingTenant(name.name)) }
            entry.uses += 1
            state.entries[name] = entry
            state.idle.remove(name)
            return .success(container)
        }
        if let found { answer(found) }
    }

    /// Ends a use that an answer has begun.
    func endUse(of name: String, _ container: NSPersistentContainer) {
        let name = TenantKey(name)
        state.withLock { state in
            guard var entry = state.entries[name], case .open(let current) = entry.phase, current === container else {
                return
            }
            entry.uses -= 1
            state.entries[name] = entry
            guard entry.uses == 0 else { return }
            state.idle.append(name, at: .now)
            while state.idle.count > max(settings.mostIdle, 0), let (name, _) = state.idle.first() {
                closeIdle(name, &state)
            }
            setTimer(&state)
        }
    }

    // MARK: - Opening

    private func startOpening(_ name: TenantKey, for waiting: [Waiting], _ state: inout State) {
        state.entries[name] = Entry(phase: .opening, waiting: waiting)
        work.addOperation { self.open(name) }
    }

    /// Opens the store for the first caller that waits, and answers those who wait.
    private func open(_ name: TenantKey) {
        guard let first = state.withLock({ $0.entries[name]?.waiting.first }) else { return }
        let result = Result { try first.open(first.isNew) }
        let answers: [@Sendable () -> Void] = state.withLock { state in
            let waiting = state.entries[name]?.waiting ?? []
            switch result {
            case .success(let container) where !state.isClosed:
                return noteOpened(name, container, for: waiting, &state)
            case .success(let container):
                work.addOperation { _ = self.close(container, of: name, within: self.settings.patience) }
                return noteFailure(name, CocoaError.closedTenants, for: waiting, &state)
            case .failure(let error): return noteFailure(name, error, for: waiting, &state)
            }
        }
        for answer in answers { answer() }
    }

    private func noteOpened(
        _ name: TenantKey,
        _ container: NSPersistentContainer,
        for waiting: [Waiting],
        _ state: inout State
    ) -> [@Sendable () -> Void] {
        state.counts.opened += 1
        var entry = Entry(phase: .open(container))
        var answers: [@Sendable () -> Void] = []
        for (index, caller) in waiting.enumerated() {
            let answer = caller.answer
            // Only the first caller can have made the store.
            guard index == 0 || !caller.isNew else {
                answers.append { answer(.failure(CocoaError.existingTenant(name.name))) }
                continue
            }
            entry.uses += 1
            answers.append { answer(.success(container)) }
        }
        state.entries[name] = entry
        return answers
    }

    /// Ends an opening that has failed, for the callers that have asked the same as the first one.
    private func noteFailure(_ name: TenantKey, _ error: any Error, for waiting: [Waiting], _ state: inout State)
        -> [@Sendable () -> Void]
    {
        state.counts.failed += 1
        let isNew = waiting.first?.isNew ?? false
        // If the store is there for one caller and not for another, then the failure of one says nothing about the other.
        let others = state.isClosed ? [] : waiting.filter { $0.isNew != isNew }
        if others.isEmpty { state.entries[name] = nil } else { startOpening(name, for: others, &state) }
        return waiting.filter { state.isClosed || $0.isNew == isNew }.map { caller in
            let answer = caller.answer
            return { answer(.failure(error)) }
        }
    }

    // MARK: - Closing

    /// Does something with a store that is not in use, and closes it before.
    ///
    /// Callers that ask for the store meanwhile wait, and then it is opened for them.
    ///
    /// - Parameters:
    ///   - name: The name of the tenant.
    ///   - body: The work, on another thread; it may block.
    ///   - completion: Called with the result, unless the store is in use or something else is done with it.
    /// - Returns: Whether the store was free.
    func occupy<T: Sendable>(
        _ name: String,
        _ body: @escaping @Sendable () throws -> T,
        completion: @escaping @Sendable (Result<T, any Error>) -> Void
    ) -> Bool {
        let name = TenantKey(name)
        let isClosed: Bool? = state.withLock { state in
            if state.isClosed { return true }
            var container: NSPersistentContainer?
            if let entry = state.entries[name] {
                guard case .open(let found) = entry.phase, entry.uses == 0 else { return nil }
                container = found
            }
            state.idle.remove(name)
            startOccupying(name, container, &state) { failure in
                completion(
                    Result {
                        if let failure { throw failure }
                        return try body()
                    }
                )
            }
            return false
        }
        if isClosed == true { completion(.failure(CocoaError.closedTenants)) }
        return isClosed != nil
    }

    private func startOccupying(
        _ name: TenantKey,
        _ container: NSPersistentContainer?,
        _ state: inout State,
        _ body: @escaping @Sendable (_ failure: (any Error)?) -> Void
    ) {
        state.entries[name] = Entry(phase: .occupied)
        work.addOperation { [self] in
            let failure = container.flatMap { close($0, of: name, within: settings.patience) }
            body(failure)
            self.state.withLock { state in
                if container != nil { state.counts.closed += 1 }
                let waiting = state.entries[name]?.waiting ?? []
                if waiting.isEmpty { state.entries[name] = nil } else { startOpening(name, for: waiting, &state) }
            }
        }
    }

    /// Closes a store, and reports an error.
    private func close(_ container: NSPersistentContainer, of name: TenantKey, within limit: Duration) -> (any Error)? {
        container.remoteChangeFollower?.stop()
        do {
            try container.persistentStoreCoordinator.close(within: limit)
            return nil
        } catch {
            container.persistentStoreCoordinator.report(error, "closing the store of the tenant “\(name.name)”")
            return error
        }
    }

    /// Closes all stores that are not in use.
    func closeIdle() {
        state.withLock { state in
            while let (name, _) = state.idle.first() { closeIdle(name, &state) }
        }
    }

    private func closeIdle(_ name: TenantKey, _ state: inout State) {
        state.idle.remove(name)
        guard let entry = state.entries[name], case .open(let container) = entry.phase, entry.uses == 0 else { return }
        startOccupying(name, container, &state) { _ in }
    }

    /// Lets the time pass after which the store that was idle for longest is closed.
    private func setTimer(_ state: inout State) {
        guard !state.isTimerSet, !state.isClosed, let (_, since) = state.idle.first() else { return }
        state.isTimerSet = true
        let wait = max((settings.idleTime - (.now - since)) / .seconds(1), 0)
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + wait) { [weak self] in self?.closeRested() }
    }

    private func closeRested() {
        state.withLock { state in
            state.isTimerSet = false
            let limit = ContinuousClock.now - settings.idleTime
            while let (name, since) = state.idle.first(), since <= limit { closeIdle(name, &state) }
            setTimer(&state)
        }
    }

    /// Closes all stores, and refuses all calls from then on.
    ///
    /// - Parameters:
    ///   - limit: How long to wait for the running saves of each store.
    ///   - completion: Called when all are closed, with the first error.
    func closeAll(within limit: Duration, _ completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let open: [(name: TenantKey, container: NSPersistentContainer)] = state.withLock { state in
            state.isClosed = true
            state.idle = IdleOrder()
            var open: [(name: TenantKey, container: NSPersistentContainer)] = []
            for (name, entry) in state.entries {
                guard case .open(let container) = entry.phase else { continue }
                open.append((name, container))
                state.entries[name] = nil
            }
            state.counts.closed += open.count
            return open
        }
        let failure = Locked<(any Error)?>(nil)
        for (name, container) in open {
            work.addOperation {
                guard let error = self.close(container, of: name, within: limit) else { return }
                failure.withLock { $0 = $0 ?? error }
            }
        }
        work.addBarrierBlock { completion(failure.withLock { $0 }.map { .failure($0) } ?? .success(())) }
    }
}
