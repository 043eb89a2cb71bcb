import Foundation

/// A client for the load and for tests.
///
/// It keeps one connection open, and one thread uses it.
package final class HTTPClient {
    private let port: Int
    private var socket: Int32 = -1
    private var received: [UInt8] = []

    package init(port: Int) { self.port = port }

    deinit { if socket >= 0 { close(socket) } }

    /// Sends a request, and waits for the answer.
    ///
    /// - Throws: `HTTPError` 0 if the server cannot be reached, or if the connection ends during the answer.
    package func ask(_ method: String, _ path: String, body: Data = Data()) throws -> (status: Int, body: Data) {
        try send(method, path, body: body)
        let head = try readHead()
        guard let status = Int(head.split(separator: " ").dropFirst().first ?? "") else { throw gone }
        let lines = head.lowercased().split(separator: "\r\n")
        let length = lines.first { $0.hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
        guard let length else {
            // This is an answer in pieces, which ends with the connection.
            while try receive() {}
            defer { disconnect() }
            return (status, Data(received))
        }
        while received.count < length { guard try receive() else { throw gone } }
        defer { received.removeFirst(length) }
        let answer = Data(received.prefix(length))
        if lines.contains("connection: close") { disconnect() }
        return (status, answer)
    }

    /// Sends a request whose answer comes piece by piece; see ``piece()``.
    package func send(_ method: String, _ path: String, body: Data = Data()) throws {
        if socket < 0 { try connect() }
        let head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\n\r\n"
        try (Data(head.utf8) + body).withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Glibc.send(
                    socket,
                    bytes.baseAddress! + sent,
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
                guard count > 0 else { throw gone }
                sent += count
            }
        }
    }

    /// Returns the data that has come since the last call; `nil` after the server has ended the answer.
    package func piece() throws -> String? {
        if received.isEmpty { guard try receive() else { return nil } }
        defer { received.removeAll() }
        return String(decoding: received, as: UTF8.self)
    }

    /// Closes the connection.
    package func disconnect() {
        if socket >= 0 { close(socket) }
        socket = -1
        received = []
    }

    private var gone: HTTPError {
        disconnect()
        return HTTPError(0, "the server has gone")
    }

    private func connect() throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let socket = socket
        let isConnected = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { throw gone }
    }

    private func receive() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        received += buffer[..<count]
        return true
    }

    private func readHead() throws -> String {
        while true {
            if let end = received.firstRange(of: [13, 10, 13, 10]) {
                defer { received.removeFirst(end.upperBound) }
                return String(decoding: received[..<end.lowerBound], as: UTF8.self)
            }
            guard try receive() else { throw gone }
        }
    }
}
