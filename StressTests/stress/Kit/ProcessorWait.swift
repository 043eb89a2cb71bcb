import Foundation

/// How long a thread has waited for a processor.
///
/// That time is due to other work on the machine, not to the framework.
///
/// Only the thread that has made it may use it.
struct ProcessorWait {
    private let file = open("/proc/thread-self/schedstat", O_RDONLY)

    /// The time so far; zero where the kernel does not report it.
    var sum: Duration {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = pread(file, &bytes, bytes.count, 0)
        guard count > 0 else { return .zero }
        // The file has the time on a processor, the time of waiting for one, both in nanoseconds, and the number of
        // turns.
        let numbers = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: " ")
        return .nanoseconds(numbers.count > 1 ? Int64(numbers[1]) ?? 0 : 0)
    }

    func end() { close(file) }
}
