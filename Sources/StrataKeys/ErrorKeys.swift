import Foundation

// What the `userInfo` of an error may have, besides Foundation's own keys.

/// The managed objects that an error is about, as an array.
public let NSAffectedObjectsErrorKey = "NSAffectedObjectsErrorKey"

/// The stores that an error is about, as an array.
public let NSAffectedStoresErrorKey = "NSAffectedStoresErrorKey"

/// The single errors behind an error with code 1560 (`validationMultipleErrors`), as an array.
public let NSDetailedErrorsKey = "NSDetailedErrors"

/// The conflicts that a save met, as an array of `NSMergeConflict` and `NSConstraintConflict`.
///
/// An error with code 133020 (`managedObjectMerge`) may list both kinds, so look at each element: a cast of the whole array to one kind is `nil`
/// then.
public let NSPersistentStoreSaveConflictsErrorKey = "conflictList"

/// The SQLite result code, as a number.
///
/// Also the domain of an underlying SQLite error.
public let NSSQLiteErrorDomain = "NSSQLiteErrorDomain"

/// The managed object that did not pass validation.
public let NSValidationObjectErrorKey = "NSValidationErrorObject"

/// The name of the property that did not pass validation.
public let NSValidationKeyErrorKey = "NSValidationErrorKey"

/// The validation predicate that was not fulfilled.
public let NSValidationPredicateErrorKey = "NSValidationErrorPredicate"

/// The value that did not pass validation.
public let NSValidationValueErrorKey = "NSValidationErrorValue"

// MARK: - Additions to Apple's keys

/// The number of the oldest transaction that a history still has, as an `Int64`, in an error about an expired token; that
/// of the next transaction if there is none.
public let NSPersistentHistoryOldestTransactionNumberKey = "NSPersistentHistoryOldestTransactionNumberKey"

/// The positions of the rows that clash, as an `[Int]`, in the error of a batch insert with rows that break uniqueness
/// constraints: in the order of insertion, counted from 0, one for each conflict under
/// `NSPersistentStoreSaveConflictsErrorKey`; 100 at most.
public let NSBatchInsertConflictingRowsErrorKey = "NSBatchInsertConflictingRowsErrorKey"

/// The stores that a batch request had changed already when it failed in another one, as an array.
///
/// What was changed in them is in the same error under the keys that
/// `NSManagedObjectContext.mergeChanges(fromRemoteContextSave:into:)` takes, if the rows were listed: if the request
/// asks for IDs, or somebody follows.
public let NSBatchChangedStoresErrorKey = "NSBatchChangedStoresErrorKey"

/// The name of the entity that is wrong, in an error about a model.
public let NSModelEntityNameErrorKey = "NSModelEntityNameErrorKey"

/// The name of the property that is wrong, in an error about a model.
public let NSModelPropertyNameErrorKey = "NSModelPropertyNameErrorKey"

/// The identifier, a `UUID`, of a save of which nobody can tell whether it was committed, in an error with code 134030.
///
/// Only stores on other machines end saves so. The context keeps the changes as unsaved ones.
public let NSPersistentStoreSaveInDoubtKey = "NSPersistentStoreSaveInDoubtKey"
