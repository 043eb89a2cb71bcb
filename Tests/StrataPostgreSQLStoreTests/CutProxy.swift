import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL

/// A proxy that cuts a process off from its server at one of its statements, as if the process had been killed there.
final class CutProxy: Sendable {
    /// The URL of the server through the proxy.
    let url: URL
    /// The number of statements that were passed on.
    let count = Locked(0)
    private let limit: Int
    private let folder = "/tmp/strata-cut-\(UInt32.random(in: 0 ... .max))"
    private let server: String
    private let door: Int32
    private let sockets = Locked<Set<Int32>>([])
    private let isCut = Locked(false)

    /// Passes on as many statements, and nothing afterwards.
    init(to other: URL, after limit: Int = .max) throws {
        var parts = try require(URLComponents(url: other, resolvingAgainstBaseURL: true))
        let items = parts.queryItems ?? []
        server = try require(items.first { $0.name == "host" }?.value) + "/.s.PGSQL.5432"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        parts.queryItems = items.filter { $0.name != "host" } + [URLQueryItem(name: "host", value: folder)]
        url = try require(parts.url)
        self.limit = limit
        door = try require(UnixSocket.listening(at: folder + "/.s.PGSQL.5432"))
        Thread.detachNewThread { [self] in accept() }
    }

    /// Cuts all connections, and accepts no more.
    func close() {
        isCut.withLock { $0 = true }
        shutdown(door, Int32(SHUT_RDWR))
        for socket in sockets.withLock({ $0 }) { shutdown(socket, Int32(SHUT_RDWR)) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func accept() {
        while true {
            let client = Foundation.accept(door, nil, nil)
            guard client >= 0 else { return }
            guard !isCut.withLock({ $0 }), let other = UnixSocket.connected(to: server) else {
                Foundation.close(client)
                continue
            }
            sockets.withLock { $0.formUnion([client, other]) }
            Thread.detachNewThread { [self] in
                passStatements(from: client, to: other)
                for socket in [client, other] { shutdown(socket, Int32(SHUT_RDWR)) }
            }
            Thread.detachNewThread {
                UnixSocket.relay(from: other, to: client)
                for socket in [client, other] { shutdown(socket, Int32(SHUT_RDWR)) }
            }
        }
    }

    private func passStatements(from client: Int32, to server: Int32) {
        guard let start = ClientMessage.start(from: client), UnixSocket.send(start, to: server) else { return }
        while let message = ClientMessage(from: client) {
            let isStatement = message.type == UInt8(ascii: "Q") || message.type == UInt8(ascii: "P")
            let number = count.withLock { count in
                if isStatement { count += 1 }
                return count
            }
            if number > limit { return close() }
            guard UnixSocket.send(message.bytes, to: server) else { return }
        }
    }
}
