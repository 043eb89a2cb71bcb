import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Errors")
struct ErrorTests {
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

    @Test func `what is printed of an error has its text`() throws {
        let stack = try Stack(.memory, model: GuideModel.make())
        let found: [(any Error)?] = stack.inContext { context in
            let unknown = NSFetchRequest<NSManagedObject>(entityName: "Nothing")
            let wrong = NSFetchRequest<NSManagedObject>(entityName: "City")
            wrong.predicate = NSPredicate(format: "nothing == 1")
            return [
                expectThrows(CocoaError.self) { try context.fetch(unknown) },
                expectThrows(CocoaError.self) { try context.fetch(wrong) },
            ]
        }
        let model = URL(fileURLWithPath: "/nowhere/Model.xcdatamodel")
        let store = URL(fileURLWithPath: "/nowhere/store.sqlite")
        let others: [(any Error)?] = [
            expectThrows(CocoaError.self) { try NSManagedObjectModel(reading: model) },
            expectThrows(CocoaError.self) { try stack.coordinator.addPersistentStore(type: .sqlite, at: store) },
            expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "name ==") },
        ]
        let errors = (found + others).compactMap { $0 }
        expectEqual(errors.count, 5)
        for error in errors {
            expect("\(error)".contains(error.localizedDescription), "\(error)")
            let plain = error as NSError
            expect(!plain.description.contains("\"(null)\""), "\(plain)")
            expect(plain.description.contains(error.localizedDescription), "\(plain)")
        }
    }

    @Test func `an error keeps the reason that it has`() {
        let error = CocoaError.described(
            .coreData,
            userInfo: [NSLocalizedDescriptionKey: "text", NSLocalizedFailureReasonErrorKey: "reason"]
        )
        expectEqual((error as NSError).localizedFailureReason, "reason")
        expectEqual(error.localizedDescription, "text")
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
