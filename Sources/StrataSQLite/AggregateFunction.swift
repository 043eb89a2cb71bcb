import CStrataSQLite

/// An aggregate function of SQL, written in Swift.
package struct AggregateFunction: Sendable {
    package let name: String
    package let argumentCount: Int
    /// Makes the accumulator for the rows of one group.
    package let make: @Sendable () -> any Accumulator

    /// The state of an aggregate function for the rows that it has received.
    ///
    /// One thread uses it.
    package protocol Accumulator: AnyObject {
        /// Adds one row.
        ///
        /// The arguments of the call are those of the row. Its result is ignored.
        func add(_ call: FunctionCall)

        /// Returns the result through `call`, which has no arguments.
        func finish(_ call: FunctionCall)
    }

    package init(_ name: String, argumentCount: Int = 1, make: @escaping @Sendable () -> any Accumulator) {
        self.name = name
        self.argumentCount = argumentCount
        self.make = make
    }

    /// The accumulator of a group, in memory that SQLite has set to zero.
    private typealias Slot = UnsafeMutablePointer<Unmanaged<AnyObject>?>

    func register(on handle: OpaquePointer) -> Int32 {
        sqlite3_create_function_v2(
            handle,
            name,
            Int32(argumentCount),
            SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC,
            Unmanaged.passRetained(Box(make)).toOpaque(),
            nil,
            { context, count, arguments in
                guard let context, let accumulator = AggregateFunction.accumulator(context) else { return }
                accumulator.add(FunctionCall(context: context, count: Int(count), arguments: arguments))
            },
            { context in
                // SQLite calls this for every group that was begun, even if the statement is abandoned.
                guard let context else { return }
                let slot = AggregateFunction.slot(context, size: 0)
                let kept = slot?.pointee
                slot?.pointee = nil
                let accumulator = kept?.takeRetainedValue() as? any Accumulator ?? AggregateFunction.made(context)
                accumulator?.finish(FunctionCall(context: context, count: 0, arguments: nil))
            },
            { Unmanaged<AnyObject>.fromOpaque($0!).release() }  // SQLite hands back the pointer that it was given
        )
    }

    private static func slot(_ context: OpaquePointer, size: Int) -> Slot? {
        sqlite3_aggregate_context(context, Int32(size))?.assumingMemoryBound(to: Unmanaged<AnyObject>?.self)
    }

    private static func made(_ context: OpaquePointer) -> (any Accumulator)? {
        guard let box = sqlite3_user_data(context) else { return nil }
        return Unmanaged<Box<@Sendable () -> any Accumulator>>.fromOpaque(box).takeUnretainedValue().value()
    }

    private static func accumulator(_ context: OpaquePointer) -> (any Accumulator)? {
        guard let slot = slot(context, size: MemoryLayout<Unmanaged<AnyObject>?>.size) else { return nil }
        if let kept = slot.pointee { return kept.takeUnretainedValue() as? any Accumulator }
        guard let accumulator = made(context) else { return nil }
        slot.pointee = Unmanaged.passRetained(accumulator)
        return accumulator
    }
}
