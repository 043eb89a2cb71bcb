import StrataRows
import Synchronization

/// The instrument of a coordinator, where every operation finds it without a lock and without counting references.
///
/// Instruments that were replaced are kept as long as the coordinator, since other threads may be telling them something.
final class Instrumentation: Sendable {
    /// An instrument that was set.
    final class Listener: Sendable {
        let instrument: any CoreDataInstrument

        init(_ instrument: any CoreDataInstrument) { self.instrument = instrument }
    }

    private let pointer = Atomic<Unmanaged<Listener>?>(nil)
    private let kept = Mutex<[Listener]>([])
    /// How many coordinators of the process have an instrument, so that those who have none need not look.
    private static let inUse = Atomic(0)

    /// Whether any coordinator of the process has an instrument.
    static var isAnyOn: Bool {
        @inline(__always) get { inUse.load(ordering: .relaxed) > 0 }
    }

    deinit {
        if listener != nil { Self.inUse.subtract(1, ordering: .relaxed) }
    }

    /// Who is told; `nil` for nobody.
    var listener: Listener? {
        @inline(__always) get { pointer.load(ordering: .acquiring)?.takeUnretainedValue() }
    }

    /// Tells another instrument from now on.
    func set(_ instrument: (any CoreDataInstrument)?) {
        kept.withLock { kept in
            let before = listener != nil
            let new = instrument.map(Listener.init)
            if let new { kept.append(new) }
            pointer.store(new.map { Unmanaged.passUnretained($0) }, ordering: .releasing)
            if before != (new != nil) { Self.inUse.add(before ? -1 : 1, ordering: .relaxed) }
        }
    }
}

extension NSPersistentStoreCoordinator {
    /// Who is told what the coordinator and its contexts do.
    ///
    /// Default nil: nothing is measured, and an operation pays a few nanoseconds to find that out. May be set and read on any
    /// thread; operations that are under way are told to the old one, or not at all. Every instrument that was set
    /// is kept as long as the coordinator, so set it once.
    ///
    /// An addition to Apple's API.
    public var instrument: (any CoreDataInstrument)? {
        get { instrumentation.listener?.instrument }
        set { instrumentation.set(newValue) }
    }
}

// MARK: - Measuring

extension NSManagedObjectContext {
    /// Runs an operation, and tells the instrument of it, if there is one.
    ///
    /// - Parameters:
    ///   - kind: What it is.
    ///   - entity: The entity that it is about.
    ///   - entersScope: Whether the operation is to run inside a scope of its own also if nobody is told.
    ///   - rows: Counts the rows of the outcome.
    ///   - body: The operation.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    @inline(__always)
    final func measured<T>(
        _ kind: CoreDataEvent.Kind,
        _ entity: @autoclosure () -> String?,
        entersScope: Bool = true,
        rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        guard Instrumentation.isAnyOn, let listener = coordinator?.instrumentation.listener else {
            return entersScope ? try ConfinementScope.enter(self, body) : try body()
        }
        return try tell(listener, kind, entity(), rows, body)
    }

    @inline(never)
    private final func tell<T>(
        _ listener: Instrumentation.Listener,
        _ kind: CoreDataEvent.Kind,
        _ entity: String?,
        _ rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        var tally = OperationTally()
        let outer = OperationTally.current
        let start = ContinuousClock.now
        do {
            let result = try withUnsafeMutablePointer(to: &tally) { tally in
                try ConfinementScope.enter(self, within: ConfinementScope.stack, tally: tally, body)
            }
            let duration = ContinuousClock.now - start
            outer?.pointee.add(tally.withoutWaits)
            tell(listener, kind, duration, tally, rows(result), entity, nil)
            return result
        } catch {
            let duration = ContinuousClock.now - start
            outer?.pointee.add(tally.withoutWaits)
            // A read that an asynchronous fetch has yet to make is no outcome.
            if !(error is PreparedReads.Unanswered) {
                tell(listener, kind, duration, tally, 0, entity, (error as NSError).code)
            }
            throw error
        }
    }

    private final func tell(
        _ listener: Instrumentation.Listener,
        _ kind: CoreDataEvent.Kind,
        _ duration: Duration,
        _ tally: OperationTally,
        _ rows: Int,
        _ entity: String?,
        _ code: Int?
    ) {
        let name = name
        listener.instrument.record(
            CoreDataEvent(
                kind: kind,
                duration: duration,
                storeTime: tally.storeTime,
                rows: rows,
                context: name,
                entity: entity,
                statement: tally.statement,
                errorCode: code
            )
        )
        guard tally.hasWaits else { return }
        let waits: [(CoreDataEvent.Kind, Duration)] = [
            (.readerWait, tally.readerWait), (.writerWait, tally.writerWait), (.checkpoint, tally.checkpointTime),
        ]
        for (kind, duration) in waits where duration > .zero {
            listener.instrument.record(CoreDataEvent(kind: kind, duration: duration, context: name))
        }
    }

    /// Tells the instrument of something that takes no time, or was measured by the caller.
    final func tellInstrument(
        _ kind: CoreDataEvent.Kind,
        duration: Duration = .zero,
        rows: Int = 0,
        entity: String? = nil,
        _ error: (any Error)? = nil
    ) {
        guard Instrumentation.isAnyOn, let listener = coordinator?.instrumentation.listener else { return }
        listener.instrument.record(
            CoreDataEvent(
                kind: kind,
                duration: duration,
                rows: rows,
                context: name,
                entity: entity,
                errorCode: error.map { ($0 as NSError).code }
            )
        )
    }
}

extension OperationTally {
    /// What an operation around this one counts too: waits are told once, with the innermost.
    fileprivate var withoutWaits: OperationTally {
        var tally = self
        (tally.readerWait, tally.writerWait, tally.checkpointTime) = (.zero, .zero, .zero)
        return tally
    }

    fileprivate var hasWaits: Bool { readerWait > .zero || writerWait > .zero || checkpointTime > .zero }
}
