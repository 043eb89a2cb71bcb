import Foundation
import StrataLocks

// HTTP/1.1 on POSIX sockets, as far as the example needs it, in one file: a thread for each connection, bodies with a
// length, answers whole or in chunks. Use Hummingbird or Vapor in its place for your own server. No other part of the
// example depends on it.

/// A request of a client.
package struct HTTPRequest: Sendable {
    package let method: String
    /// The parts of the path, with percent escapes decoded.
    package let path: [String]
    /// The headers by name, in lower case.
    package let headers: [String: String]
    package let body: Data

    /// Reads the JSON of the body.
    package func json<T: Decodable>(_ type: T.Type) throws -> T { try JSONDecoder().decode(type, from: body) }
}

/// An answer that is sent as a whole.
package struct HTTPResponse: Sendable {
    package var status = 200
    package var type = "application/json"
    package var body = Data()

    package init(status: Int = 200, type: String = "application/json", body: Data = Data()) {
        (self.status, self.type, self.body) = (status, type, body)
    }

    package init(status: Int = 200, json: some Encodable) throws {
        self.init(status: status, body: try JSONEncoder().encode(json))
    }
}

/// A connection to one client, used by one thread.
package final class HTTPConnection: Sendable {
    private let socket: Int32
    /// The bytes that were received and not used yet.
    private let received = Locked([UInt8]())
    private let streams = Locked(false)
    private let isShutDown = Locked(false)

    private static let mostHeaderBytes = 16_384
    private static let mostBodyBytes = 64 << 20

    init(_ socket: Int32) { self.socket = socket }

    deinit { close(socket) }

    /// Wakes a thread that waits for the client.
    ///
    /// Requests that were received before are still answered.
    func shutDown() {
        isShutDown.withLock { $0 = true }
        shutdown(socket, Int32(SHUT_RD))
    }

    /// Whether an answer was begun that is sent piece by piece.
    ///
    /// The connection ends after it.
    var isStreaming: Bool { streams.withLock { $0 } }

    // MARK: - Reading

    /// Returns the next request; `nil` after the client has disconnected.
    func next() throws -> HTTPRequest? {
        guard let head = try readHead() else { return nil }
        var lines = head.split(separator: "\r\n")[...]
        let words = (lines.popFirst() ?? "").split(separator: " ")
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { throw HTTPError(400, "no request line") }
        var headers: [String: String] = [:]
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { throw HTTPError(400, "a header without a colon") }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                in: .whitespaces
            )
        }
        guard headers["transfer-encoding"] == nil else { throw HTTPError(411, "bodies need a Content-Length") }
        let length = Int(headers["content-length"] ?? "0") ?? -1
        guard (0...Self.mostBodyBytes).contains(length) else { throw HTTPError(413, "the body is too long") }
        if headers["expect"]?.lowercased() == "100-continue" { try send(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
        let path = words[1].split(separator: "?")[0].split(separator: "/")
        return HTTPRequest(
            method: String(words[0]),
            path: path.map { $0.removingPercentEncoding ?? String($0) },
            headers: headers,
            body: try readBody(length)
        )
    }

    private func readHead() throws -> String? {
        let end: [UInt8] = [13, 10, 13, 10]
        var searched = 0
        while true {
            let head = received.withLock { bytes -> [UInt8]? in
                var place = max(searched - 3, 0)
                while place + 4 <= bytes.count {
                    if bytes[place..<place + 4].elementsEqual(end) {
                        defer { bytes.removeFirst(place + 4) }
                        return Array(bytes[..<place])
                    }
                    place += 1
                }
                searched = bytes.count
                return nil
            }
            if let head { return String(decoding: head, as: UTF8.self) }
            guard searched <= Self.mostHeaderBytes else { throw HTTPError(431, "the headers are too long") }
            guard try receive() else { return nil }
        }
    }

    private func readBody(_ length: Int) throws -> Data {
        while received.withLock({ $0.count }) < length {
            guard try receive() else { throw HTTPError(400, "the body is shorter than it says") }
        }
        return received.withLock { bytes in
            defer { bytes.removeFirst(length) }
            return Data(bytes.prefix(length))
        }
    }

    /// - Returns: False after the client has disconnected.
    private func receive() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            if count > 0 {
                received.withLock { $0 += buffer[..<count] }
                return true
            }
            guard count < 0, errno == EINTR else { return false }
        }
    }

    /// Whether the client has closed the connection.
    package var hasGone: Bool {
        var byte: UInt8 = 0
        let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        // If this side has ended the connection, the client may still be there.
        if count == 0, isShutDown.withLock({ $0 }) { return false }
        return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    }

    // MARK: - Writing

    /// Sends a whole answer.
    func send(_ response: HTTPResponse, isLast: Bool) throws {
        var head = "HTTP/1.1 \(response.status) \(Self.reason(response.status))\r\nContent-Type: \(response.type)\r\n"
        head += "Content-Length: \(response.body.count)\r\nConnection: \(isLast ? "close" : "keep-alive")\r\n\r\n"
        try send(Data(head.utf8) + response.body)
    }

    /// Begins an answer that is sent piece by piece.
    package func startStream(type: String) throws {
        streams.withLock { $0 = true }
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        try send(Data(head.utf8))
    }

    /// Sends a piece; throws after the client has disconnected.
    package func send(piece: String) throws {
        let bytes = Data(piece.utf8)
        try send(Data("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Data("\r\n".utf8))
    }

    /// Ends an answer that was sent piece by piece.
    package func endStream() throws { try send(Data("0\r\n\r\n".utf8)) }

    private func send(_ data: Data) throws {
        try data.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Glibc.send(
                    socket,
                    bytes.baseAddress! + sent,
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw HTTPError(499, "the client has gone") }
                sent += count
            }
        }
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 400: "Bad Request"
        case 404: "Not Found"
        case 409: "Conflict"
        case 503: "Service Unavailable"
        default: "Error"
        }
    }
}

