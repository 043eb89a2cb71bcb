import Foundation

/// What is at fault when a call fails: who, or what, has to change before the same call can succeed.
///
/// See <doc:Saving>.
///
/// ```swift
/// do { try context.save() } catch {
///     switch CoreDataFailure(error) {
///     case .request, .data: print(400)
///     case .conflict: print(409)
///     case .deadline, .environment: print(503)
///     case nil: throw error
///     }
/// }
/// ```
///
/// The codes alone do not tell: 134070 is that of a key that does not exist, of a predicate that takes too long, and of a
/// store that was closed. An addition to Apple's API.
public enum CoreDataFailure: String, Sendable, CaseIterable {
    /// The program asks for something that makes no sense, or cannot be done, whatever is stored: a key that the model lacks, a
    /// value of the wrong type, a request that a store does not take, a history token that is too old.
    case request
    /// What is to be saved breaks a rule of the model, or what is asked for is not there: validation, a uniqueness constraint
    /// broken within one's own changes, an object that was deleted.
    case data
    /// Somebody else has changed the same rows meanwhile. Read them anew and try again.
    case conflict
    /// It takes longer than the store, or the request, allows. Try again later, ask for less at a time, or raise the limit.
    case deadline
    /// The store cannot do its work just now, or not in this state: it is closed, read-only or damaged, it was made with
    /// another model, the disk is full.
    case environment

    /// Finds out what is at fault.
    ///
    /// `nil` for errors that are not the framework's, such as those of the program's own blocks, hooks and stores, and for a
    /// call that was cancelled. May be called on any thread.
    ///
    /// - Parameter error: Any error that a call of the framework has thrown.
    public init?(_ error: any Error) {
        let error = error as NSError
        guard error.domain == NSCocoaErrorDomain, error.code != CocoaError.Code.userCancelled.rawValue else {
            return nil
        }
        if let mark = error.userInfo[failureMarkKey] as? String, let marked = CoreDataFailure(rawValue: mark) {
            self = marked
            return
        }
        if error.code == NSPersistentStoreIncompleteSaveError,
            let cause = error.userInfo[NSUnderlyingErrorKey] as? any Error, let failure = CoreDataFailure(cause)
        {
            self = failure
            return
        }
        // A rule of the model may have any code.
        if error.userInfo[NSValidationObjectErrorKey] != nil {
            self = .data
            return
        }
        guard let failure = Self.byCode(error) else { return nil }
        self = failure
    }

    private static func byCode(_ error: NSError) -> CoreDataFailure? {
        switch error.code {
        case NSManagedObjectValidationError...NSValidationInvalidURIError, NSManagedObjectReferentialIntegrityError:
            return .data
        case NSManagedObjectConstraintMergeError:
            let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSConstraintConflict] ?? []
            return !conflicts.isEmpty && conflicts.allSatisfy { $0.databaseObject == nil } ? .data : .conflict
        case NSManagedObjectMergeError, NSPersistentStoreSaveConflictsError: return .conflict
        case NSPersistentStoreTimeoutError: return .deadline
        case NSManagedObjectExternalRelationshipError, NSPersistentStoreInvalidTypeError,
            NSPersistentStoreIncompatibleSchemaError, NSCoreDataError, NSPersistentStoreOperationError,
            NSPersistentStoreUnsupportedRequestTypeError, NSPersistentHistoryTokenExpiredError,
            NSPersistentHistoryTokenStoreNotFoundError:
            return .request
        // Files that cannot be read or written, and all else that stores, models and migrations report.
        case 1..<1024, 132_000..<135_000: return .environment
        default: return nil
        }
    }
}
