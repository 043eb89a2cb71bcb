import CStrataPostgreSQL
import Foundation
import StrataLocks

/// One connection to a server.
///
/// It belongs to one thread at a time: the pool hands it out. Each wait for the server has a deadline, so no thread
/// waits forever for a server that has stopped.
package final class Connection: @unchecked Sendable {
    // @unchecked Sendable: only the thread that has the connection from the pool uses it. Other threads use only
    // `canceller`, which is thread-safe.

    let handle: OpaquePointer
    /// How many seconds the server may be silent before the connection is given up.
    package var patience: Double
    /// How many seconds the current user of the connection waited for it.
    package var leaseWait: Double = 0
    /// The right of the current user to use a connection of the budget; `nil` if there is no budget, or no user.
    var use: ConnectionBudget.Use?
    /// What the connection has in common with those of other schemas.
    let settings: ConnectionTarget.Settings
    /// The schema that the session serves; empty while another pool takes the session over.
    package internal(set) var schema: String
    /// The number of the pool that the session serves; 0 for none.
    var servedPool = 0
    /// The time since when the connection is not in use, as the pool notes it.
    var restsSince = ContinuousClock.now
    package let canceller: QueryCanceller
    /// Whether statements are prepared at all.
    let prepares: Bool
    /// The process that the connection belongs to.
    private let owner: pid_t
    /// Returns the number of this process, which differs in the child of a fork.
    private let process: @Sendable () -> pid_t
    var prepared = PreparedStatements()
    /// Whether the connection cannot be used any more.
    package internal(set) var isBroken = false
    /// The statements that were sent and not answered yet.
    var posted: [PostedStatement] = []
    /// The number of them, from the first on, whose answers were requested.
    var requested = 0
    var unsent = 0
    /// Whether the server is asked to stop when it has not answered in time.
    ///
    /// It must not be asked while it commits.
    package var cancelsAtDeadline = true
    /// Called when the server has been silent for too long.
    ///
    /// If it returns true, then the server is at work and the wait goes on; `nil` for never.
    var isAtWork: ((Connection) -> Bool)?
    /// Whether one of them may be answered late, and its answer was not requested.
    var hasSlowAnswer = false
    /// Whether libpq would hand out the rows of the next statement one by one, if that is the first of several that are
    /// sent together.
    var staysInSingleRowMode = false
    /// The statements that begin each transaction; `nil` if the session keeps their settings.
    var prelude: TransactionPrelude?
    /// The prelude of the transaction, until its answer is reviewed.
    var unreviewed: PostedStatement?
    /// Whether the transaction that the prelude has begun only reads.
    package internal(set) var onlyReads = true
    /// Called with each statement, so that statements can be counted.
    package var onStatement: ((String) -> Void)?
    /// Finds out why the server lets a statement wait; `nil` if that cannot be found out.
    var explanation: WaitExplanation?
    /// The reason that was found during the current wait, or during the last one.
    private var waitReason: String?
    /// Whether the user of the connection has examined the server and the store behind it.
    package var isKnown = false
    /// Whether a pooler gives each transaction to another session of the server.
    package var isPooled = false
    /// Whether the server has no locks of sessions and tables, and no numbers of transactions, on which a store can rely.
    package var isPortable = false
    /// The timeline of the primary that the connection leads to, which grows with each promotion; `nil` if it is
    /// unknown.
    package var timeline: Int64?
    /// The end of the log of that server when the connection was opened, in bytes; `nil` if it is unknown.
    package var logPosition: Int64?
    /// The number of the server's cluster, which its replicas share; `nil` if it is unknown.
    package var systemIdentifier: Int64?
    /// The run of the server that the session belongs to; `nil` if the server does not report it.
    ///
    /// A later run has lost what was not in the log yet, and gives the numbers of the lost transactions to others.
    package var serverRun: ServerRun?
    /// The timeline of the primary that the server was found to follow; `nil` if that was not examined.
    package var followedTimeline: Int64?
    /// The age of the plans of its statements: see ``ConnectionPool/outdatePlans()``.
    var planAge = 0
    /// The ages of the plans that the session has made for other pools.
    var otherPlanAges: [Int: Int] = [:]
    let openedAt = ContinuousClock.now
    /// The factor by which its life is longer or shorter than that of others, so that not all are replaced at once.
    let endurance = Double.random(in: 0.8...1.2)

    init(
        _ handle: OpaquePointer,
        to target: ConnectionTarget,
        patience: Double,
        process: @escaping @Sendable () -> pid_t
    ) {
        self.handle = handle
        self.patience = patience
        prepares = target.preparesStatements
        settings = target.settings
        schema = target.schema
        self.process = process
        owner = process()
        canceller = QueryCanceller(handle)
    }

    deinit {
        // The child of a fork must not end the session of its parent.
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
        // A new statement is prepared and run in one round trip.
        let name = preparedName(sql, parameters)
        let isNew = name == nil && preparesStatements
        do {
            return isNew ? try answer(try post(sql, parameters)) : try run(sql, binding: parameters, name: name)
        } catch let error as PostgreSQLError where error.isStale && (!isNew || error.isNameTaken) && !isBroken {
            forgetPrepared()
            // A transaction has failed with its statement, so only its owner can repeat it.
            guard isIdle else { throw error }
            return try answer(try post(sql, parameters))
        }
    }

    /// Runs a statement without parameters that is not kept, such as BEGIN or one that creates a table.
    @discardableResult
    package func command(_ sql: String) throws -> QueryResult {
        try readPostedAnswers()
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
    package func awaitCancel() {
        guard !isBroken else { return }
        if !canceller.awaitCancels(timeout: min(patience, Self.cancelPatience)) { isBroken = true }
    }

    /// How many seconds a server may take to stop a cancelled statement before the connection is given up.
    private static let cancelPatience = 5.0

    private func run(_ sql: String, binding parameters: [PostgreSQLValue], name: String?) throws -> QueryResult {
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

    /// A text, quoted for statements in which the server takes no parameters.
    package func literal(_ text: String) throws(PostgreSQLError) -> String {
        guard let quoted = PQescapeLiteral(handle, text, text.utf8.count) else { throw lost() }
        defer { PQfreemem(quoted) }
        return String(cString: quoted)
    }

    // MARK: - Sending

    /// Sends a statement, prepared if possible; preparing it needs the pipeline mode.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - values: Its values.
    ///   - isKept: Whether it stays prepared for the next time.
    ///   - known: The name of the prepared statement, if the caller has looked that up.
    /// - Returns: The number of bytes, and the key of the statement if it is being prepared.
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
    /// - Parameter failure: The error that the server has sent before, if any.
    /// - Returns: The result; `nil` after the last one.
    /// - Throws: ``PostgreSQLError`` if the connection was lost, or `failure` if there is one.
    func nextResult(after failure: (any Error)? = nil) throws -> QueryResult? {
        try nextAnswer(after: failure).map(QueryResult.init)
    }

    /// The next result, which the caller has to free.
    func nextAnswer(after failure: (any Error)? = nil) throws -> OpaquePointer? {
        do { return try receiveAnswer() } catch { throw failure ?? error }
    }

    private func receiveAnswer() throws -> OpaquePointer? {
        if PQisBusy(handle) != 0 {
            // Unsent bytes go first.
            try sendAll()
            while PQisBusy(handle) != 0 {
                try wait(POLLIN)
                try consumeInput()
            }
        }
        return PQgetResult(handle)
    }

    /// Sends the bytes that wait to be sent, and receives what the server sends meanwhile.
    func sendAll() throws {
        while true {
            let flushed = PQflush(handle)
            guard flushed >= 0 else { throw lost() }
            if flushed == 0 { return }
            try wait(POLLIN | POLLOUT)
            try consumeInput()
        }
    }

    /// Waits until the server has sent something, and receives it.
    func receiveMore() throws(PostgreSQLError) {
        try wait(POLLIN)
        try consumeInput()
    }

    /// Receives what the server has sent.
    private func consumeInput() throws(PostgreSQLError) {
        // The rest of an encrypted record stays in the TLS library, where a wait for the socket does not see it. A
        // record has at most 16 KB, and each call has room for at least 8 KB.
        let times = PQsslInUse(handle) == 1 ? 2 : 1
        for _ in 0..<times { guard PQconsumeInput(handle) == 1 else { throw lost() } }
    }

    private func wait(_ events: Int32) throws(PostgreSQLError) {
        while try !waitOnce(events) {
            if isAtWork?(self) == true { continue }
            isBroken = true
            // Otherwise the statement would go on without a reader, and keep its locks.
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
    /// - Throws: ``PostgreSQLError`` with `.cancelled` if the server does not stop after a cancel, as when it hangs.
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

    /// A text, with the reason of the last wait if that is known.
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

    /// Whether the server has sent nothing while the connection was not in use.
    ///
    /// A server that ends a session reports that first, and closes the connection some time later. Other messages
    /// without a request are rare, because a listener has a separate connection.
    func isStillThere() -> Bool {
        guard !isBroken else { return false }
        isBroken = (try? Self.wait(for: PQsocket(handle), POLLIN, seconds: 0)) != false
        return !isBroken
    }

    /// Waits for a notification of another session, until another file becomes readable, or until the time is over.
    ///
    /// - Parameters:
    ///   - other: The other file; -1 for none.
    ///   - seconds: The time.
    /// - Returns: The number of notifications that have arrived.
    /// - Throws: ``PostgreSQLError`` if the connection was lost.
    @discardableResult
    package func waitForNotification(orFor other: Int32, seconds: Double) throws -> Int {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            try requireUsable()
            let count = removeNotifications()
            let rest = (end - .now) / .milliseconds(1)
            if count > 0 || rest <= 0 { return count }
            var places = [
                pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0),
                pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            poll(&places, 2, Int32(min(rest.rounded(.up), 1e9)))
            if places[0].revents != 0 { try consumeInput() }
            if places[1].revents != 0 { return removeNotifications() }
        }
    }

    /// Removes the notifications that the session has received.
    ///
    /// - Returns: The number of those that other sessions sent.
    private func removeNotifications() -> Int {
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
        return PostgreSQLError(.connection, PostgreSQLError.reportedLoss(line) ?? "the connection was lost")
    }

    /// Loses the connection if the handler of `point` throws.
    ///
    /// - Throws: ``PostgreSQLError`` if the connection was lost.
    package func cut(at point: FaultPoint) throws(PostgreSQLError) {
        do { try point.reach() } catch {
            isBroken = true
            // The server notices that, and ends the open transaction.
            shutdown(PQsocket(handle), Int32(SHUT_RDWR))
            throw PostgreSQLError(.connection, "the connection was cut at \(point.rawValue)")
        }
    }

    static func text(_ text: UnsafePointer<CChar>?, else other: String) -> String {
        let line = text.map { String(cString: $0) }?.split(separator: "\n").first.map(String.init) ?? ""
        return line.isEmpty ? other : line
    }

    func error(of result: QueryResult) -> PostgreSQLError {
        func field(_ text: UnsafePointer<CChar>?) -> String? { text.map { String(cString: $0) } }
        guard let state = field(strata_pq_state(result.result)) else { return lost() }
        if PQstatus(handle) != CONNECTION_OK { isBroken = true }
        // The severity shows that the session ends. The result of a COMMIT is then unknown, for instance when the log
        // could not be flushed.
        let isFatal = ["FATAL", "PANIC"].contains(field(strata_pq_severity(result.result)))
        let isGone = isFatal || state.hasPrefix("08") || ["57P01", "57P02", "57P03", "25P03"].contains(state)
        if isGone { isBroken = true }
        let message = PostgreSQLError.harmless(field(strata_pq_message(result.result)) ?? "", sqlState: state)
        return PostgreSQLError(
            isGone ? .connection : .server,
            sqlState: state,
            // 55P03: the wait for a lock was too long.
            state == "55P03" ? explained(message) : message,
            constraint: field(strata_pq_constraint(result.result)),
            table: field(strata_pq_table(result.result))
        )
    }
}

/// Finds out why the server lets a connection wait.
struct WaitExplanation {
    /// How many seconds of a wait pass before it asks.
    let after: Double
    /// Asks, on the thread that waits; has a separate time limit.
    let ask: (Connection) -> String?
}

/// Stops the statement of a connection, from any thread.
package final class QueryCanceller: Sendable {
    // The handle is freed once no thread can use it.
    private nonisolated(unsafe) let cancel_: OpaquePointer?
    private let underway = DispatchGroup()
    private let requested = Locked<ContinuousClock.Instant?>(nil)

    init(_ handle: OpaquePointer) { cancel_ = PQgetCancel(handle) }

    deinit { PQfreeCancel(cancel_) }

    /// Asks the server to stop what the connection does; returns at once.
    package func cancel() {
        requested.withLock { $0 = .now }
        underway.enter()
        // libpq waits for the server without a deadline, and the server may have stopped. So a separate thread waits.
        Thread.detachNewThread { [self] in
            defer { underway.leave() }
            // This simulates a distant server.
            if FaultGuard.cancelSettling.isOff { usleep(3_000) }
            var text = [CChar](repeating: 0, count: 256)
            PQcancel(cancel_, &text, 256)
        }
    }

    /// The time when the current statement was cancelled; `nil` if it was not.
    var requestTime: ContinuousClock.Instant? { requested.withLock { $0 } }

    /// Waits for cancels that are under way; false if one does not end.
    func awaitCancels(timeout: Double) -> Bool {
        if !FaultGuard.cancelSettling.isOff, underway.wait(timeout: .now() + timeout) != .success { return false }
        requested.withLock { $0 = nil }
        return true
    }
}
