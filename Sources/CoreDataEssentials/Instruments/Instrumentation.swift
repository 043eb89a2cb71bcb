import StrataLocks
import StrataRows
import Synchronization

/// The instrument of a coordinator; operations find it without a lock and without counting references.
///
/// Instruments that were replaced are kept as long as the coordinator, because other threads may still be using them.
final class Instrumentation: Sendable {
    /// An instrument that was set.
    final class Listener: Sendable {
        let instrument: any CoreDataInstrument

        init(_ instrument: any CoreDataInstrument) { self.instrument = instrument }
    }

    private let pointer = AtomicCell<Unmanaged<Listener>?>(nil)
    private let kept = Locked<[Listener]>([])
    /// The watches of all reads.
    let readWatches = Locked<[any ReadWatch & Sendable]>([])
    /// The number of coordinators in the process that have an instrument; if it is 0, then no operation looks for one.
    private static let inUse = AtomicCell(0)

    /// Whether any coordinator of the process has an instrument.
    static var isAnyOn: Bool {
        @inline(__always) get { inUse.load(ordering: .relaxed) > 0 }
    }

    deinit {
        if listener != nil { Self.inUse.subtract(1, ordering: .relaxed) }
    }

    /// The instrument that receives events, valid as long as this object lives; `nil` for none.
    var listener: Unmanaged<Listener>? {
        @inline(__always) get { pointer.load(ordering: .acquiring) }
    }

    /// The instrument that receives events.
    var instrument: (any CoreDataInstrument)? { listener?.takeUnretainedValue().instrument }

    /// Replaces the instrument.
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
    /// The instrument that receives the events of the coordinator and its contexts.
    ///
    /// Default nil: nothing is measured, and an operation spends a few nanoseconds on the check. May be set and read on
    /// any thread. Operations that are running during a change are reported to the old instrument, or not at all. Every
    /// instrument that was set is kept as long as the coordinator, so set it once.
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
    /// Runs an operation, and reports it to the instrument if there is one.
    ///
    /// - Parameters:
    ///   - kind: The kind of the operation.
    ///   - entity: The entity of the operation.
    ///   - entersScope: Whether the operation shall run inside a new scope even if there is no instrument.
    ///   - rows: A function that counts the rows of the outcome.
    ///   - body: The operation.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body.
    @inline(__always)
    package final func measured<T>(
        _ kind: CoreDataEvent.Kind,
        entity: @autoclosure () -> String?,
        entersScope: Bool = true,
        rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        guard Instrumentation.isAnyOn, let listener = instrumentation?._withUnsafeGuaranteedRef({ $0.listener }) else {
            return entersScope ? try ConfinementScope.enter(self, body) : try body()
        }
        return try measured(listener: listener, kind: kind, entity: entity(), rows: rows, body)
    }

    @inline(never)
    private final func measured<T>(
        listener: Unmanaged<Instrumentation.Listener>,
        kind: CoreDataEvent.Kind,
        entity: String?,
        rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        try measuring(listener: listener, kind: kind, layout: nil, entity: entity, isOneRead: false, rows: rows, body)
    }

    /// Runs a read from a store, and reports it to the instrument if there is one.
    ///
    /// The form of ``measured(_:_:entersScope:rows:_:)`` for reads that take some microseconds and are done by the
    /// thousand.
    @inline(__always)
    final func measuredRead<T>(of layout: EntityLayout, rows: (T) -> Int, _ body: () throws -> T) rethrows -> T {
        guard Instrumentation.isAnyOn, let listener = instrumentation?._withUnsafeGuaranteedRef({ $0.listener }) else {
            return try ConfinementScope.enter(self, body)
        }
        return try measuring(
            listener: listener,
            kind: .fault,
            layout: Unmanaged.passUnretained(layout),
            entity: nil,
            isOneRead: true,
            rows: rows,
            body
        )
    }

