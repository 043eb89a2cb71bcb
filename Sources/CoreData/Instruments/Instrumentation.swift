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

    /// Who is told, for as long as this lives; `nil` for nobody.
    var listener: Unmanaged<Listener>? {
        @inline(__always) get { pointer.load(ordering: .acquiring) }
    }

    /// The instrument that is told.
    var instrument: (any CoreDataInstrument)? { listener?.takeUnretainedValue().instrument }

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
    ///
    /// ```swift
    /// coordinator.instrument = SlowEventLines(from: .milliseconds(100))
    /// ```
    public var instrument: (any CoreDataInstrument)? {
        get { instrumentation.instrument }
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
        guard Instrumentation.isAnyOn, let listener = instrumentation?._withUnsafeGuaranteedRef({ $0.listener }) else {
            return entersScope ? try ConfinementScope.enter(self, body) : try body()
        }
        return try measured(listener, kind, entity(), rows, body)
    }

    @inline(never)
    private final func measured<T>(
        _ listener: Unmanaged<Instrumentation.Listener>,
        _ kind: CoreDataEvent.Kind,
        _ entity: String?,
        _ rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        try measuring(listener, kind, nil, entity, isOneRead: false, rows, body)
    }

    /// Reads something from a store and does nothing else, and tells the instrument of it, if there is one.
    ///
    /// As ``measured(_:_:entersScope:rows:_:)``, but made for what takes some microseconds and is done by the thousand.
    @inline(__always)
    final func measuredRead<T>(of layout: EntityLayout, rows: (T) -> Int, _ body: () throws -> T) rethrows -> T {
        guard Instrumentation.isAnyOn, let listener = instrumentation?._withUnsafeGuaranteedRef({ $0.listener }) else {
            return try ConfinementScope.enter(self, body)
        }
        return try measuring(listener, .fault, Unmanaged.passUnretained(layout), nil, isOneRead: true, rows, body)
    }

    /// As the other form, of a relationship.
    @inline(__always)
    final func measuredRead<T>(of slot: ToManySlot, rows: (T) -> Int, _ body: () throws -> T) rethrows -> T {
        guard Instrumentation.isAnyOn, let listener = instrumentation?._withUnsafeGuaranteedRef({ $0.listener }) else {
            return try ConfinementScope.enter(self, body)
        }
        return try measuring(listener, .fault, nil, slot.name, isOneRead: true, rows, body)
    }

    @inline(__always)
    private final func measuring<T>(
        _ listener: Unmanaged<Instrumentation.Listener>,
        _ kind: CoreDataEvent.Kind,
        _ layout: Unmanaged<EntityLayout>?,
        _ entity: @autoclosure () -> String?,
        isOneRead: Bool,
        _ rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        let stack = ConfinementScope.stack
        let start = OperationTally.now
        return try withUnsafeTemporaryAllocation(of: OperationTally.self, capacity: 1) { place in
            let tally = place.baseAddress!
            tally.initialize(to: OperationTally(isOneRead: isOneRead))
            // Without a statement there is nothing to destroy, and a look is cheaper.
            defer { if tally.pointee.statement != nil { tally.deinitialize(count: 1) } }
            do {
                let result = try ConfinementScope.enter(self, within: stack, tally: tally, body)
                tell(listener, kind, start, tally, rows(result), layout, entity(), nil, stack.tally)
                return result
            } catch {
                // A read that an asynchronous fetch has yet to make is no outcome.
                let isOutcome = !(error is PreparedReads.Unanswered)
                let code = (error as NSError).code
                tell(isOutcome ? listener : nil, kind, start, tally, 0, layout, entity(), code, stack.tally)
                throw error
            }
        }
    }

    /// Counts an operation for the one around it, and tells the instrument of it.
    @inline(never)
    private final func tell(
        _ listener: Unmanaged<Instrumentation.Listener>?,
        _ kind: CoreDataEvent.Kind,
        _ start: Int64,
        _ tally: UnsafeMutablePointer<OperationTally>,
        _ rows: Int,
        _ layout: Unmanaged<EntityLayout>?,
        _ entity: consuming String?,
        _ code: Int?,
        _ outer: UnsafeMutablePointer<OperationTally>?
    ) {
        let duration = tally.pointee.end(start)
        if let outer { outer.pointee.add(tally.pointee.withoutWaits) }
        guard let listener else { return }
        let event = CoreDataEvent(
            kind: kind,
            nanoseconds: duration,
            storeNanoseconds: tally.pointee.storeNanoseconds,
            rows: rows,
            context: nameIfAny,
            layout: layout,
            entity: entity,
            statement: tally.pointee.statement,
            errorCode: code
        )
        listener._withUnsafeGuaranteedRef { $0.instrument.record(event) }
        // Field by field: a copy of the tally would cost more than all of this.
        let waits = tally.pointee.readerWait | tally.pointee.writerWait | tally.pointee.checkpointTime
        if waits > 0 { tellWaits(listener, tally.pointee) }
    }

    private final func tellWaits(_ listener: Unmanaged<Instrumentation.Listener>, _ tally: OperationTally) {
        let waits: [(CoreDataEvent.Kind, Int64)] = [
            (.readerWait, tally.readerWait), (.writerWait, tally.writerWait), (.checkpoint, tally.checkpointTime),
        ]
        for (kind, nanoseconds) in waits where nanoseconds > 0 {
            let event = CoreDataEvent(kind: kind, nanoseconds: nanoseconds, context: name)
            listener.takeUnretainedValue().instrument.record(event)
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
        guard Instrumentation.isAnyOn, let instrument = coordinator?.instrumentation.instrument else { return }
        instrument.record(
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
    /// How long the operation took that has begun at `start`.
    @inline(__always)
    fileprivate mutating func end(_ start: Int64) -> Int64 {
        let duration = Self.now - start
        if hasAskedStore { storeNanoseconds = duration }
        return duration
    }

    /// What an operation around this one counts too: waits are told once, with the innermost.
    fileprivate var withoutWaits: OperationTally {
        var tally = self
        (tally.readerWait, tally.writerWait, tally.checkpointTime) = (0, 0, 0)
        return tally
    }
}
