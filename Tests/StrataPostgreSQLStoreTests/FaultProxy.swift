import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import Synchronization
import TestSupport
import Testing

/// A proxy between a client and the server, on a separate Unix socket, which breaks connections at the word COMMIT.
///
/// It has one thread that accepts connections and two for each connection. All end with the proxy.
final class FaultProxy: @unchecked Sendable {
    // @unchecked Sendable: a mutex or the condition guards all mutable state.

    /// The fault at the next COMMIT, which strikes once.
    enum Fault {
        /// The server never gets the COMMIT, and the connection is cut.
        case cutBefore
        /// The server has carried out the COMMIT, and the connection is cut instead of the answer.
        case cutAfter
        /// The server has carried out the COMMIT, and answers that it does not know the outcome (40003).
        case doubtAfter
        /// The server has rolled back instead, and answers that it could not serialise the transaction (40001). Then the
        /// connection is cut.
        case refusedAndCut
        /// The server never gets the COMMIT, and the client never gets anything more.
        case silence
        /// The server carries out the COMMIT, and afterwards nothing passes: as if the client stood still.
        case standstill
    }

    private struct State {
        var fault: Fault?
        /// The text at which the fault strikes.
        var text: [UInt8] = []
        var isOpen = true
        var hasStruck = false
        var sockets: Set<Int32> = []
    }

    private let state = Locked(State())
    private let place: URL
    private let door: Int32
    private let server: String
    /// The URL of the server through the proxy.
    let url: URL

