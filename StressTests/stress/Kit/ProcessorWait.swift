import Foundation

/// How long a thread had to wait for a processor: what other work on the machine costs it, and not what the framework does.
///
/// Used by the thread that has made it.
struct ProcessorWait {
    private let file = open("/proc/thread-self/schedstat", O_RDONLY)

    /// The time so far; zero where the kernel does not tell.
    var sum: Duration {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = pread(file, &bytes, bytes.count, 0)
        guard count > 0 else { return .zero }
        // The time on a processor, that of waiting for one, and how often; in nanoseconds.
        let numbers = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: " ")
        return .nanoseconds(numbers.count > 1 ? Int64(numbers[1]) ?? 0 : 0)
    }

    func end() { close(file) }
}
