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
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while true {
                    let count = recv(other, &buffer, buffer.count, 0)
                    guard count > 0, Self.send(buffer[..<count], to: client) else { break }
                }
                for socket in [client, other] { shutdown(socket, Int32(SHUT_RDWR)) }
            }
        }
    }

    private func passStatements(from client: Int32, to server: Int32) {
        guard let first = Self.receive(4, from: client), let start = Self.receive(Self.length(first) - 4, from: client),
            Self.send((first + start)[...], to: server)
        else { return }
        while let head = Self.receive(5, from: client),
            let body = Self.receive(Self.length(head.dropFirst()) - 4, from: client)
        {
            let isStatement = head[0] == UInt8(ascii: "Q") || head[0] == UInt8(ascii: "P")
            let number = count.withLock { count in
                if isStatement { count += 1 }
                return count
            }
            if number > limit { return close() }
            guard Self.send((head + body)[...], to: server) else { return }
        }
    }

    private static func length(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    private static func receive(_ count: Int, from socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let part = bytes.withUnsafeMutableBytes { recv(socket, $0.baseAddress! + done, count - done, 0) }
            guard part > 0 else { return nil }
            done += part
        }
        return bytes
    }

    private static func send(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let done = rest.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard done > 0 else { return false }
            rest = rest.dropFirst(done)
        }
        return true
    }
}