    /// Makes a proxy for the tests' server, or for another one.
    init(to other: URL? = nil) throws {
        let direct = try other ?? require(TestDatabase.url)
        var parts = try require(URLComponents(url: direct, resolvingAgainstBaseURL: true))
        let items = parts.queryItems ?? []
        let host = try require(items.first { $0.name == "host" }?.value)
        server = host + "/.s.PGSQL.5432"
        // The path is short, since a socket's path has at most 107 bytes.
        place = URL(fileURLWithPath: "/tmp/strata-proxy-\(UInt32.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        parts.queryItems = items.filter { $0.name != "host" } + [URLQueryItem(name: "host", value: place.path)]
        url = try require(parts.url)
        door = try require(UnixSocket.listening(at: place.path + "/.s.PGSQL.5432"))
        start { [self] in accept() }
    }

    /// Accepts no more connections, and breaks the existing ones.
    func close() {
        setOpen(false)
        release { _ in true }
        shutdown(door, Int32(SHUT_RDWR))
        try? FileManager.default.removeItem(at: place)
    }

    /// Sets whether new connections are accepted; `false` also breaks the existing ones.
    func setOpen(_ isOpen: Bool) {
        let sockets = state.withLock { state in
            state.isOpen = isOpen
            return isOpen ? [] : state.sockets
        }
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    /// Arms a fault, for the next COMMIT or another text.
    func arm(_ fault: Fault, at text: String = "COMMIT\0") {
        state.withLock {
            $0.fault = fault
            $0.text = Array(text.utf8)
            $0.hasStruck = false
        }
    }

    /// Whether the armed fault has struck.
    var hasStruck: Bool { state.withLock { $0.hasStruck } }

    /// Whether the proxy also closes with the fault, so that no client can ask afterwards.
    let closesWithFault = Locked(false)

    /// The number of connections that were accepted.
    let callers = Locked(0)

    /// The number of answers: the number of round trips, if each answer is one piece.
    let answers = Locked(0)

    /// How often a client has sent something after an answer: the number of round trips, in however many pieces the
    /// answers come.
    let trips = Locked(0)

    /// The number of bytes that the server has sent.
    let bytes = Locked(0)
    /// A block that gets this number whenever it has grown.
    let onBytes = Locked<(@Sendable (Int) -> Void)?>(nil)

    /// The delay of each piece that the server sends, in microseconds.
    let delay = Locked<UInt32>(0)

    /// A text in the server's answers, and another one of the same length that replaces it.
    let lie = Locked<(text: String, instead: String)?>(nil)
    /// The text of an answer after which a connection is cut, before the server says that it waits for more.
    let lastAnswer = Locked<String?>(nil)

    /// Holds back all answers of the server from now on, until a client sends a piece with this text.
    func holdAnswers(until text: String) {
        hold.lock()
        awaited = Array(text.utf8)
        hold.unlock()
    }

    private let hold = NSCondition()
    // Guarded by `hold`.
    /// The text that ends the hold; empty if nothing is held back.
    private var awaited: [UInt8] = []

    /// Whether accepted connections get no answers.
    let isSilent = Locked(false)

    /// The folder with the socket.
    var folder: String { place.path }

    // MARK: - Threads

    private func start(_ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.start()
    }

    private func accept() {
        while true {
            let client = Foundation.accept(door, nil, nil)
            guard client >= 0 else { return }
            guard state.withLock({ $0.isOpen }) else {
                Foundation.close(client)
                continue
            }
            callers.withLock { $0 += 1 }
            if isSilent.withLock({ $0 }) {
                state.withLock { _ = $0.sockets.insert(client) }
                continue
            }
            guard let other = UnixSocket.connected(to: server) else {
                Foundation.close(client)
                continue
            }
            state.withLock { $0.sockets.formUnion([client, other]) }
            let (swallows, doubts, refuses, standsStill, isAnswered) = (Flag(), Flag(), Flag(), Flag(), Flag())
            start { [self] in
                pass(from: client, to: other) { bytes in
                    if standsStill.isSet { return .swallow }
                    if isAnswered.take() { trips.withLock { $0 += 1 } }
                    release { bytes.contains(subsequence: $0) }
                    return try strike(bytes, swallows, doubts, refuses, standsStill)
                }
            }
            start { [self] in
                pass(from: other, to: client) { piece in
                    if standsStill.isSet { return .swallow }
                    let sent = bytes.withLock { bytes in
                        bytes += piece.count
                        return bytes
                    }
                    onBytes.withLock { $0 }?(sent)
                    usleep(delay.withLock { $0 })
                    answers.withLock { $0 += 1 }
                    waitForRelease()
                    isAnswered.set()
                    if doubts.take() { return .instead(Self.error("40003") + Self.end, isLast: false) }
                    if refuses.take() { return .instead(Self.error("40001"), isLast: true) }
                    return swallows.isSet ? .cut : falsify(piece)
                }
            }
        }
    }

    /// Lets answers pass if the awaited text has come.
    private func release(_ isAwaited: ([UInt8]) -> Bool) {
        hold.lock()
        if !awaited.isEmpty, isAwaited(awaited) {
            awaited = []
            hold.broadcast()
        }
        hold.unlock()
    }

    private func waitForRelease() {
        hold.lock()
        while !awaited.isEmpty { hold.wait() }
        hold.unlock()
    }

    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
        /// Whether the flag was set.
        ///
        /// It is not set afterwards.
        func take() -> Bool { value.exchange(false, ordering: .acquiringAndReleasing) }
    }

    /// An error of the server with a code.
    private static func error(_ code: String) -> [UInt8] {
        let fields = Array("SERROR\0VERROR\0C\(code)\0Mnobody knows\0\0".utf8)
        return Array("E".utf8) + [0, 0, 0, UInt8(fields.count + 4)] + fields
    }

    /// The end of an answer, outside of a transaction.
    private static let end: [UInt8] = Array("Z".utf8) + [0, 0, 0, 5] + Array("I".utf8)

    private enum FaultError: Error {
        case noCommit
    }

    private enum Verdict {
        case pass
        case cut
        case swallow
        /// Other bytes pass instead.
        case instead([UInt8], isLast: Bool)
    }

    /// Decides on a piece from the server.
    private func falsify(_ bytes: ArraySlice<UInt8>) -> Verdict {
        if let (text, instead) = lie.withLock({ $0 }), let place = bytes.firstRange(of: Array(text.utf8)) {
            let told = bytes[..<place.lowerBound] + Array(instead.utf8) + bytes[place.upperBound...]
            return .instead(Array(told), isLast: false)
        }
        if let text = lastAnswer.withLock({ $0 }), bytes.contains(subsequence: Array(text.utf8)) {
            let isReady = bytes.suffix(6).starts(with: [UInt8(ascii: "Z"), 0, 0, 0, 5])
            return .instead(Array(isReady ? bytes.dropLast(6) : bytes), isLast: true)
        }
        return .pass
    }

    /// Decides on a piece from the client.
    private func strike(
        _ bytes: ArraySlice<UInt8>,
        _ swallows: Flag,
        _ doubts: Flag,
        _ refuses: Flag,
        _ standsStill: Flag
    ) throws -> Verdict {
        let fault = state.withLock { state -> Fault? in
            guard let fault = state.fault, bytes.contains(subsequence: state.text) else { return nil }
            (state.fault, state.hasStruck) = (nil, true)
            return fault
        }
        if fault != nil, closesWithFault.withLock({ $0 }) { state.withLock { $0.isOpen = false } }
        switch fault {
        case nil: return .pass
        case .cutBefore: return .cut
        case .cutAfter:
            swallows.set()
            return .pass
        case .doubtAfter:
            doubts.set()
            return .pass
        case .refusedAndCut:
            refuses.set()
            // The other command has the same length.
            let text = Array("COMMIT\0".utf8)
            guard let place = bytes.firstRange(of: text) else { throw FaultError.noCommit }
            return .instead(
                Array(bytes[..<place.lowerBound] + Array("ABORT;\0".utf8) + bytes[place.upperBound...]),
                isLast: false
            )
        case .silence: return .swallow
        case .standstill:
            standsStill.set()
            return .pass
        }
    }

    private func pass(from source: Int32, to sink: Int32, _ judge: (ArraySlice<UInt8>) throws -> Verdict) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        loop: while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            var piece = buffer[..<count]
            var isLast = false
            switch (try? judge(piece)) ?? .cut {
            case .cut: break loop
            case .swallow: continue
            case .pass: break
            case .instead(let bytes, let ends): (piece, isLast) = (bytes[...], ends)
            }
            while !piece.isEmpty {
                let done = piece.withUnsafeBytes { send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard done > 0 else { break loop }
                piece = piece.dropFirst(done)
            }
            if isLast { break }
        }
        // The other direction ends with this one. The second one that ends closes both sockets.
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(sink, Int32(SHUT_RDWR))
        let isLast = state.withLock { state in
            let isLast = !state.sockets.contains(source) || !state.sockets.contains(sink)
            state.sockets.subtract([source, sink])
            return isLast
        }
        if isLast {
            Foundation.close(source)
            Foundation.close(sink)
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate func contains(subsequence: [UInt8]) -> Bool {
        guard count >= subsequence.count else { return false }
        return (startIndex...(endIndex - subsequence.count)).contains {
            self[$0..<($0 + subsequence.count)].elementsEqual(subsequence)
        }
    }
}

extension FaultProxy {
    /// Runs `body` with a proxy, and with a store behind it in a separate schema, which is removed afterwards.
    static func withStore(
        options: [AnyHashable: Any]? = nil,
        model: NSManagedObjectModel = GuideModel.make(),
        _ body: (FaultProxy, _ schema: String, NSPersistentStoreCoordinator) throws -> Void
    ) throws {
        let proxy = try FaultProxy()
        defer { proxy.close() }
        let schema = "trips_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let url = try require(URL(string: "\(proxy.url.absoluteString)&schema=\(schema)"))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url, options: options)
        defer {
            for store in coordinator.persistentStores { try? coordinator.remove(store) }
            _ = try? Server.connection().command("DROP SCHEMA \"\(schema)\" CASCADE")
        }
        try body(proxy, schema, coordinator)
    }
}