    /// The form for a relationship.
    @inline(__always)
    final func measuredRead<T>(of slot: ToManySlot, rows: (T) -> Int, _ body: () throws -> T) rethrows -> T {
        guard Instrumentation.isAnyOn, let listener = instrumentation?._withUnsafeGuaranteedRef({ $0.listener }) else {
            return try ConfinementScope.enter(self, body)
        }
        return try measuring(
            listener: listener,
            kind: .fault,
            layout: nil,
            entity: slot.name,
            isOneRead: true,
            rows: rows,
            body
        )
    }

    @inline(__always)
    private final func measuring<T>(
        listener: Unmanaged<Instrumentation.Listener>,
        kind: CoreDataEvent.Kind,
        layout: Unmanaged<EntityLayout>?,
        entity: @autoclosure () -> String?,
        isOneRead: Bool,
        rows: (T) -> Int,
        _ body: () throws -> T
    ) rethrows -> T {
        let stack = ConfinementScope.stack
        let start = OperationTally.now
        return try withUnsafeTemporaryAllocation(of: OperationTally.self, capacity: 1) { place in
            let tally = place.baseAddress!
            tally.initialize(to: OperationTally(isOneRead: isOneRead))
            // Without a statement there is nothing to destroy, and the check takes less time.
            defer { if tally.pointee.statement != nil { tally.deinitialize(count: 1) } }
            do {
                let result = try ConfinementScope.enter(self, within: stack, tally: tally, body)
                report(
                    to: listener,
                    kind: kind,
                    start: start,
                    tally: tally,
                    rows: rows(result),
                    layout: layout,
                    entity: entity(),
                    code: nil,
                    outer: stack.tally
                )
                return result
            } catch {
                let code = (error as NSError).code
                report(
                    to: listener,
                    kind: kind,
                    start: start,
                    tally: tally,
                    rows: 0,
                    layout: layout,
                    entity: entity(),
                    code: code,
                    outer: stack.tally
                )
                throw error
            }
        }
    }

    /// Counts an operation for the enclosing one, and reports it to the instrument.
    @inline(never)
    private final func report(
        to listener: Unmanaged<Instrumentation.Listener>,
        kind: CoreDataEvent.Kind,
        start: Int64,
        tally: UnsafeMutablePointer<OperationTally>,
        rows: Int,
        layout: Unmanaged<EntityLayout>?,
        entity: consuming String?,
        code: Int?,
        outer: UnsafeMutablePointer<OperationTally>?
    ) {
        let duration = tally.pointee.end(start)
        if let outer { outer.pointee.add(tally.pointee.withoutWaits) }
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
        // The fields are read one by one: a copy of the tally would take more time than all of this.
        let waits = tally.pointee.readerWait | tally.pointee.writerWait | tally.pointee.checkpointTime
        if waits > 0 || tally.pointee.checkpointErrorCode != 0 { reportWaits(listener, tally.pointee) }
    }

    private final func reportWaits(_ listener: Unmanaged<Instrumentation.Listener>, _ tally: OperationTally) {
        let failure = tally.checkpointErrorCode == 0 ? nil : tally.checkpointErrorCode
        let waits: [(CoreDataEvent.Kind, Int64, errorCode: Int?)] = [
            (.readerWait, tally.readerWait, nil), (.writerWait, tally.writerWait, nil),
            (.checkpoint, tally.checkpointTime, failure),
        ]
        for (kind, nanoseconds, errorCode) in waits where nanoseconds > 0 || errorCode != nil {
            let event = CoreDataEvent(kind: kind, nanoseconds: nanoseconds, context: name, errorCode: errorCode)
            listener.takeUnretainedValue().instrument.record(event)
        }
    }

    /// Reports an event that takes no time, or was measured by the caller, to the instrument.
    package final func reportToInstrument(
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
    /// Ends an operation that began at `start`, and returns its duration.
    @inline(__always)
    fileprivate mutating func end(_ start: Int64) -> Int64 {
        let duration = Self.now - start
        if hasAskedStore { storeNanoseconds = duration }
        return duration
    }

    /// The part that an enclosing operation counts too; only the innermost operation reports waits.
    fileprivate var withoutWaits: OperationTally {
        var tally = self
        (tally.readerWait, tally.writerWait, tally.checkpointTime) = (0, 0, 0)
        tally.checkpointErrorCode = 0
        return tally
    }
}
