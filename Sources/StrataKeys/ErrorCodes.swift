import Foundation

// The codes of errors in `NSCocoaErrorDomain`, by number. `CocoaError.Code` has most of them under Swift names.

// MARK: - Validation

/// A value is not valid.
///
/// Code 1550.
public let NSManagedObjectValidationError = 1550

/// A value violates a uniqueness constraint.
///
/// Code 1551.
public let NSManagedObjectConstraintValidationError = 1551

/// Several values are not valid; see `NSDetailedErrorsKey`.
///
/// Code 1560.
public let NSValidationMultipleErrorsError = 1560

/// A required value is missing.
///
/// Code 1570.
public let NSValidationMissingMandatoryPropertyError = 1570

/// A relationship has fewer objects than required.
///
/// Code 1580.
public let NSValidationRelationshipLacksMinimumCountError = 1580

/// A relationship has more objects than allowed.
///
/// Code 1590.
public let NSValidationRelationshipExceedsMaximumCountError = 1590

/// The object cannot be deleted while a relationship with the deny rule is not empty.
///
/// Code 1600.
public let NSValidationRelationshipDeniedDeleteError = 1600

/// A number is larger than the largest allowed.
///
/// Code 1610.
public let NSValidationNumberTooLargeError = 1610

/// A number is smaller than the smallest allowed.
///
/// Code 1620.
public let NSValidationNumberTooSmallError = 1620

/// A date is later than the latest allowed.
///
/// Code 1630.
public let NSValidationDateTooLateError = 1630

/// A date is earlier than the earliest allowed.
///
/// Code 1640.
public let NSValidationDateTooSoonError = 1640

/// A value is not a date.
///
/// Code 1650.
public let NSValidationInvalidDateError = 1650

/// A text is longer than allowed.
///
/// Code 1660.
public let NSValidationStringTooLongError = 1660

/// A text is shorter than required.
///
/// Code 1670.
public let NSValidationStringTooShortError = 1670

/// A text does not match the required pattern.
///
/// Code 1680.
public let NSValidationStringPatternMatchingError = 1680

/// A value is not a well-formed URI.
///
/// Code 1690.
public let NSValidationInvalidURIError = 1690

// MARK: - Objects and contexts

/// A context could not be locked.
///
/// Code 132000.
public let NSManagedObjectContextLockingError = 132000

/// A coordinator could not be locked.
///
/// Code 132010.
public let NSPersistentStoreCoordinatorLockingError = 132010

/// A fault, or a relationship, leads to an object that the store does not have.
///
/// Code 133000.
public let NSManagedObjectReferentialIntegrityError = 133000

/// A relationship would lead to an object of another store.
///
/// Code 133010.
public let NSManagedObjectExternalRelationshipError = 133010

/// The store has a newer version of an object and the merge policy did not resolve the conflict.
///
/// Code 133020.
public let NSManagedObjectMergeError = 133020

/// A uniqueness constraint was violated and the merge policy did not resolve it.
///
/// Code 133021.
public let NSManagedObjectConstraintMergeError = 133021

// MARK: - Stores

/// There is no store type of that name.
///
/// Code 134000.
public let NSPersistentStoreInvalidTypeError = 134000

/// The file is a store of another type.
///
/// Code 134010.
public let NSPersistentStoreTypeMismatchError = 134010

/// A store refused a save because its schema differs.
///
/// Code 134020.
public let NSPersistentStoreIncompatibleSchemaError = 134020

/// A store could not be saved.
///
/// Code 134030.
public let NSPersistentStoreSaveError = 134030

/// Some of several stores were saved, and others were not.
///
/// Code 134040.
public let NSPersistentStoreIncompleteSaveError = 134040

/// A save had conflicts that were not resolved.
///
/// Code 134050.
public let NSPersistentStoreSaveConflictsError = 134050

/// A Core Data error without a specific code.
///
/// Code 134060.
public let NSCoreDataError = 134060

/// A store could not carry out an operation.
///
/// Code 134070.
public let NSPersistentStoreOperationError = 134070

/// A store could not be opened.
///
/// Code 134080.
public let NSPersistentStoreOpenError = 134080

/// A store could not be reached in time.
///
/// Code 134090.
public let NSPersistentStoreTimeoutError = 134090

/// The store does not know this kind of request.
///
/// Code 134091.
public let NSPersistentStoreUnsupportedRequestTypeError = 134091

/// The model is not the one that the store was written with.
///
/// Code 134100.
public let NSPersistentStoreIncompatibleVersionHashError = 134100

/// SQLite reported an error; its code is in the user info under `NSSQLiteErrorDomain`.
///
/// Code 134180.
public let NSSQLiteError = 134180

// MARK: - Migration and history

/// A migration failed.
///
/// Code 134110.
public let NSMigrationError = 134110

/// A migration would violate a uniqueness constraint.
///
/// Code 134111.
public let NSMigrationConstraintViolationError = 134111

/// A migration was cancelled.
///
/// Code 134120.
public let NSMigrationCancelledError = 134120

/// The model that a store was written with was not found.
///
/// Code 134130.
public let NSMigrationMissingSourceModelError = 134130

/// There is no mapping model between the versions of a migration.
///
/// Code 134140.
public let NSMigrationMissingMappingModelError = 134140

/// A migration could not use the store it reads from.
///
/// Code 134150.
public let NSMigrationManagerSourceStoreError = 134150

/// A migration could not use the store it writes to.
///
/// Code 134160.
public let NSMigrationManagerDestinationStoreError = 134160

/// An entity migration policy failed.
///
/// Code 134170.
public let NSEntityMigrationPolicyError = 134170

/// A mapping between two models could not be inferred.
///
/// Code 134190.
public let NSInferredMappingModelError = 134190

/// External records could not be imported.
///
/// Code 134200.
public let NSExternalRecordImportError = 134200

/// A history token is older than the oldest transaction that is kept.
///
/// Code 134301.
public let NSPersistentHistoryTokenExpiredError = 134301

/// A history token names none of the stores that were asked.
///
/// Code 134501, which Apple's framework throws but does not declare.
public let NSPersistentHistoryTokenStoreNotFoundError = 134501

/// A reference to a model in a staged migration leads nowhere.
///
/// Code 134504.
public let NSManagedObjectModelReferenceNotFoundError = 134504

/// A staged migration needs a newer framework.
///
/// Code 134505.
public let NSStagedMigrationFrameworkVersionMismatchError = 134505

/// A staged migration would go backwards.
///
/// Code 134506.
public let NSStagedMigrationBackwardMigrationError = 134506
