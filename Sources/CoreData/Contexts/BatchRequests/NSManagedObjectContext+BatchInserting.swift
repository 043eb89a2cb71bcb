import Foundation
import StrataRows

/// How far a batch insert is.
///
/// ```swift
/// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
/// let result = try await context.execute(insert) { progress in
///     print(progress.preparedRows, progress.completedRows, progress.expectedRows ?? 0)
/// }
/// ```
public struct BatchInsertProgress: Sendable, Hashable {
    /// The rows that were made so far, by a handler or of dictionaries; none is written before all are.
    public let preparedRows: Int
    /// The rows that were written so far, in the transaction that is open.
    public let completedRows: Int
    /// How many rows there are in all; `nil` as long as a handler makes them.
    public let expectedRows: Int?
}

extension NSManagedObjectContext {
    /// Carries out a batch insert on the context's queue and suspends meanwhile.
    ///
    /// ```swift
    /// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
    /// let result = try await context.execute(insert) { progress in print(progress.completedRows) }
    /// ```
    ///
    /// All rows are made before the first one is written. Cancelling the task stops the insertion at the next row, or
    /// interrupts its wait for other writers, and leaves nothing in the store.
    ///
    /// May be called anywhere but inside the context's own scope, where ``execute(_:)`` does.
    ///
    /// - Parameters:
    ///   - request: The rows. Its handler runs on the context's queue.
    ///   - progress: Told now and then, on the context's queue, how many rows were made and written. It may read,
    ///     but not write to the store that rows are being written to.
    /// - Returns: As the request's result type says.
    /// - Throws: `CancellationError` when the task was cancelled; else as ``execute(_:)``.
    nonisolated(nonsending) public func execute(
        _ request: sending NSBatchInsertRequest,
        progress: (@Sendable (BatchInsertProgress) -> Void)?
    ) async throws -> sending NSBatchInsertResult {
        let making = progress.map { progress in
            FetchControl { progress(BatchInsertProgress(preparedRows: $0, completedRows: 0, expectedRows: $1)) }
        }
        let report = progress.map { progress -> FetchControl.Report in
            { progress(BatchInsertProgress(preparedRows: $1 ?? $0, completedRows: $0, expectedRows: $1)) }
        }
        let control = FetchControl(report: report)
        // The caller has given the request away.
        let request = UncheckedBox(request)
        let result = try await withTaskCancellationHandler {
            try await perform { UncheckedBox(try request.value.execute(in: self, control, making)) }
        } onCancel: {
            control.cancel()
        }
        return result.value
    }
}
