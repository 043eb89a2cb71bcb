import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// Which contexts the current thread may touch: those in whose `perform` it is.
///
/// Confinement is judged by scope, not by thread: the blocks of one context may run on many threads, one after the
/// other, and a block that waits for its parent's block is inside both scopes at once. The scopes of a thread form a
/// stack, kept in the frames of the calls themselves, so entering costs no allocation and asking costs a few nanoseconds.
public enum ConfinementScope {
    @usableFromInline struct Frame {
        @usableFromInline unowned(unsafe) let owner: AnyObject
        @usableFromInline let outer: UnsafeMutablePointer<Frame>?
        /// Where the work of the operation that the scope belongs to is counted.
        @usableFromInline let tally: UnsafeMutablePointer<OperationTally>?
        /// Whether a context below has entered it, amid an operation of its own.
        @usableFromInline let isAscent: Bool
        /// Whether it belongs to a block that nobody has submitted.
        @usableFromInline let isUnasked: Bool

        @inlinable
        init(
            owner: AnyObject,
            outer: UnsafeMutablePointer<Frame>?,
            tally: UnsafeMutablePointer<OperationTally>?,
            isAscent: Bool,
            isUnasked: Bool
        ) {
            self.owner = owner
            self.outer = outer
            self.tally = tally
            self.isAscent = isAscent
            self.isUnasked = isUnasked
        }
    }

    /// How a scope comes to be entered.
    public enum Entry: Sendable {
        /// As somebody has asked for.
        case call
        /// By a context below, amid an operation of its own.
        case ascent
        /// By a block of the framework's own: see ``WaitGraph/visit(_:_:)``.
        case unasked
    }

    @usableFromInline static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0, "CoreData needs a thread-local key, and the process has used up all \(status)")
        return key
    }()

    @inlinable
    static var top: UnsafeMutablePointer<Frame>? {
        @inline(__always) get {
            pthread_getspecific(key)?.assumingMemoryBound(to: Frame.self)
        }
    }

    /// The scopes that the current thread is in, to be taken along by a block that it waits for.
    ///
    /// Valid as long as the call that asked for it has not returned.
    public struct Stack: @unchecked Sendable {
        // @unchecked Sendable: the frames are constant, and the thread they belong to waits while they are used.
        @usableFromInline let top: UnsafeMutablePointer<Frame>?

        @inlinable
        init(top: UnsafeMutablePointer<Frame>?) { self.top = top }

        /// Where the work of the innermost is counted; `nil` if nobody wants to know.
        @inlinable
        @inline(__always)
        public var tally: UnsafeMutablePointer<OperationTally>? { top?.pointee.tally }

        /// Whether the thread is in no scope.
        @inlinable
        public var isEmpty: Bool { top == nil }

        /// Whose scopes they are, from the innermost out; one may occur more than once.
        @inlinable
        public var owners: [AnyObject] { occupied(amidOperation: false).map(\.owner) }

        /// The same, each with whether it was left for the next amid an operation of its owner, and not in a call.
        ///
        /// - Parameter amidOperation: Whether the innermost is about to be left so.
        /// - Returns: The owners from the innermost out.
        @inlinable
        public func occupied(amidOperation: Bool) -> [(owner: AnyObject, isAmidOperation: Bool)] {
            var result: [(owner: AnyObject, isAmidOperation: Bool)] = []
            var isAmidOperation = amidOperation
            var frame = top
            while let current = frame {
                result.append((current.pointee.owner, isAmidOperation))
                isAmidOperation = current.pointee.isAscent
                frame = current.pointee.outer
            }
            return result
        }
    }

    /// The scopes of the current thread.
    @inlinable
    public static var stack: Stack { Stack(top: top) }

    /// Runs `body` inside the scope of `owner`.
    ///
    /// The caller has made sure that nobody else is in that scope.
    @inlinable
    @inline(__always)
    public static func enter<T>(_ owner: AnyObject, _ body: () throws -> T) rethrows -> T {
        try enter(owner, within: stack, body)
    }

    /// Runs `body` inside the scope of `owner` and the scopes of the thread that waits for it.
    ///
    /// Blocks of the main queue run on the main thread whoever waits for them, so the scopes of the waiting thread have to
    /// be handed over.
    ///
    /// What is counted goes to `tally`, or where the enclosing scope's goes. What an unasked block enters is unasked, too.
    @inlinable
    public static func enter<T>(
        _ owner: AnyObject,
        within stack: Stack,
        tally: UnsafeMutablePointer<OperationTally>? = nil,
        as entry: Entry = .call,
        _ body: () throws -> T
    ) rethrows -> T {
        let before = top
        let outer = stack.top?.pointee
        var frame = Frame(
            owner: owner,
            outer: stack.top,
            tally: tally ?? outer?.tally,
            isAscent: entry == .ascent,
            isUnasked: entry == .unasked || outer?.isUnasked == true
        )
        return try withUnsafeMutablePointer(to: &frame) { pointer in
            pthread_setspecific(key, pointer)
            defer { pthread_setspecific(key, before) }
            return try body()
        }
    }

    /// Whether the current thread is inside the scope of `owner`.
    @inlinable
    @inline(__always)
    public static func contains(_ owner: AnyObject) -> Bool {
        var frame = top
        while let current = frame {
            if current.pointee.owner === owner { return true }
            frame = current.pointee.outer
        }
        return false
    }

    /// Where the work of the current operation is counted; `nil` if nobody wants to know.
    @inlinable
    @inline(__always)
    public static var tally: UnsafeMutablePointer<OperationTally>? { top?.pointee.tally }

    /// Whether the current thread runs a block that nobody has submitted, or what that has called.
    @inlinable
    public static var isUnasked: Bool { top?.pointee.isUnasked == true }

    /// The innermost scope of the current thread.
    @inlinable
    public static var innermost: AnyObject? { top?.pointee.owner }

    /// Whether accesses are checked: in debug builds unless somebody asks not to, elsewhere if somebody asks for it (see
    /// `ConcurrencyDebug`).
    public static let isChecked: Bool = ConcurrencyDebug.current != .off
}

/// Tells whether code runs on the main queue, whatever thread drains that queue.
public enum MainQueue {
    @usableFromInline final class Token: Sendable {}

    /// Stands for the main queue in the stack of scopes, while a block on another queue is waited for from there, and among
    /// those who wait for each other.
    public static let token: AnyObject & Sendable = Token()

    @usableFromInline static let key: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    /// Whether the current code runs on the main queue, or is waited for by code that does.
    @inlinable
    public static var isCurrent: Bool {
        DispatchQueue.getSpecific(key: key) == true || ConfinementScope.contains(token)
    }

    /// Runs `body`, which waits for a block on another queue, so that the block still counts as running on the main queue.
    ///
    /// Dispatch itself forgets all queues but the innermost.
    @inlinable
    @inline(__always)
    public static func keepingTrack<T>(_ body: () throws -> T) rethrows -> T {
        guard DispatchQueue.getSpecific(key: key) == true else { return try body() }
        return try ConfinementScope.enter(token, body)
    }
}
