import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// The contexts that the current thread may use: those in whose `perform` it is.
///
/// Confinement is judged by scope, not by thread: the blocks of one context may run on many threads, one after the
/// other, and a block that waits for its parent's block is inside both scopes at once. The scopes of a thread form a
/// stack, kept in the frames of the calls themselves, so entering costs no allocation and asking costs a few nanoseconds.
public enum ConfinementScope {
    @usableFromInline struct Frame {
        @usableFromInline unowned(unsafe) let owner: AnyObject
        @usableFromInline let outer: UnsafeMutablePointer<Frame>?
        /// The tally that counts the work of the operation to which the scope belongs.
        @usableFromInline let tally: UnsafeMutablePointer<OperationTally>?
        /// Whether a child context has entered the scope during its own operation.
        @usableFromInline let isAscent: Bool
        /// Whether the scope belongs to an internal block of the framework, which the program has not submitted.
        @usableFromInline let isInternalBlock: Bool

        @inlinable
        init(
            owner: AnyObject,
            outer: UnsafeMutablePointer<Frame>?,
            tally: UnsafeMutablePointer<OperationTally>?,
            isAscent: Bool,
            isInternalBlock: Bool
        ) {
            self.owner = owner
            self.outer = outer
            self.tally = tally
            self.isAscent = isAscent
            self.isInternalBlock = isInternalBlock
        }
    }

    /// The way in which a scope is entered.
    public enum Entry: Sendable {
        /// The program has called the context.
        case call
        /// A child context enters the scope during its own operation.
        case ascent
        /// An internal block of the framework enters the scope: see ``WaitGraph/visit(_:_:)``.
        case internalBlock
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

    /// The scopes that the current thread is in, for a block that the thread waits for.
    ///
    /// It is valid until the call that asked for it returns.
    public struct Stack: @unchecked Sendable {
        // @unchecked Sendable: the frames are constant, and the thread that owns them waits while they are used.
        @usableFromInline let top: UnsafeMutablePointer<Frame>?

        @inlinable
        init(top: UnsafeMutablePointer<Frame>?) { self.top = top }

        /// The tally of the innermost scope; `nil` if nothing is counted.
        @inlinable
        @inline(__always)
        public var tally: UnsafeMutablePointer<OperationTally>? { top?.pointee.tally }

        /// Whether the thread is in no scope.
        @inlinable
        public var isEmpty: Bool { top == nil }

        /// The owners of the scopes, from the innermost out.
        ///
        /// One may occur more than once.
        @inlinable
        public var owners: [AnyObject] { occupied(duringOperation: false).map(\.owner) }

        /// The owners of the scopes, each with whether it went on to the next scope during its own operation.
        ///
        /// It is false for a scope that was left in a call.
        ///
        /// - Parameter duringOperation: Whether the innermost scope is about to be left in that way.
        /// - Returns: The owners from the innermost out.
        @inlinable
        public func occupied(duringOperation: Bool) -> [(owner: AnyObject, isDuringOperation: Bool)] {
            var result: [(owner: AnyObject, isDuringOperation: Bool)] = []
            var isDuringOperation = duringOperation
            var frame = top
            while let current = frame {
                result.append((current.pointee.owner, isDuringOperation))
                isDuringOperation = current.pointee.isAscent
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
    /// The caller ensures that no other code is in that scope.
    @inlinable
    @inline(__always)
    public static func enter<T>(_ owner: AnyObject, _ body: () throws -> T) rethrows -> T {
        try enter(owner, within: stack, body)
    }

    /// Runs `body` inside the scope of `owner` and the scopes of the thread that waits for it.
    ///
    /// Blocks of the main queue run on the main thread, whichever thread waits for them. So the scopes of the waiting
    /// thread have to be passed on.
    ///
    /// Work is counted in `tally`, or in that of the enclosing scope. If an internal block enters a scope, that scope
    /// is internal, too.
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
            isInternalBlock: entry == .internalBlock || outer?.isInternalBlock == true
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

    /// The tally that counts the work of the current operation; `nil` if nothing is counted.
    @inlinable
    @inline(__always)
    public static var tally: UnsafeMutablePointer<OperationTally>? { top?.pointee.tally }

    /// Whether the current thread is inside an internal block, which the program has not submitted.
    @inlinable
    public static var isInternalBlock: Bool { top?.pointee.isInternalBlock == true }

    /// The innermost scope of the current thread.
    @inlinable
    public static var innermost: AnyObject? { top?.pointee.owner }

    /// Whether accesses are checked (see `ConcurrencyDebug`).
    ///
    /// In debug builds they are, unless the program opts out. In other builds they are only if it opts in.
    public static let isChecked: Bool = ConcurrencyDebug.current != .off
}

/// Finds out whether code runs on the main queue, on whichever thread that queue runs.
public enum MainQueue {
    @usableFromInline final class Token: Sendable {}

    /// Represents the main queue in the stack of scopes and among waiting contexts.
    ///
    /// It is there while the main queue waits for a block on another queue.
    public static let token: AnyObject & Sendable = Token()

    @usableFromInline static let key: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    /// Whether the current code runs on the main queue, or code on the main queue waits for it.
    @inlinable
    public static var isCurrent: Bool {
        DispatchQueue.getSpecific(key: key) == true || ConfinementScope.contains(token)
    }

    /// Runs `body`, which waits for a block on another queue, so that the block still counts as on the main queue.
    ///
    /// Dispatch itself keeps only the innermost queue.
    @inlinable
    @inline(__always)
    public static func keepingTrack<T>(_ body: () throws -> T) rethrows -> T {
        guard DispatchQueue.getSpecific(key: key) == true else { return try body() }
        return try ConfinementScope.enter(token, body)
    }
}