/// The problem of a request, as it is sent to the client.
package struct HTTPError: Error {
    package let status: Int
    package let text: String

    package init(_ status: Int, _ text: String) { (self.status, self.text) = (status, text) }
}

/// Listens, and passes requests to a handler, each connection on a separate thread.
package final class HTTPServer: Sendable {
    /// Answers a request: it returns a response, or `nil` if it has streamed one to the connection.
    package typealias Handler = @Sendable (HTTPRequest, HTTPConnection) -> HTTPResponse?

    private struct State {
        var isStopping = false
        var connections: [ObjectIdentifier: HTTPConnection] = [:]
        /// Requests that are being answered.
        var answering = 0
    }

    /// The port, even if the system has chosen it.
    package let port: Int
    private let socket: Int32
    private let handler: Handler
    private let state = Locked(State())

    /// The most clients that may be connected at a time: each takes a thread.
    private static let mostConnections = 256

    /// Starts to listen on the loopback address.
    ///
    /// - Parameters:
    ///   - port: The port; 0 for any free one.
    ///   - handler: Answers requests, on several threads at once.
    /// - Throws: An error if the port is taken.
    package init(port: Int, handler: @escaping Handler) throws {
        self.handler = handler
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listener, size) = (socket, length)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 128) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isBound else {
            close(listener)
            throw HTTPError(500, "port \(port) is taken")
        }
        self.port = Int(address.sin_port.bigEndian)
        Thread.detachNewThread { self.accept() }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(socket, nil, nil)
            if client < 0 {
                if state.withLock({ $0.isStopping }) { return }
                continue
            }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            var yes: Int32 = 1
            setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
            let connection = HTTPConnection(client)
            let isTaken = state.withLock { state in
                guard !state.isStopping, state.connections.count < Self.mostConnections else { return false }
                state.connections[ObjectIdentifier(connection)] = connection
                return true
            }
            guard isTaken else { continue }
            let thread = Thread { self.serve(connection) }
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    private func serve(_ connection: HTTPConnection) {
        defer { state.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(connection)) } }
        while true {
            do {
                guard let request = try connection.next() else { return }
                state.withLock { $0.answering += 1 }
                defer { state.withLock { $0.answering -= 1 } }
                guard let response = handler(request, connection), !connection.isStreaming else { return }
                let isLast = request.headers["connection"]?.lowercased() == "close" || state.withLock { $0.isStopping }
                try connection.send(response, isLast: isLast)
                if isLast { return }
            } catch let error as HTTPError {
                try? connection.send(
                    HTTPResponse(status: error.status, type: "text/plain", body: Data(error.text.utf8)),
                    isLast: true
                )
                return
            } catch {
                return
            }
        }
    }

    /// Accepts no more connections and requests, and waits until the present requests are answered.
    ///
    /// - Parameter seconds: The longest wait.
    package func stop(within seconds: Double) async {
        let connections = state.withLock { state in
            state.isStopping = true
            return Array(state.connections.values)
        }
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
        // Threads that wait for their client's next request stop waiting.
        for connection in connections { connection.shutDown() }
        let end = ContinuousClock.now + .seconds(seconds)
        while state.withLock({ $0.answering }) > 0, .now < end { try? await Task.sleep(for: .milliseconds(5)) }
    }

    /// Whether ``stop(within:)`` was called.
    package var isStopping: Bool { state.withLock { $0.isStopping } }
}
