import Foundation

/// The cause of a failed call: it has to change before the same call can succeed.
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
/// The codes alone do not show the cause: 134070 is the code for a key that does not exist, for a predicate that takes
/// too long, and for a store that was closed. An addition to Apple's API.
public enum CoreDataFailure: String, Sendable, CaseIterable {
    /// The request makes no sense, or cannot be carried out whatever the store contains.
    ///
    /// Examples are a key that the model lacks, a value of the wrong type, a request that a store does not support, and
    /// a history token that is too old.
    case request
    /// The data to save breaks a rule of the model, or the requested data does not exist.
    ///
    /// Examples are failed validation, a uniqueness constraint that the context's changes break by themselves, and an
    /// object that was deleted.
    case data
    /// Other code has changed the same rows meanwhile; read them again and retry.
    case conflict
    /// The call takes longer than the store, or the request, allows.
    ///
    /// Try again later, request less at a time, or raise the limit.
    case deadline
    /// The store cannot do its work now, or in its present state.
    ///
    /// For example, it is closed, read-only or damaged, it was made with another model, or the disk is full.
    case environment

    /// Finds the cause of an error.
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
        // Errors of validation may have any code.
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
        // These are files that cannot be read or written, and other errors of stores, models and migrations.
        case 1..<1024, 132_000..<135_000: return .environment
        default: return nil
        }
    }
}
