/// Named places in the library where tests can make an error be thrown, end the process, or wait.
///
/// Only builds with the package trait `FaultPoints` contain them. It is off by default; `swift build --traits
/// FaultPoints` switches it on. In such a build, a thread that reaches a point goes on at once if there is no
/// handler. In other builds a point is an empty value, and all that the library does with it is inlined to nothing.
///
/// ```swift
/// try FaultPoint.saveWritten.reach()
/// ```
public struct FaultPoint: Equatable, Sendable {
    /// The objects of a save are validated; no store was asked yet.
    @inlinable public static var saveValidated: Self { failing("save.validated") }
    /// A save has the store's writer, and has written nothing.
    @inlinable public static var saveBegan: Self { failing("save.began") }
    /// A save has written everything, and not committed.
    @inlinable public static var saveWritten: Self { failing("save.written") }
    /// A save is committed, and the row cache does not know of it.
    @inlinable public static var saveCommitted: Self { passed("save.committed") }
    /// The row cache knows of a save, and the context does not.
    @inlinable public static var savePublished: Self { passed("save.published") }
    /// The context treats its objects as saved, and has posted nothing yet.
    @inlinable public static var saveAnnouncing: Self { passed("save.announcing") }
    /// A batch has the store's writer, and has written nothing.
    @inlinable public static var batchBegan: Self { failing("batch.began") }
    /// A batch insert is about to write another row.
    @inlinable public static var batchRow: Self { failing("batch.row") }
    /// A batch has written everything, and not committed.
    @inlinable public static var batchWritten: Self { failing("batch.written") }
    /// A batch is committed, and the row cache does not know of it.
    @inlinable public static var batchCommitted: Self { passed("batch.committed") }
    /// The row cache knows of a batch, and contexts do not.
    @inlinable public static var batchAnnouncing: Self { passed("batch.announcing") }
    /// The row of a fault is read, and the row cache does not have it.
    @inlinable public static var faultRead: Self { passed("fault.read") }
    /// The log is about to be copied into the file, by a commit or beside others.
    @inlinable public static var checkpointBegan: Self { passed("checkpoint.began") }
    /// The log is copied into the file.
    @inlinable public static var checkpointEnded: Self { passed("checkpoint.ended") }
    /// COMMIT is about to be sent to PostgreSQL: an error cuts the connection.
    @inlinable public static var commitSending: Self { passed("commit.sending") }
    /// PostgreSQL has committed: an error cuts the connection, as if its answer had not come.
    @inlinable public static var commitAnswered: Self { passed("commit.answered") }
    /// PostgreSQL is about to be asked for the outcome of a commit whose answer was lost: an error leaves it in
    /// doubt.
    @inlinable public static var commitAsking: Self { passed("commit.asking") }
    /// Transactions of PostgreSQL's history have numbers, which no other session sees yet.
    @inlinable public static var historyNumbered: Self { passed("history.numbered") }

    /// A migration has the store's writer, and has written nothing.
    @inlinable public static var migrationBegan: Self { failing("migration.began") }
    /// A migration has moved the rows, and neither indexes nor metadata.
    @inlinable public static var migrationMoved: Self { failing("migration.moved") }
    /// A migration has written everything, and not committed.
    @inlinable public static var migrationWritten: Self { failing("migration.written") }
    /// A migration is committed, and the store is not open yet.
    @inlinable public static var migrationCommitted: Self { passed("migration.committed") }

    #if FaultPoints
    /// The name on the command line of `stress`.
    @usableFromInline package let rawValue: String
    /// Whether an error that is thrown there fails the operation; elsewhere it is ignored.
    package let canFail: Bool

    private static let handler = Locked<Handler?>(nil)

    @usableFromInline
    init(rawValue: String, canFail: Bool) {
        self.rawValue = rawValue
        self.canFail = canFail
    }

    /// All points.
    package static var allCases: [FaultPoint] {
        [
            .saveValidated, .saveBegan, .saveWritten, .saveCommitted, .savePublished, .saveAnnouncing, .batchBegan,
            .batchRow, .batchWritten, .batchCommitted, .batchAnnouncing, .faultRead, .checkpointBegan,
            .checkpointEnded, .commitSending, .commitAnswered, .commitAsking, .historyNumbered, .migrationBegan,
            .migrationMoved, .migrationWritten, .migrationCommitted,
        ]
    }

    /// Calls the handler, if there is one.
    @usableFromInline
    func callHandler() throws {
        // Outside the lock: the handler may wait for another thread that reaches a point too.
        guard let handler = Self.handler.withLock({ $0 }) else { return }
        precondition(Self.allCases.contains(self), "\(rawValue) is missing in the list of fault points.")
        try handler(self)
    }
    #else
    @usableFromInline package var rawValue: String { "" }
    package var canFail: Bool { false }

    @inlinable
    init() {}

    package static var allCases: [FaultPoint] { [] }
    #endif

    /// Whether the build has the points.
    @inlinable public static var areBuiltIn: Bool {
        #if FaultPoints
        true
        #else
        false
        #endif
    }

    /// A point where the operation can fail.
    @inlinable
    @inline(__always)
    static func failing(_ name: @autoclosure () -> String) -> FaultPoint {
        #if FaultPoints
        FaultPoint(rawValue: name(), canFail: true)
        #else
        FaultPoint()
        #endif
    }

    /// A point where nothing can fail any more.
    @inlinable
    @inline(__always)
    static func passed(_ name: @autoclosure () -> String) -> FaultPoint {
        #if FaultPoints
        FaultPoint(rawValue: name(), canFail: false)
        #else
        FaultPoint()
        #endif
    }

    /// The function that each point calls, on the thread that reaches it.
    ///
    /// It may end the process or wait, and it may throw if the point can fail.
    package typealias Handler = @Sendable (FaultPoint) throws -> Void

    /// Sets the function that each point calls from now on; `nil` for none.
    ///
    /// Without the points it is never called.
    package static func handle(_ handler: Handler?) {
        #if FaultPoints
        Self.handler.withLock { $0 = handler }
        #endif
    }

    /// Calls the handler where the operation can fail.
    ///
    /// - Throws: Errors of the handler.
    @inlinable
    @inline(__always)
    public func reach() throws {
        Schedule.point(named: rawValue)
        #if FaultPoints
        try callHandler()
        #endif
    }

    /// Calls the handler where nothing can fail any more.
    @inlinable
    @inline(__always)
    public func pass() {
        Schedule.point(named: rawValue)
        #if FaultPoints
        try? callHandler()
        #endif
    }
}
