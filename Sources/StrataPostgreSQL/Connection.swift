import CStrataPostgreSQL
import Foundation
import Synchronization

#if FaultPoints
import StrataLocks
#endif

/// One connection to a server.
///
/// Belongs to one thread at a time: the pool hands it out. Each wait for the server has a deadline, so nothing hangs on one that has stopped.
package final class Connection: @unchecked Sendable {
    // @unchecked Sendable: used by the thread that the pool has lent it to; other threads only touch `canceller`, which is thread-safe.

    let handle: OpaquePointer
    /// For how many seconds the server may be silent before it is given up.
    package var patience: Double
    /// For how many seconds whoever has the connection waited for it.
    package var leaseWait: Double = 0
    /// Since when nobody uses it, as the pool notes it.
    var restsSince = ContinuousClock.now
    package let canceller: QueryCanceller
    /// Whether statements are prepared at all.
    let prepares: Bool
    /// The process that the connection belongs to.
    private let owner: pid_t
    /// Tells the number of this process, which a child of a fork has another of.
    private let process: @Sendable () -> pid_t
    var prepared = PreparedStatements()
    /// Whether the connection cannot be used any more.
    package internal(set) var isBroken = false
    /// The statements that were sent and not answered yet, and about how many of their bytes may wait to be sent.
    var posted: [PostedStatement] = []
    /// How many of them, from the first on, the server has been told to answer at once.
    var requested = 0
    var unsent = 0
    /// Whether the server is asked to stop when it has not answered in time.
    ///
    /// It must not be while it commits.
    package var cancelsAtDeadline = true
    /// Asked when the server has been silent for too long: whether it is at work, so that it may go on; `nil` for never.
    var isAtWork: ((Connection) -> Bool)?
    /// Whether the server may have a late answer to one of them, which it has not been told to send at once.
    var hasSlowAnswer = false
    /// Whether libpq would hand out the rows of the next statement one by one, if that is the first of several that are sent together.
    var staysInSingleRowMode = false
    /// What each transaction begins with; `nil` if the session keeps it.
    var prelude: TransactionPrelude?
    /// What the transaction has begun with, as long as nobody has looked at the answer.
    var unreviewed: PostedStatement?
    /// Told of each statement, for whoever counts them.
    package var onStatement: ((String) -> Void)?
    /// What tells why the server lets one wait; `nil` if nobody knows.
    var explanation: WaitExplanation?
    /// What it has told in the wait that is under way, or was the last.
    private var waitReason: String?
    /// Whether the user of the connection has looked at what is behind it.
    package var isKnown = false
    /// Whether a pooler gives each transaction to another session of the server.
    package var isPooled = false
    /// The timeline of the server that is written to, which grows with each promotion; `nil` if it is unknown.
    package var timeline: Int64?
    /// How far the log of that server was when the connection was opened, in bytes; `nil` if it is unknown.
    package var logPosition: Int64?
    /// The number of the cluster that the server is of, which its replicas share; `nil` if it is unknown.
    package var systemIdentifier: Int64?
    /// Which run of the server the session is of; `nil` if the server does not tell.
    ///
    /// Another one has lost what was not in the log yet, and gives the numbers of those transactions to others.
    package var serverRun: ServerRun?
    /// The timeline of the primary that the server was found to follow; `nil` if nobody has looked.
    package var followedTimeline: Int64?
    /// Which plans its statements have: see ``ConnectionPool/outdatePlans()``.
    var planAge = 0
    private let openedAt = ContinuousClock.now
    /// By how much longer it is used than others, so that not all are replaced at once.
    let endurance = Double.random(in: 0.8...1.2)

    init(_ handle: OpaquePointer, patience: Double, prepares: Bool, process: @escaping @Sendable () -> pid_t) {
        self.handle = handle
        self.patience = patience
        self.prepares = prepares
        self.process = process
        owner = process()
        canceller = QueryCanceller(handle)
    }

    deinit {
        // The child of a fork must not tell the server that the parent's connection ends.
        if owner == process() { PQfinish(handle) }
    }

    /// Whether the connection has been in use for so long that a new one is better.
    func isWorn(after seconds: Double) -> Bool {
        isBroken || owner != process() || .now - openedAt > .seconds(seconds * endurance)
    }

    package var isIdle: Bool { PQtransactionStatus(handle) == PQTRANS_IDLE }

    /// The number of the server's process.
    package var serverProcess: Int32 { PQbackendPID(handle) }

    // MARK: - Statements

    /// Runs a statement and takes all of its rows.
    @discardableResult
    package func query(_ sql: String, _ parameters: [PostgreSQLValue] = []) throws -> QueryResult {
        if hasPosted { return try answer(try post(sql, parameters)) }
        if needsPrelude { return try queryAfterPrelude(sql, parameters) }
        // What is new to the session is prepared and run in one round trip.
        let name = preparedName(sql, parameters)
        let isNew = name == nil && preparesStatements
        do {
            return isNew ? try answer(try post(sql, parameters)) : try run(sql, parameters, name)
        } catch let error as PostgreSQLError
            where error.isStale && (!isNew || error.isNameTaken) && isIdle && !isBroken
        {
            forgetPrepared()
            return try answer(try post(sql, parameters))
        }
    }

    /// Runs a statement that takes no parameters and is not kept, such as BEGIN or one that creates a table.
    @discardableResult
    package func command(_ sql: String) throws -> QueryResult {
        try settle()
        return needsPrelude && sql.hasPrefix("BEGIN") ? try begin(sql) : try commandAlone(sql)
    }

    @discardableResult
    func commandAlone(_ sql: String) throws -> QueryResult {
        try requireUsable()
        onStatement?(sql)
        guard PQsendQuery(handle, sql) == 1 else { throw lost() }
        staysInSingleRowMode = false
        return try results().last ?? { throw noAnswer }()
    }

    /// Waits for a cancel that is under way, so that it does not hit a later statement.
    package func settleCancel() {
        guard !isBroken else { return }
        if !canceller.settle(timeout: min(patience, Self.cancelPatience)) { isBroken = true }
    }

    /// For how many seconds a server may take to stop a statement that was cancelled, before it is given up.
    private static let cancelPatience = 5.0

    private func run(_ sql: String, _ parameters: [PostgreSQLValue], _ name: String?) throws -> QueryResult {
        try requireUsable()
        try send(sql, parameters, as: name)
        staysInSingleRowMode = false
        return try results().last ?? { throw noAnswer }()
    }

    var noAnswer: PostgreSQLError { PostgreSQLError(.connection, "the server has given no answer") }

    func requireUsable() throws(PostgreSQLError) {
        guard owner == process() else {
            throw PostgreSQLError(.misuse, "a connection does not survive fork(); open the store in the new process")
        }
        if isBroken { throw PostgreSQLError(.connection, "the connection was lost") }
    }

    /// A text as it is written where the server takes no parameter.
    package func literal(_ text: String) throws(PostgreSQLError) -> String {
        guard let quoted = PQescapeLiteral(handle, text, text.utf8.count) else { throw lost() }
        defer { PQfreemem(quoted) }
        return String(cString: quoted)
    }

    // MARK: - Sending

    /// Sends a statement, prepared if it may be; what is yet to be prepared needs the pipeline mode.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - values: Its values.
    ///   - isKept: Whether it stays prepared for the next time.
    ///   - known: The name that it is prepared by, if the caller has looked that up.
    /// - Returns: The size of its values, and what it is prepared as if it never was before.
    /// - Throws: ``PostgreSQLError``.
    @discardableResult
    func send(
        _ sql: String,
        _ values: [PostgreSQLValue],
        isKept: Bool = true,
        as known: String? = nil
    ) throws -> (count: Int, preparing: PreparedStatements.Key?) {
        onStatement?(sql)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.reduce(1) { $0 + $1.writtenCount })
        var places: [(start: Int, count: Int)?] = []
        places.reserveCapacity(values.count)
        for value in values {
            if case .null = value {
                places.append(nil)
                continue
            }
            let start = bytes.count
            value.write(to: &bytes)
            places.append((start, bytes.count - start))
        }
        // An address is needed even for an empty value.
        bytes.append(0)
        let types = values.map(\.type.rawValue)
        let isPrepared = known == nil && isKept && preparesStatements
        let (name, preparing) = isPrepared ? try prepare(sql, types) : (known, nil)
        let lengths = places.map { Int32($0?.count ?? 0) }
        let formats = [Int32](repeating: 1, count: values.count)
        let isSent = bytes.withUnsafeBufferPointer { bytes -> Bool in
            let pointers = places.map { place -> UnsafePointer<CChar>? in
                guard let place, let base = bytes.baseAddress else { return nil }
                return UnsafeRawPointer(base + place.start).assumingMemoryBound(to: CChar.self)
            }
            let count = Int32(values.count)
            if let name { return PQsendQueryPrepared(handle, name, count, pointers, lengths, formats, 1) == 1 }
            return PQsendQueryParams(handle, sql, count, types, pointers, lengths, formats, 1) == 1
        }
        guard isSent else { throw lost() }
        return (bytes.count + sql.utf8.count, preparing)
    }

    // MARK: - Waiting

    func results() throws -> [QueryResult] {
        var results: [QueryResult] = []
        var failure: PostgreSQLError?
        while let result = try nextResult(after: failure) {
            switch PQresultStatus(result.result) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: results.append(result)
            default: failure = failure ?? error(of: result)
            }
        }
        if let failure { throw failure }
        return results
    }

    /// The next result.
    ///
    /// - Parameter failure: What the server has said before, if it was an error.
    /// - Returns: The result; `nil` after the last one.
    /// - Throws: ``PostgreSQLError`` of a connection that was lost, unless the server has said before what was wrong.
    func nextResult(after failure: (any Error)? = nil) throws -> QueryResult? {
        try nextAnswer(after: failure).map(QueryResult.init)
    }

    /// The next result, which its taker has to free.
    func nextAnswer(after failure: (any Error)? = nil) throws -> OpaquePointer? {
        do { return try receiveAnswer() } catch { throw failure ?? error }
    }

    private func receiveAnswer() throws -> OpaquePointer? {
        if PQisBusy(handle) != 0 {
            // What is not sent yet goes first.
            try sendAll()
            while PQisBusy(handle) != 0 {
                try wait(POLLIN)
                try consumeInput()
            }
        }
        return PQgetResult(handle)
    }

    /// Sends what waits to be sent, and takes in what the server sends meanwhile.
    func sendAll() throws {
        while true {
            let flushed = PQflush(handle)
            guard flushed >= 0 else { throw lost() }
            if flushed == 0 { return }
            try wait(POLLIN | POLLOUT)
            try consumeInput()
        }
    }

    /// Takes in what the server has sent.
    private func consumeInput() throws(PostgreSQLError) {
        // The rest of an encrypted record lies in the library for TLS, where nobody sees it who waits for the socket. One record has 16 KB at
        // most; each time there is room for 8 KB at least.
        let times = PQsslInUse(handle) == 1 ? 2 : 1
        for _ in 0..<times { guard PQconsumeInput(handle) == 1 else { throw lost() } }
    }

    private func wait(_ events: Int32) throws(PostgreSQLError) {
        while try !waitOnce(events) {
            if isAtWork?(self) == true { continue }
            isBroken = true
            // Else it goes on for nobody, and keeps its locks.
            if cancelsAtDeadline { canceller.cancel() }
            throw PostgreSQLError(.deadline, explained("the server has not answered for \(patience) s"))
        }
    }

    /// Waits for the server as long as it may be silent; false if the time is over.
    private func waitOnce(_ events: Int32) throws(PostgreSQLError) -> Bool {
        waitReason = nil
        if let explanation, explanation.after < patience {
            if try waitUnlessCancelled(events, seconds: explanation.after) { return true }
            let end = ContinuousClock.now + .seconds(patience - explanation.after)
            waitReason = explanation.ask(self)
            return try waitUnlessCancelled(events, seconds: (end - .now) / .seconds(1))
        }
        return try waitUnlessCancelled(events, seconds: patience)
    }

    /// Waits for the server; false if the time is over.
    ///
    /// - Throws: ``PostgreSQLError`` with `.cancelled` if the server does not stop after a cancel: it may stand still.
    private func waitUnlessCancelled(_ events: Int32, seconds: Double) throws(PostgreSQLError) -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            let rest = (end - .now) / .seconds(1)
            if try Self.wait(for: PQsocket(handle), events, seconds: max(0, min(rest, 1))) { return true }
            if rest <= 1 { return false }
            guard let cancelled = canceller.requestTime, .now - cancelled > .seconds(Self.cancelPatience) else {
                continue
            }
            isBroken = true
            throw PostgreSQLError(.cancelled, "the request was cancelled, and the server has not stopped it")
        }
    }

    /// A text, with the reason of the last wait if that was told.
    private func explained(_ text: String) -> String { waitReason.map { "\(text); \($0)" } ?? text }

    /// Waits for a socket; false if the time is over.
    static func wait(for socket: Int32, _ events: Int32, seconds: Double) throws(PostgreSQLError) -> Bool {
        guard socket >= 0 else { throw PostgreSQLError(.connection, "the connection was lost") }
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            let rest = (end - .now) / .milliseconds(1)
            var place = pollfd(fd: socket, events: Int16(truncatingIfNeeded: events), revents: 0)
            let count = poll(&place, 1, Int32(max(0, min(rest.rounded(.up), 1e9))))
            if count > 0 { return true }
            if count == 0, rest <= 0 { return false }
            if count < 0, errno != EINTR {
                throw PostgreSQLError(.connection, "waiting for the server has failed, errno \(errno)")
            }
        }
    }

    /// Whether the server has said nothing while nobody used the connection.
    ///
    /// A server that ends a session says so first, and closes the connection some time later. What else it may say unasked is rare, as who listens
    /// has a connection of its own.
    func isStillThere() -> Bool {
        guard !isBroken else { return false }
        isBroken = (try? Self.wait(for: PQsocket(handle), POLLIN, seconds: 0)) != false
        return !isBroken
    }

    /// Waits for a notification of another session, for another file to become readable, or for a time.
    ///
    /// - Parameters:
    ///   - other: The other file; -1 for none.
    ///   - seconds: The time.
    /// - Returns: How many notifications have come.
    /// - Throws: ``PostgreSQLError`` of a connection that was lost.
    @discardableResult
    package func waitForNotification(orFor other: Int32, seconds: Double) throws -> Int {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            try requireUsable()
            let count = takeNotifications()
            let rest = (end - .now) / .milliseconds(1)
            if count > 0 || rest <= 0 { return count }
            var places = [
                pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0),
                pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            poll(&places, 2, Int32(min(rest.rounded(.up), 1e9)))
            if places[0].revents != 0 { try consumeInput() }
            if places[1].revents != 0 { return takeNotifications() }
        }
    }

    /// Takes what was told to the session.
    ///
    /// - Returns: How many others have told.
    private func takeNotifications() -> Int {
        var count = 0
        while let notification = PQnotifies(handle) {
            if notification.pointee.be_pid != serverProcess { count += 1 }
            PQfreemem(notification)
        }
        return count
    }

    // MARK: - Errors

    func lost() -> PostgreSQLError {
        isBroken = true
        let line = Self.text(PQerrorMessage(handle), else: "")
        return PostgreSQLError(.connection, PostgreSQLError.toldOfLoss(line) ?? "the connection was lost")
    }

    #if FaultPoints
    /// Loses the connection if the handler of `point` throws.
    ///
    /// - Throws: ``PostgreSQLError`` of a connection that was lost.
    package func cut(at point: FaultPoint) throws(PostgreSQLError) {
        do { try point.reach() } catch {
            isBroken = true
            // The server hears of it, and ends what is open.
            shutdown(PQsocket(handle), Int32(SHUT_RDWR))
            throw PostgreSQLError(.connection, "the connection was cut at \(point.rawValue)")
        }
    }
    #endif

    static func text(_ text: UnsafePointer<CChar>?, else other: String) -> String {
        let line = text.map { String(cString: $0) }?.split(separator: "\n").first.map(String.init) ?? ""
        return line.isEmpty ? other : line
    }

    func error(of result: QueryResult) -> PostgreSQLError {
        func field(_ text: UnsafePointer<CChar>?) -> String? { text.map { String(cString: $0) } }
        guard let state = field(strata_pq_state(result.result)) else { return lost() }
        if PQstatus(handle) != CONNECTION_OK { isBroken = true }
        // What ends the session is told by its severity: what a COMMIT has come to is then not known, as when the log could not be flushed.
        let isFatal = ["FATAL", "PANIC"].contains(field(strata_pq_severity(result.result)))
        let isGone = isFatal || state.hasPrefix("08") || ["57P01", "57P02", "57P03", "25P03"].contains(state)
        if isGone { isBroken = true }
        let told = PostgreSQLError.told(field(strata_pq_message(result.result)) ?? "", state)
        return PostgreSQLError(
            isGone ? .connection : .server,
            sqlState: state,
            // 55P03: the wait for a lock was too long.
            state == "55P03" ? explained(told) : told,
            constraint: field(strata_pq_constraint(result.result)),
            table: field(strata_pq_table(result.result))
        )
    }
}

