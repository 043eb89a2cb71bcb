#if canImport(CoreDataPostgreSQL)
import Foundation
import Synchronization

/// A proxy for the server that delays everything by half a round trip in each direction.
///
/// It has its own socket in a temporary folder, one thread that accepts connections, and four threads for each
/// connection.
final class DistantServer: @unchecked Sendable {
    // @unchecked Sendable: what is not constant is behind the mutex.

    /// The URL of the server through this proxy.
    let url: String
    private let folder: String
    private let server: String
    private let door: Int32
    private let delay: Duration
    private let sockets = Mutex<Set<Int32>>([])

    /// Opens the proxy for a server that has a Unix socket.
    init(_ url: String, roundTrip: Duration) throws {
        guard var parts = URLComponents(string: url), let items = parts.queryItems,
            let host = items.first(where: { $0.name == "host" })?.value
        else { throw BenchError("Only a server with a Unix socket can be put at a distance") }
        server = host + "/.s.PGSQL.5432"
        delay = roundTrip / 2
        // The path must be short: that of a socket has at most 107 bytes.
        folder = "/tmp/bench-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        parts.queryItems = items.filter { $0.name != "host" } + [URLQueryItem(name: "host", value: folder)]
        self.url = parts.string ?? url
        door = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let isOpen = Self.withAddress(folder + "/.s.PGSQL.5432") { bind(door, $0, $1) == 0 } && listen(door, 64) == 0
        guard isOpen else { throw BenchError("No socket can be made in \(folder)") }
        Thread { [self] in accept() }.start()
    }

    /// Accepts no more connections, and breaks those that are open.
    func close() {
        shutdown(door, Int32(SHUT_RDWR))
        for socket in sockets.withLock({ $0 }) { shutdown(socket, Int32(SHUT_RDWR)) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }

    private func accept() {
        while true {
            let client = Foundation.accept(door, nil, nil)
            guard client >= 0 else { return }
            let other = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            guard Self.withAddress(server, { connect(other, $0, $1) == 0 }) else {
                Foundation.close(client)
                Foundation.close(other)
                continue
            }
            sockets.withLock { $0.formUnion([client, other]) }
            let directions = Directions(2)
            for (source, sink) in [(client, other), (other, client)] {
                let pieces = Pieces()
                Thread { Self.read(source, into: pieces) }.start()
                Thread { [self] in
                    write(pieces, to: sink)
                    shutdown(sink, Int32(SHUT_RDWR))
                    guard directions.countDown() else { return }
                    sockets.withLock { $0.subtract([client, other]) }
                    Foundation.close(client)
                    Foundation.close(other)
                }.start()
            }
        }
    }

    /// The bytes that are on their way in one direction; an empty piece is the end.
    private final class Pieces: @unchecked Sendable {
        // @unchecked Sendable: everything is behind the condition.
        private let condition = NSCondition()
        private var pieces: [(bytes: [UInt8], at: ContinuousClock.Instant)] = []
        private var size = 0

        func add(_ bytes: [UInt8]) {
            condition.withLock {
                // A window like that of a network: the sender waits until the receiver has taken enough.
                while size > 4 << 20 { condition.wait() }
                pieces.append((bytes, .now))
                size += bytes.count
                condition.broadcast()
            }
        }

        func next() -> (bytes: [UInt8], at: ContinuousClock.Instant) {
            condition.withLock {
                while pieces.isEmpty { condition.wait() }
                let piece = pieces.removeFirst()
                size -= piece.bytes.count
                condition.broadcast()
                return piece
            }
        }
    }

    /// Counts the directions of a connection that are still open.
    private final class Directions: Sendable {
        private let left: Atomic<Int>
        init(_ count: Int) { left = Atomic(count) }
        /// Counts one direction as closed, and returns whether it was the last one.
        func countDown() -> Bool { left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
    }

    /// The bytes of a read from which on it is more than a question or a short answer.
    private static let muchAtOnce = 4096

    private static func read(_ source: Int32, into pieces: Pieces) {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = Foundation.read(source, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            pieces.add(Array(buffer.prefix(max(0, count))))
            if count <= 0 { return }
            // The server writes 8 KiB at a time. A network moves them without the processors, but this thread would
            // keep one of them busy if it moved each piece by itself.
            if count >= Self.muchAtOnce { usleep(200) }
        }
    }

    private func write(_ pieces: Pieces, to sink: Int32) {
        var isBroken = false
        while true {
            let (bytes, at) = pieces.next()
            if bytes.isEmpty { return }
            // Nothing more is sent, but the pieces are still taken, so that the thread that adds them also comes to
            // its end.
            if isBroken { continue }
            let rest = (at + delay - .now) / .nanoseconds(1)
            if rest > 0 {
                var time = timespec(tv_sec: 0, tv_nsec: Int(rest))
                nanosleep(&time, nil)
            }
            var done = 0
            while done < bytes.count, !isBroken {
                let count = bytes[done...].withUnsafeBytes { send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                if count > 0 { done += count } else if errno != EINTR { isBroken = true }
            }
        }
    }
}
#endif
