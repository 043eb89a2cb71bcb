import Foundation

// The codes are repeated on `CocoaError` itself, so that `catch CocoaError.validationMissingMandatoryProperty` works.

extension CocoaError {
    // MARK: - Validation

    /// A value is not valid.
    ///
    /// Code 1550.
    public static var managedObjectValidation: CocoaError.Code { .managedObjectValidation }

    /// Several values are not valid; see `NSDetailedErrorsKey`.
    ///
    /// Code 1560.
    public static var validationMultipleErrors: CocoaError.Code { .validationMultipleErrors }

    /// A required value is missing.
    ///
    /// Code 1570.
    public static var validationMissingMandatoryProperty: CocoaError.Code { .validationMissingMandatoryProperty }

    /// A relationship has fewer objects than required.
    ///
    /// Code 1580.
    public static var validationRelationshipLacksMinimumCount: CocoaError.Code {
        .validationRelationshipLacksMinimumCount
    }

    /// A relationship has more objects than allowed.
    ///
    /// Code 1590.
    public static var validationRelationshipExceedsMaximumCount: CocoaError.Code {
        .validationRelationshipExceedsMaximumCount
    }

    /// The object cannot be deleted while a relationship with the deny rule is not empty.
    ///
    /// Code 1600.
    public static var validationRelationshipDeniedDelete: CocoaError.Code { .validationRelationshipDeniedDelete }

    /// A number is larger than the largest allowed.
    ///
    /// Code 1610.
    public static var validationNumberTooLarge: CocoaError.Code { .validationNumberTooLarge }

    /// A number is smaller than the smallest allowed.
    ///
    /// Code 1620.
    public static var validationNumberTooSmall: CocoaError.Code { .validationNumberTooSmall }

    /// A date is later than the latest allowed.
    ///
    /// Code 1630.
    public static var validationDateTooLate: CocoaError.Code { .validationDateTooLate }

    /// A date is earlier than the earliest allowed.
    ///
    /// Code 1640.
    public static var validationDateTooSoon: CocoaError.Code { .validationDateTooSoon }

    /// A value is not a date.
    ///
    /// Code 1650.
    public static var validationInvalidDate: CocoaError.Code { .validationInvalidDate }

    /// A text is longer than allowed.
    ///
    /// Code 1660.
    public static var validationStringTooLong: CocoaError.Code { .validationStringTooLong }

    /// A text is shorter than required.
    ///
    /// Code 1670.
    public static var validationStringTooShort: CocoaError.Code { .validationStringTooShort }

    /// A text does not match the required pattern.
    ///
    /// Code 1680.
    public static var validationStringPatternMatching: CocoaError.Code { .validationStringPatternMatching }

    // MARK: - Objects and contexts

    /// A context could not be locked.
    ///
    /// Code 132000.
    public static var managedObjectContextLocking: CocoaError.Code { .managedObjectContextLocking }

    /// A coordinator could not be locked.
    ///
    /// Code 132010.
    public static var persistentStoreCoordinatorLocking: CocoaError.Code { .persistentStoreCoordinatorLocking }

    /// A fault, or a relationship, leads to an object that the store does not have.
    ///
    /// Code 133000.
    public static var managedObjectReferentialIntegrity: CocoaError.Code { .managedObjectReferentialIntegrity }

    /// A relationship would lead to an object of another store.
    ///
    /// Code 133010.
    public static var managedObjectExternalRelationship: CocoaError.Code { .managedObjectExternalRelationship }

    /// The store has a newer version of an object and the merge policy did not resolve the conflict.
    ///
    /// Code 133020.
    public static var managedObjectMerge: CocoaError.Code { .managedObjectMerge }

    /// A uniqueness constraint was violated and the merge policy did not resolve it.
    ///
    /// Code 133021.
    public static var managedObjectConstraintMerge: CocoaError.Code { .managedObjectConstraintMerge }

    // MARK: - Stores

    /// There is no store type of that name.
    ///
    /// Code 134000.
    public static var persistentStoreInvalidType: CocoaError.Code { .persistentStoreInvalidType }

    /// The file is a store of another type.
    ///
    /// Code 134010.
    public static var persistentStoreTypeMismatch: CocoaError.Code { .persistentStoreTypeMismatch }

    /// A store refused a save because its schema differs.
    ///
    /// Code 134020.
    public static var persistentStoreIncompatibleSchema: CocoaError.Code { .persistentStoreIncompatibleSchema }

    /// A store could not be saved.
    ///
    /// Code 134030.
    public static var persistentStoreSave: CocoaError.Code { .persistentStoreSave }

    /// Some of several stores were saved, and others were not.
    ///
    /// Code 134040.
    public static var persistentStoreIncompleteSave: CocoaError.Code { .persistentStoreIncompleteSave }

    /// A save had conflicts that were not resolved.
    ///
    /// Code 134050.
    public static var persistentStoreSaveConflicts: CocoaError.Code { .persistentStoreSaveConflicts }

    /// A Core Data error without a specific code.
    ///
    /// Code 134060.
    public static var coreData: CocoaError.Code { .coreData }

    /// A store could not carry out an operation.
    ///
    /// Code 134070.
    public static var persistentStoreOperation: CocoaError.Code { .persistentStoreOperation }

    /// A store could not be opened.
    ///
    /// Code 134080.
    public static var persistentStoreOpen: CocoaError.Code { .persistentStoreOpen }

    /// A store could not be reached in time.
    ///
    /// Code 134090.
    public static var persistentStoreTimeout: CocoaError.Code { .persistentStoreTimeout }

    /// The store does not know this kind of request.
    ///
    /// Code 134091.
    public static var persistentStoreUnsupportedRequestType: CocoaError.Code { .persistentStoreUnsupportedRequestType }

    /// The model is not the one that the store was written with.
    ///
    /// Code 134100.
    public static var persistentStoreIncompatibleVersionHash: CocoaError.Code {
        .persistentStoreIncompatibleVersionHash
    }

    /// SQLite reported an error; its code is in the user info under `NSSQLiteErrorDomain`.
    ///
    /// Code 134180.
    public static var sqlite: CocoaError.Code { .sqlite }

    // MARK: - Migration and history

    /// A migration failed.
    ///
    /// Code 134110.
    public static var migration: CocoaError.Code { .migration }

    /// A migration was cancelled.
    ///
    /// Code 134120.
    public static var migrationCancelled: CocoaError.Code { .migrationCancelled }

    /// The model that a store was written with was not found.
    ///
    /// Code 134130.
    public static var migrationMissingSourceModel: CocoaError.Code { .migrationMissingSourceModel }

    /// There is no mapping model between the versions of a migration.
    ///
    /// Code 134140.
    public static var migrationMissingMappingModel: CocoaError.Code { .migrationMissingMappingModel }

    /// A migration could not use the store it reads from.
    ///
    /// Code 134150.
    public static var migrationManagerSourceStore: CocoaError.Code { .migrationManagerSourceStore }

    /// A migration could not use the store it writes to.
    ///
    /// Code 134160.
    public static var migrationManagerDestinationStore: CocoaError.Code { .migrationManagerDestinationStore }

    /// An entity migration policy failed.
    ///
    /// Code 134170.
    public static var entityMigrationPolicy: CocoaError.Code { .entityMigrationPolicy }

    /// A mapping between two models could not be inferred.
    ///
    /// Code 134190.
    public static var inferredMappingModel: CocoaError.Code { .inferredMappingModel }

    /// External records could not be imported.
    ///
    /// Code 134200.
    public static var externalRecordImport: CocoaError.Code { .externalRecordImport }
}