/// What tells why the server lets a connection wait.
struct WaitExplanation {
    /// After how many seconds of a wait to ask.
    let after: Double
    /// Asks, on the thread that waits; takes no longer than a time of its own.
    let ask: (Connection) -> String?
}

/// Stops the statement of a connection, from any thread.
package final class QueryCanceller: Sendable {
    // The handle is freed once nobody can use it.
    private nonisolated(unsafe) let cancel_: OpaquePointer?
    private let underway = DispatchGroup()
    private let requested = Mutex<ContinuousClock.Instant?>(nil)

    init(_ handle: OpaquePointer) { cancel_ = PQgetCancel(handle) }

    deinit { PQfreeCancel(cancel_) }

    /// Asks the server to stop what the connection does; returns at once.
    package func cancel() {
        requested.withLock { $0 = .now }
        underway.enter()
        // libpq waits for the server, which may have stopped: as long as it likes, so no thread that others need waits with it.
        Thread.detachNewThread { [self] in
            defer { underway.leave() }
            #if FaultPoints
            // A server that is far away.
            if FaultGuard.cancelSettling.isOff { usleep(3_000) }
            #endif
            var text = [CChar](repeating: 0, count: 256)
            PQcancel(cancel_, &text, 256)
        }
    }

    /// When the statement that is under way was cancelled; `nil` if it was not.
    var requestTime: ContinuousClock.Instant? { requested.withLock { $0 } }

    /// Waits for cancels that are under way; false if one does not end.
    func settle(timeout: Double) -> Bool {
        #if FaultPoints
        let waits = !FaultGuard.cancelSettling.isOff
        #else
        let waits = true
        #endif
        guard !waits || underway.wait(timeout: .now() + timeout) == .success else { return false }
        requested.withLock { $0 = nil }
        return true
    }
}
