import Foundation
import StrataLocks

#if canImport(Glibc)
import Glibc
#endif

/// Reports writes to files by any process.
///
/// There is one watch of the kernel (inotify) for the whole process, because a user may have few. Any thread may call
/// any member.
final class FileEvents: Sendable {
    /// Identifies a watch, so that its caller can end it.
    struct Token: Sendable {
        /// The kernel's number of the file.
        let watch: Int32
        fileprivate let number: Int
    }

    private struct State {
        /// The handlers by the kernel's number of the file.
        var handlers: [Int32: [Int: @Sendable () -> Void]] = [:]
        var lastNumber = 0
    }

    private let state = Locked(State())

    #if canImport(Glibc)
    /// The process's watch; `nil` if the system refuses one.
    static let shared = FileEvents()

    private let descriptor: Int32

    private init?() {
        let descriptor = inotify_init1(Int32(IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
        // A source of Dispatch would switch threads three times for each read. The thread lives as long as the process.
        let thread = Thread { [self] in
            var lastRead: UInt64 = 0
            while true { readEvents(&lastRead) }
        }
        thread.name = "CoreData files"
        thread.start()
    }

    /// Calls `handler` after each write to the file at `path`; several writes may be reported as one.
    ///
    /// The handler runs on a thread that serves all files, and must be short.
    ///
    /// - Returns: `nil` if there is no such file, or if the system has no watch left.
    func watch(_ path: String, _ handler: @escaping @Sendable () -> Void) -> Token? {
        // This runs under the lock, so that no other caller releases the kernel's number meanwhile.
        state.withLock { state in
            let watch = inotify_add_watch(descriptor, path, UInt32(IN_MODIFY))
            guard watch >= 0 else { return nil }
            state.lastNumber += 1
            state.handlers[watch, default: [:]][state.lastNumber] = handler
            return Token(watch: watch, number: state.lastNumber)
        }
    }

    func end(_ token: Token) {
        state.withLock { state in
            state.handlers[token.watch]?[token.number] = nil
            guard state.handlers[token.watch]?.isEmpty == true else { return }
            state.handlers[token.watch] = nil
            _ = inotify_rm_watch(descriptor, token.watch)
        }
    }

    /// Waits for events, reads those that have come, and calls the handlers of each file once.
    private func readEvents(_ lastRead: inout UInt64) {
        var changed: Set<Int32> = []
        var hasLostEvents = false
        withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 8) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            var offset = 0
            while offset + MemoryLayout<inotify_event>.size <= count {
                let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { hasLostEvents = true }
                changed.insert(event.wd)
                offset += MemoryLayout<inotify_event>.size + Int(event.len)
            }
        }
        let handlers = state.withLock { state in
            hasLostEvents
                ? state.handlers.values.flatMap(\.values)
                : changed.flatMap { state.handlers[$0].map { Array($0.values) } ?? [] }
        }
        for handler in handlers { Schedule.adopt(handler) }
        // A commit writes each page by itself, and each write is an event. The next ones are read together.
        let now = BusyWait.now()
        usleep(now &- lastRead < Self.burst ? Self.longPause : Self.pause)
        lastRead = now
    }

    /// The time for which events are left to gather after some were reported, in microseconds.
    private static let pause: UInt32 = 500
    /// The same while events come without a break.
    ///
    /// Watchers report once in five milliseconds, so that more reads would only cost switches of threads.
    private static let longPause: UInt32 = 5000
    /// The time between two reads in which events have come without a break, in nanoseconds.
    private static let burst: UInt64 = 8_000_000
    #else
    /// This system has none.
    static let shared: FileEvents? = nil

    func watch(_ path: String, _ handler: @escaping @Sendable () -> Void) -> Token? { nil }

    func end(_ token: Token) {}
    #endif
}
