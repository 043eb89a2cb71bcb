import Foundation

// These are possible keys in the `userInfo` of an error, besides Foundation's own.

/// The managed objects that an error is about, as an array.
public let NSAffectedObjectsErrorKey = "NSAffectedObjectsErrorKey"

/// The stores that an error is about, as an array.
public let NSAffectedStoresErrorKey = "NSAffectedStoresErrorKey"

/// The single errors behind an error with code 1560 (`validationMultipleErrors`), as an array.
public let NSDetailedErrorsKey = "NSDetailedErrors"

/// The conflicts of a save, as an array of `NSMergeConflict` and `NSConstraintConflict`.
///
/// An error with code 133020 (`managedObjectMerge`) may list both kinds. So look at each element: a cast of the whole
/// array to one kind is then `nil`.
public let NSPersistentStoreSaveConflictsErrorKey = "conflictList"

/// The SQLite result code, as a number.
///
/// This is also the domain of an underlying SQLite error.
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

/// The number of the oldest transaction in a history, as an `Int64`, in an error about an expired token.
///
/// If there is no transaction, it is the number of the next one.
public let NSPersistentHistoryOldestTransactionNumberKey = "NSPersistentHistoryOldestTransactionNumberKey"

/// The positions of conflicting rows, as an `[Int]`, in the error of a batch insert that breaks uniqueness constraints.
///
/// They are in the order of insertion, counted from 0. There is one for each conflict under
/// `NSPersistentStoreSaveConflictsErrorKey`, and 100 at most.
public let NSBatchInsertConflictingRowsErrorKey = "NSBatchInsertConflictingRowsErrorKey"

/// The stores that a batch request had already changed when it failed in another one, as an array.
///
/// The changes in them are in the same error, under the keys that
/// `NSManagedObjectContext.mergeChanges(fromRemoteContextSave:into:)` takes. They are there only if the rows were
/// listed, that is if the request asks for IDs, or if changes are being followed.
public let NSBatchChangedStoresErrorKey = "NSBatchChangedStoresErrorKey"

/// The key of the user info of an error in a block that locks rows, with the IDs of the rows that it concerns.
///
/// The value is an array of managed object IDs, with 100 of them at most: the rows that others have locked
/// (`managedObjectContextLocking`, 132000), or the rows whose locks have ended (`persistentStoreTimeout`, 134090).
public let NSRowLockObjectIDsErrorKey = "NSRowLockObjectIDsErrorKey"

/// The name of the entity that is wrong, in an error about a model.
public let NSModelEntityNameErrorKey = "NSModelEntityNameErrorKey"

/// The name of the property that is wrong, in an error about a model.
public let NSModelPropertyNameErrorKey = "NSModelPropertyNameErrorKey"

/// The identifier, a `UUID`, of a save of which it is not known whether it was committed, in an error with code 134030.
///
/// Only saves to stores on other machines end in this way. The context keeps the changes as unsaved ones.
public let NSPersistentStoreSaveInDoubtKey = "NSPersistentStoreSaveInDoubtKey"
