import CoreData

/// Prints the stack of every thread of the process, for a run that does not come to an end.
enum ThreadStacks {
    #if os(Linux)
    private typealias Collect = @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32) -> Int32
    private typealias Show = @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32, Int32) -> Void
    private typealias Signal = @convention(c) (Int32, Int32, Int32) -> Int32

    // Functions of the C library that the module Glibc leaves out. The types are those of <execinfo.h> and
    // <signal.h>.
    private static let collect = dlsym(nil, "backtrace").map { unsafeBitCast($0, to: Collect.self) }
    private static let show = dlsym(nil, "backtrace_symbols_fd").map { unsafeBitCast($0, to: Show.self) }
    private static let send = dlsym(nil, "tgkill").map { unsafeBitCast($0, to: Signal.self) }

    /// Enables each thread to print its own stack when it is asked to.
    static func prepare() {
        // They are used here for the first time, and thereby looked up, because the handler may do next to nothing.
        guard collect != nil, show != nil, send != nil else { return }
        signal(SIGUSR2) { _ in
            withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer?.self, capacity: 64) { frames in
                guard let start = frames.baseAddress, let count = ThreadStacks.collect?(start, 64) else { return }
                ThreadStacks.show?(start, count, STDERR_FILENO)
                _ = write(STDERR_FILENO, "--\n", 3)
            }
        }
    }

    /// Asks all threads to print theirs, one after the other.
    static func print() {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        for task in tasks.compactMap({ Int32($0) }).sorted() {
            _ = send?(getpid(), task, SIGUSR2)
            usleep(20_000)
        }
    }
    #else
    static func prepare() {}

    static func print() {}
    #endif
}
