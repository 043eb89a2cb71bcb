import Expectations
import Foundation
import StrataKeys
import Testing

@Suite("Codes and keys of errors")
struct ErrorCodeTests {
    /// Each code on `CocoaError.Code` and on `CocoaError`, and its number in Apple's framework.
    private static let codes: [(code: CocoaError.Code, shortcut: CocoaError.Code, number: Int)] = [
        (.managedObjectValidation, CocoaError.managedObjectValidation, 1550),
        (.validationMultipleErrors, CocoaError.validationMultipleErrors, 1560),
        (.validationMissingMandatoryProperty, CocoaError.validationMissingMandatoryProperty, 1570),
        (.validationRelationshipLacksMinimumCount, CocoaError.validationRelationshipLacksMinimumCount, 1580),
        (.validationRelationshipExceedsMaximumCount, CocoaError.validationRelationshipExceedsMaximumCount, 1590),
        (.validationRelationshipDeniedDelete, CocoaError.validationRelationshipDeniedDelete, 1600),
        (.validationNumberTooLarge, CocoaError.validationNumberTooLarge, 1610),
        (.validationNumberTooSmall, CocoaError.validationNumberTooSmall, 1620),
        (.validationDateTooLate, CocoaError.validationDateTooLate, 1630),
        (.validationDateTooSoon, CocoaError.validationDateTooSoon, 1640),
        (.validationInvalidDate, CocoaError.validationInvalidDate, 1650),
        (.validationStringTooLong, CocoaError.validationStringTooLong, 1660),
        (.validationStringTooShort, CocoaError.validationStringTooShort, 1670),
        (.validationStringPatternMatching, CocoaError.validationStringPatternMatching, 1680),
        (.managedObjectContextLocking, CocoaError.managedObjectContextLocking, 132000),
        (.persistentStoreCoordinatorLocking, CocoaError.persistentStoreCoordinatorLocking, 132010),
        (.managedObjectReferentialIntegrity, CocoaError.managedObjectReferentialIntegrity, 133000),
        (.managedObjectExternalRelationship, CocoaError.managedObjectExternalRelationship, 133010),
        (.managedObjectMerge, CocoaError.managedObjectMerge, 133020),
        (.managedObjectConstraintMerge, CocoaError.managedObjectConstraintMerge, 133021),
        (.persistentStoreInvalidType, CocoaError.persistentStoreInvalidType, 134000),
        (.persistentStoreTypeMismatch, CocoaError.persistentStoreTypeMismatch, 134010),
        (.persistentStoreIncompatibleSchema, CocoaError.persistentStoreIncompatibleSchema, 134020),
        (.persistentStoreSave, CocoaError.persistentStoreSave, 134030),
        (.persistentStoreIncompleteSave, CocoaError.persistentStoreIncompleteSave, 134040),
        (.persistentStoreSaveConflicts, CocoaError.persistentStoreSaveConflicts, 134050),
        (.coreData, CocoaError.coreData, 134060),
        (.persistentStoreOperation, CocoaError.persistentStoreOperation, 134070),
        (.persistentStoreOpen, CocoaError.persistentStoreOpen, 134080),
        (.persistentStoreTimeout, CocoaError.persistentStoreTimeout, 134090),
        (.persistentStoreUnsupportedRequestType, CocoaError.persistentStoreUnsupportedRequestType, 134091),
        (.persistentStoreIncompatibleVersionHash, CocoaError.persistentStoreIncompatibleVersionHash, 134100),
        (.migration, CocoaError.migration, 134110),
        (.migrationCancelled, CocoaError.migrationCancelled, 134120),
        (.migrationMissingSourceModel, CocoaError.migrationMissingSourceModel, 134130),
        (.migrationMissingMappingModel, CocoaError.migrationMissingMappingModel, 134140),
        (.migrationManagerSourceStore, CocoaError.migrationManagerSourceStore, 134150),
        (.migrationManagerDestinationStore, CocoaError.migrationManagerDestinationStore, 134160),
        (.entityMigrationPolicy, CocoaError.entityMigrationPolicy, 134170),
        (.sqlite, CocoaError.sqlite, 134180),
        (.inferredMappingModel, CocoaError.inferredMappingModel, 134190),
        (.externalRecordImport, CocoaError.externalRecordImport, 134200),
    ]

