import Foundation
import StrataPostgreSQL
import StrataRows

/// A batch, whose attempts are a ``BatchTransaction`` each.
struct RepeatableBatch: RepeatableWork {
    private let batch: Batch
    /// The new rows of an insertion.
    private let given: [GivenRow]
    private let earlier: EarlierAttempts
    /// Where the progress of an insertion was when the first attempt began; `nil` before that.
    private var start: FetchControl.Position?

    /// Makes the rows of an insertion.
    ///
    /// They are made by code of the user, which must not keep others from writing.
    ///
    /// - Throws: The error of an invalid row, and `CancellationError`.
    init(_ batch: Batch) throws {
        self.batch = batch
        given = try batch.rowsMade()
        earlier = EarlierAttempts(of: batch)
    }

    var plans: PlanSettings {
        if case .update(let update) = batch.work, update.lease?.isNew == true { return .inOrder }
        return .standard
    }
    var isLarge: Bool { true }
    var writesMetadata: Bool { false }

    func prepare(_ database: OpenPostgreSQLStore, on connection: Connection) {}

    mutating func run(
        _ attempt: TransactionAttempt,
        in database: OpenPostgreSQLStore,
        on connection: Connection,
        identifier: UUID
    ) throws -> TransactionEnd<Void, BatchChanges> {
        reportBeginning()
        // Each attempt begins with the rows as they were given.
        let work = BatchTransaction(batch, in: database, on: connection, after: earlier)
        let isRecorded = try work.run(batch.changesGivenRows ? given.copied : given, identifier: identifier)
        return .written((), work.changes, isRecorded: isRecorded, witness: nil)
    }

    /// Reports how many rows an insertion will write; a later attempt writes the same rows again, and goes back to none.
    private mutating func reportBeginning() {
        guard case .insert(let insertion) = batch.work, let control = insertion.control else { return }
        if let start { return control.goBack(to: start) }
        control.expect(given.count)
        start = control.position
    }
}

extension Batch {
    /// All rows of an insertion.
    ///
    /// - Throws: The error of an invalid row, and `CancellationError`.
    fileprivate func rowsMade() throws -> [GivenRow] {
        guard case .insert(let insertion) = work else { return [] }
        var rows: [GivenRow] = []
        // Code that has kept the object of a row may still change it.
        try insertion.makeRows { rows.append(GivenRow(row: $0.row.copy(), given: $0.given)) }
        return rows
    }

    /// Whether rows of an insertion may get values of later rows, instead of those that they were given.
    fileprivate var changesGivenRows: Bool {
        guard case .insert(let insertion) = work else { return false }
        return switch insertion.upsert {
        case .update, .replace: true
        case .fail, .skip: false
        }
    }
}

extension [GivenRow] {
    fileprivate var copied: [GivenRow] { map { GivenRow(row: $0.row.copy(), given: $0.given) } }
}
