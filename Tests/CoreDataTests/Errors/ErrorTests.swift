import Expectations
import TestSupport
import Testing

@testable import CoreData

@Suite("Errors")
struct ErrorTests {
    private static let codes: [(code: CocoaError.Code, number: Int)] = [
        (.managedObjectValidation, 1550), (.validationMultipleErrors, 1560),
        (.validationMissingMandatoryProperty, 1570), (.validationRelationshipLacksMinimumCount, 1580),
        (.validationRelationshipExceedsMaximumCount, 1590), (.validationRelationshipDeniedDelete, 1600),
        (.validationNumberTooLarge, 1610), (.validationNumberTooSmall, 1620), (.validationDateTooLate, 1630),
        (.validationDateTooSoon, 1640), (.validationInvalidDate, 1650), (.validationStringTooLong, 1660),
        (.validationStringTooShort, 1670), (.validationStringPatternMatching, 1680),
        (.managedObjectContextLocking, 132000), (.persistentStoreCoordinatorLocking, 132010),
        (.managedObjectReferentialIntegrity, 133000), (.managedObjectExternalRelationship, 133010),
        (.managedObjectMerge, 133020), (.managedObjectConstraintMerge, 133021), (.persistentStoreInvalidType, 134000),
        (.persistentStoreTypeMismatch, 134010), (.persistentStoreIncompatibleSchema, 134020),
        (.persistentStoreSave, 134030), (.persistentStoreIncompleteSave, 134040),
        (.persistentStoreSaveConflicts, 134050), (.coreData, 134060), (.persistentStoreOperation, 134070),
        (.persistentStoreOpen, 134080), (.persistentStoreTimeout, 134090),
        (.persistentStoreUnsupportedRequestType, 134091), (.persistentStoreIncompatibleVersionHash, 134100),
        (.migration, 134110), (.migrationCancelled, 134120), (.migrationMissingSourceModel, 134130),
        (.migrationMissingMappingModel, 134140), (.migrationManagerSourceStore, 134150),
        (.migrationManagerDestinationStore, 134160), (.entityMigrationPolicy, 134170), (.sqlite, 134180),
        (.inferredMappingModel, 134190), (.externalRecordImport, 134200),
    ]

    @Test func `codes have Apple's numbers`() {
        for (code, number) in Self.codes {
            expectEqual(code.rawValue, number)
        }
        expectEqual(Set(Self.codes.map(\.number)).count, Self.codes.count)
        expect(NSManagedObjectConstraintValidationError == 1551 && NSPersistentHistoryTokenExpiredError == 134301)
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

    @Test func `the details of a validation error can be read`() {
        let predicate = NSPredicate(value: true)
        let object = NSObject()
        let error = CocoaError(
            .managedObjectValidation,
            userInfo: [
                NSValidationKeyErrorKey: "price", NSValidationObjectErrorKey: object, NSValidationValueErrorKey: 3,
                NSValidationPredicateErrorKey: predicate, NSAffectedObjectsErrorKey: [object],
                NSAffectedStoresErrorKey: [object],
            ]
        )

        expect(error.validationKey == "price" && error.validationValue as? Int == 3)
        expect(error.validationObject as? NSObject === object && error.validationPredicate === predicate)
        expect(error.affectedObjects?.first === object && error.affectedStores?.count == 1)
        expect(error.detailedErrors.isEmpty)
    }

    @Test func `several errors are found behind one, also after a trip through NSError`() throws {
        let details = [CocoaError(.validationStringTooLong), CocoaError(.validationStringTooShort)]
        let error = CocoaError(.validationMultipleErrors, userInfo: [NSDetailedErrorsKey: details])

        let back = try require((error as NSError) as Error as? CocoaError)

        expectEqual(back.code, .validationMultipleErrors)
        expectEqual(back.detailedErrors.compactMap { ($0 as? CocoaError)?.code }, details.map(\.code))
    }

    @Test func `keys have Apple's texts`() {
        expect(NSDetailedErrorsKey == "NSDetailedErrors" && NSValidationKeyErrorKey == "NSValidationErrorKey")
        expectEqual(NSValidationObjectErrorKey, "NSValidationErrorObject")
        expectEqual(NSValidationPredicateErrorKey, "NSValidationErrorPredicate")
        expectEqual(NSValidationValueErrorKey, "NSValidationErrorValue")
        expectEqual(NSPersistentStoreSaveConflictsErrorKey, "conflictList")
        expect(
            NSAffectedObjectsErrorKey == "NSAffectedObjectsErrorKey" && NSSQLiteErrorDomain == "NSSQLiteErrorDomain"
        )
    }

    @Test func `an error of a model names file, entity and property in one sentence`() {
        var error = ModelError(.invalid, entity: "A", property: "x", "it is wrong")
        error.file = URL(fileURLWithPath: "/tmp/m.xcdatamodel/contents")

        expect(
            error.cocoaError.localizedDescription
                == "The model at /tmp/m.xcdatamodel/contents cannot be used: property \"x\" of entity \"A\": it is wrong"
        )
        expect(
            ModelError(.missing, "there is none").cocoaError.localizedDescription.hasPrefix("The model cannot be used")
        )
        expectEqual(ModelError(.unsupported, "").cocoaError.code, .featureUnsupported)
    }
}