    /// The numbers that have no name as a code, in Apple's framework neither.
    private static let numbers = [
        (NSManagedObjectConstraintValidationError, 1551), (NSValidationInvalidURIError, 1690),
        (NSMigrationConstraintViolationError, 134111), (NSPersistentHistoryTokenExpiredError, 134301),
        (NSPersistentHistoryTokenStoreNotFoundError, 134501), (NSManagedObjectModelReferenceNotFoundError, 134504),
        (NSStagedMigrationFrameworkVersionMismatchError, 134505), (NSStagedMigrationBackwardMigrationError, 134506),
    ]

    @Test func `codes have Apple's numbers`() {
        for (code, shortcut, number) in Self.codes {
            expectEqual(code.rawValue, number)
            expectEqual(shortcut.rawValue, number)
        }
        for (number, expected) in Self.numbers { expectEqual(number, expected) }
        let all = Self.codes.map(\.number) + Self.numbers.map(\.0)
        expectEqual(Set(all).count, 50)
    }

    @Test func `an error can be caught by its code`() {
        do {
            throw CocoaError(.validationNumberTooSmall)
        } catch CocoaError.validationNumberTooSmall {
            // Caught by its pattern.
        } catch {
            Issue.record("\(error) was not caught by its code")
        }
        let error: any Error = NSError(domain: NSCocoaErrorDomain, code: NSManagedObjectMergeError)
        expectEqual((error as? CocoaError)?.code, .managedObjectMerge)
    }

    @Test func `keys have Apple's texts, and additions the text of their names`() {
        let keys = [
            (NSDetailedErrorsKey, "NSDetailedErrors"), (NSValidationKeyErrorKey, "NSValidationErrorKey"),
            (NSValidationObjectErrorKey, "NSValidationErrorObject"),
            (NSValidationPredicateErrorKey, "NSValidationErrorPredicate"),
            (NSValidationValueErrorKey, "NSValidationErrorValue"),
            (NSPersistentStoreSaveConflictsErrorKey, "conflictList"),
            (NSAffectedObjectsErrorKey, "NSAffectedObjectsErrorKey"),
            (NSAffectedStoresErrorKey, "NSAffectedStoresErrorKey"), (NSSQLiteErrorDomain, "NSSQLiteErrorDomain"),
            (NSStoreTypeKey, "NSStoreType"), (NSStoreUUIDKey, "NSStoreUUID"),
            (NSStoreModelVersionHashesKey, "NSStoreModelVersionHashes"),
            (NSStoreModelVersionIdentifiersKey, "NSStoreModelVersionIdentifiers"),
            (NSPersistentStoreModelVersionChecksumKey, "NSStoreModelVersionChecksumKey"),
            (NSSQLiteStoreType, "SQLite"), (NSInMemoryStoreType, "InMemory"), (NSBinaryStoreType, "Binary"),
            (NSXMLStoreType, "XML"),
            (NSPersistentHistoryOldestTransactionNumberKey, "NSPersistentHistoryOldestTransactionNumberKey"),
            (NSBatchInsertConflictingRowsErrorKey, "NSBatchInsertConflictingRowsErrorKey"),
            (NSBatchChangedStoresErrorKey, "NSBatchChangedStoresErrorKey"),
            (NSModelEntityNameErrorKey, "NSModelEntityNameErrorKey"),
            (NSModelPropertyNameErrorKey, "NSModelPropertyNameErrorKey"),
            (NSPersistentStoreSaveInDoubtKey, "NSPersistentStoreSaveInDoubtKey"),
        ]
        for (key, text) in keys { expectEqual(key, text) }
    }

    @Test func `a mark is added to what an error says, and takes the place of another mark`() {
        let error = CocoaError(.persistentStoreOpen, userInfo: [NSLocalizedDescriptionKey: "The disk is gone."])
        let marked = error.marked(.environment).marked(.deadline)
        expect(marked.code == .persistentStoreOpen && marked.localizedDescription == "The disk is gone.")
        expectEqual(marked.userInfo[failureMarkKey] as? String, FailureMark.deadline.rawValue)
        expect(error.userInfo[failureMarkKey] == nil)
    }
}
