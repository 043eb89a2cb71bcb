import CoreDataBatches
import CoreDataEssentials
import Foundation
import StrataRows

extension NSIncrementalStore {
    package var takesBatches: Bool { true }

    /// Passes a batch request to the subclass, and reads the changes from its answer.
    ///
    /// If the answer has no IDs, then the changed rows are unknown, and the cached rows of the whole hierarchy are
    /// forgotten.
    package func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        // Batches are always made from requests.
        guard let request = batch.request as? NSPersistentStoreRequest else { return }
        // A reader waits for the turn, and so until the cached rows are forgotten.
        try ask { context in
            let changes = try changes(of: batch, in: try execute(request, with: context), to: request)
            didCommit(changes)
        }
    }

    /// The changes that the subclass has reported.
    private func changes(of batch: Batch, in answer: Any, to request: NSPersistentStoreRequest) throws -> BatchChanges {
        var changes = BatchChanges()
        switch Self.content(of: answer) {
        case let ids as [NSManagedObjectID]:
            for id in ids {
                let reference = try reference(givenAs: id, of: batch.layout, "a \(Swift.type(of: request))")
                let layout = batch.layout.schema.entities[reference.entity - 1]
                changes[keyPath: batch.listing].add(reference.key, layout)
            }
            changes.count = ids.count
        case let array as [Any] where array.isEmpty && !request.wantsIDs: break
        case let bool as Bool where !request.wantsIDs && !bool:
            throw refused("says that a \(Swift.type(of: request)) has failed; a store throws the reason.")
        case let number as NSNumber where !request.wantsIDs: changes.count = number.intValue
        case let other:
            throw refused(
                "answered a \(Swift.type(of: request)) with \(other.map { "\(Swift.type(of: $0))" } ?? "nil"), where a result of the request's result type belongs.",
                code: .persistentStoreUnsupportedRequestType
            )
        }
        if !request.wantsIDs { changes.unlistedRoots.insert(batch.layout.rootNumber) }
        return changes
    }

    /// The answer itself, if it is in a result object.
    private static func content(of answer: Any) -> Any? {
        switch answer {
        case let result as NSBatchInsertResult: result.result
        case let result as NSBatchUpdateResult: result.result
        case let result as NSBatchDeleteResult: result.result
        default: answer
        }
    }
}

extension Batch {
    /// The list for the rows of the request.
    fileprivate var listing: WritableKeyPath<BatchChanges, [BatchRows]> {
        switch work {
        case .insert: \.inserted
        case .update: \.changed
        case .delete: \.deleted
        }
    }
}

extension NSPersistentStoreRequest {
    /// Whether the result of a batch request shall have IDs.
    fileprivate var wantsIDs: Bool {
        switch self {
        case let request as NSBatchInsertRequest: request.resultType == .objectIDs
        case let request as NSBatchUpdateRequest: request.resultType == .updatedObjectIDsResultType
        case let request as NSBatchDeleteRequest: request.resultType == .resultTypeObjectIDs
        default: false
        }
    }
}
