import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// Which contexts the current thread may touch: those in whose `perform` it is.
///
/// Confinement is judged by scope, not by thread: the blocks of one context may run on many threads, one after the
/// other, and a block that waits for its parent's block is inside both scopes at once. The scopes of a thread form a
/// stack, kept in the frames of the calls themselves, so entering costs no allocation and asking costs a few nanoseconds.
package enum ConfinementScope {
    fileprivate struct Frame {
        unowned(unsafe) let owner: AnyObject
        let outer: UnsafeMutablePointer<Frame>?
        /// Where the work of the operation that the scope belongs to is counted.
        let tally: UnsafeMutablePointer<OperationTally>?
        /// Whether a context below has entered it, amid an operation of its own.
        let isAscent: Bool
        /// Whether it belongs to a block that nobody has submitted.
        let isUnasked: Bool
    }

    /// How a scope comes to be entered.
    package enum Entry {
        /// As somebody has asked for.
        case call
        /// By a context below, amid an operation of its own.
        case ascent
        /// By a block of the framework's own: see ``WaitGraph/visit(_:_:)``.
        case unasked
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0, "CoreData needs a thread-local key, and the process has used up all \(status)")
        return key
    }()

    private static var top: UnsafeMutablePointer<Frame>? {
        @inline(__always) get {
            pthread_getspecific(key)?.assumingMemoryBound(to: Frame.self)
        }
    }

    /// The scopes that the current thread is in, to be taken along by a block that it waits for.
    ///
    /// Valid as long as the call that asked for it has not returned.
    package struct Stack: @unchecked Sendable {
        // @unchecked Sendable: the frames are constant, and the thread they belong to waits while they are used.
        fileprivate let top: UnsafeMutablePointer<Frame>?

        package var isEmpty: Bool { top == nil }

        /// Whose scopes they are, from the innermost out; one may occur more than once.
        package var owners: [AnyObject] { occupied(amidOperation: false).map(\.owner) }

        /// The same, each with whether it was left for the next amid an operation of its owner, and not in a call.
        ///
        /// `amidOperation`: Whether the innermost is about to be left so.
        package func occupied(amidOperation: Bool) -> [(owner: AnyObject, isAmidOperation: Bool)] {
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
    package static var stack: Stack { Stack(top: top) }

    /// Runs `body` inside the scope of `owner`.
    ///
    /// The caller has made sure that nobody else is in that scope.
    @inline(__always)
    package static func enter<T>(_ owner: AnyObject, _ body: () throws -> T) rethrows -> T {
        try enter(owner, within: stack, body)
    }

    /// Runs `body` inside the scope of `owner` and the scopes of the thread that waits for it.
    ///
    /// Blocks of the main queue run on the main thread whoever waits for them, so the scopes of the waiting thread have to
    /// be handed over.
    ///
    /// What is counted goes to `tally`, or where the enclosing scope's goes. What an unasked block enters is unasked, too.
    package static func enter<T>(
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
    @inline(__always)
    package static func contains(_ owner: AnyObject) -> Bool {
        var frame = top
        while let current = frame {
            if current.pointee.owner === owner { return true }
            frame = current.pointee.outer
        }
        return false
    }

    /// Where the work of the current operation is counted; `nil` if nobody wants to know.
    @inline(__always)
    package static var tally: UnsafeMutablePointer<OperationTally>? { top?.pointee.tally }

    /// Whether the current thread runs a block that nobody has submitted, or what that has called.
    package static var isUnasked: Bool { top?.pointee.isUnasked == true }

    /// The innermost scope of the current thread.
    package static var innermost: AnyObject? { top?.pointee.owner }

    /// Whether accesses are checked: always in debug builds, elsewhere if somebody asks for it (see `ConcurrencyDebug`).
    package static let isChecked: Bool = {
        #if DEBUG
        return true
        #else
        return ConcurrencyDebug.isAsked(
            environment: ProcessInfo.processInfo.environment,
            arguments: ProcessInfo.processInfo.arguments
        )
        #endif
    }()
}

/// Tells whether code runs on the main queue, whatever thread drains that queue.
package enum MainQueue {
    private final class Token: Sendable {}

    /// Stands for the main queue in the stack of scopes, while a block on another queue is waited for from there, and among
    /// those who wait for each other.
    package static let token: AnyObject & Sendable = Token()

    private static let key: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    /// Whether the current code runs on the main queue, or is waited for by code that does.
    package static var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true || ConfinementScope.contains(token) }

    /// Runs `body`, which waits for a block on another queue, so that the block still counts as running on the main queue.
    ///
    /// Dispatch itself forgets all queues but the innermost.
    @inline(__always)
    package static func keepingTrack<T>(_ body: () throws -> T) rethrows -> T {
        guard DispatchQueue.getSpecific(key: key) == true else { return try body() }
        return try ConfinementScope.enter(token, body)
    }
}
