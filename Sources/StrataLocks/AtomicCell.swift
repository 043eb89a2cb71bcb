import Synchronization

#if Schedules
/// A value that several threads use without a lock, whose uses are places of ``Schedule``.
///
/// It has the interface of `Synchronization.Atomic`. Another thread may go on before and after each change, and before each
/// read that orders other reads. So a value that is published too early, or looked at too late, meets all others. A relaxed
/// read has no place: what comes before it is a place already.
public struct AtomicCell<Value: AtomicRepresentable>: ~Copyable, @unchecked Sendable {
    // @unchecked Sendable: the content is behind a mutex.
    private let content: CellContent<Value>

    /// A cell with a value.
    public init(_ initialValue: consuming Value) { content = CellContent(initialValue) }

    /// The value.
    public borrowing func load(ordering: AtomicLoadOrdering) -> Value {
        if ordering != .relaxed { Schedule.point(at: content.address) }
        return content.change { $0 }.oldValue
    }

    /// Sets the value.
    public borrowing func store(_ desired: consuming Value, ordering: AtomicStoreOrdering) {
        _ = change { [desired] _ in desired }
    }

    /// Sets the value, and returns the former one.
    public borrowing func exchange(_ desired: consuming Value, ordering: AtomicUpdateOrdering) -> Value {
        change { [desired] _ in desired }.oldValue
    }

    /// Sets the value if it is the expected one.
    public borrowing func compareExchange(
        expected: consuming Value,
        desired: consuming Value,
        ordering: AtomicUpdateOrdering
    ) -> (exchanged: Bool, original: Value) {
        var isExpected = false
        let (original, _) = change { [expected, desired] present in
            isExpected = CellContent.equals(present, expected)
            return isExpected ? desired : present
        }
        return (isExpected, original)
    }

    /// Sets the value if it is the expected one.
    public borrowing func compareExchange(
        expected: consuming Value,
        desired: consuming Value,
        successOrdering: AtomicUpdateOrdering,
        failureOrdering: AtomicLoadOrdering
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(expected: expected, desired: desired, ordering: successOrdering)
    }

    private borrowing func change(_ next: (Value) -> Value) -> (oldValue: Value, newValue: Value) {
        Schedule.point(at: content.address)
        defer { Schedule.point(at: content.address) }
        return content.change(next)
    }
}

extension AtomicCell where Value: FixedWidthInteger {
    /// Adds a number.
    @discardableResult
    public borrowing func add(
        _ operand: Value,
        ordering: AtomicUpdateOrdering
    ) -> (oldValue: Value, newValue: Value) {
        change { $0 + operand }
    }

    /// Subtracts a number.
    @discardableResult
    public borrowing func subtract(
        _ operand: Value,
        ordering: AtomicUpdateOrdering
    ) -> (oldValue: Value, newValue: Value) {
        change { $0 - operand }
    }

    /// Adds a number, and wraps around.
    @discardableResult
    public borrowing func wrappingAdd(
        _ operand: Value,
        ordering: AtomicUpdateOrdering
    ) -> (oldValue: Value, newValue: Value) {
        change { $0 &+ operand }
    }
}

/// The value of a cell, behind a mutex that the scheduler does not see.
final class CellContent<Value>: @unchecked Sendable {
    // @unchecked Sendable: the value is touched with the mutex held.
    private let mutex = Mutex(())
    private var value: Value

    init(_ value: Value) { self.value = value }

    var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }

    func change(_ next: (Value) -> Value) -> (oldValue: Value, newValue: Value) {
        mutex.withLock { _ in
            let old = value
            value = next(old)
            return Pair(old: old, new: value)
        }.values
    }

    /// Whether two values have the same bytes, as an atomic compares them.
    static func equals(_ one: Value, _ other: Value) -> Bool {
        withUnsafeBytes(of: one) { one in withUnsafeBytes(of: other) { one.elementsEqual($0) } }
    }

    private struct Pair: @unchecked Sendable {
        // @unchecked Sendable: it only leaves the mutex.
        let old: Value
        let new: Value
        var values: (oldValue: Value, newValue: Value) { (old, new) }
    }
}
#else
/// A value that several threads use without a lock.
///
/// The library uses this name, so that builds with the trait `Schedules` can let other threads go on there.
public typealias AtomicCell = Atomic
#endif
