import CoreDataEssentials
import Foundation
import StrataRows

/// The progress of a batch insert.
///
/// ```swift
/// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
/// let result = try await context.execute(insert) { progress in
///     print(progress.preparedRows, progress.completedRows, progress.expectedRows ?? 0)
/// }
/// ```
public struct BatchInsertProgress: Sendable, Hashable {
    /// The number of rows made so far, by a handler or from dictionaries; no row is written before all are made.
    public let preparedRows: Int
    /// The number of rows written so far in the open transaction; it goes back to 0 if a server makes the store write them again.
    public let completedRows: Int
    /// The number of all rows; `nil` as long as a handler makes them.
    public let expectedRows: Int?
}

extension NSManagedObjectContext {
    /// Carries out a batch insert on the context's queue, and suspends the task meanwhile.
    ///
    /// ```swift
    /// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
    /// let result = try await context.execute(insert) { progress in print(progress.completedRows) }
    /// ```
    ///
    /// All rows are made before the first one is written. If the task is cancelled, then the insertion stops at the
    /// next row, or stops waiting for other writers, and leaves nothing in the store.
    ///
    /// The method may be called anywhere except inside the context's own scope; use ``execute(_:)`` there.
    ///
    /// - Parameters:
    ///   - request: The rows. Its handler runs on the context's queue.
    ///   - progress: Receives from time to time, on the context's queue, how many rows were made and written. It may
    ///     read, but it may not write to the store that receives the rows.
    /// - Returns: The result that the request's result type asks for.
    /// - Throws: `CancellationError` if the task was cancelled; otherwise the same errors as ``execute(_:)``.
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
        // The caller has given up the request.
        let request = UncheckedBox(request)
        let result = try await withTaskCancellationHandler {
            try await perform { UncheckedBox(try request.value.execute(in: self, control, making)) }
        } onCancel: {
            control.cancellation.cancel()
        }
        return result.value
    }
}
