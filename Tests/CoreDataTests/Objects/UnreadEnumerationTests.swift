import CoreData
import Expectations
import TestSupport
import Testing

/// A state that has a default in the model, and is not its first case.
enum ParcelState: String, CaseIterable, Sendable {
    case lost, packed, sent
}

/// A size that has no default.
enum ParcelSize: Int16, Sendable {
    case small = 1
    case large = 2
}

@ManagedObject
final class SizedParcel: NSManagedObject {
    @Managed(.default(ParcelState.packed)) var state: ParcelState
    @Managed(.required) var size: ParcelSize
}

@Suite("Enumerations without a row")
struct UnreadEnumerationTests {
    private static func text(_ parcel: SizedParcel) -> String { "\(parcel.state) \(parcel.size)" }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an enumeration of an object whose row is gone shows the default of the model, or some case`(
        _ kind: StoreKind,
        _ deletesFaults: Bool
    ) throws {
        let stack = try Stack(kind, model: NSManagedObjectModel(for: [SizedParcel.self]))
        let context = stack.context()
        context.shouldDeleteInaccessibleFaults = deletesFaults
        let id = try context.performAndWait {
            let parcel = SizedParcel(context: context)
            (parcel.state, parcel.size) = (.sent, .large)
            try context.save()
            let id = parcel.objectID
            context.reset()
            return id
        }
        let other = stack.context()
        try other.performAndWait {
            let parcel = try require(try other.existingObject(with: id) as? SizedParcel)
            expectEqual(Self.text(parcel), "sent large")
            other.delete(parcel)
            try other.save()
            // The deletion is saved, and the values are those of before.
            expectEqual(Self.text(parcel), "sent large")
        }
        try context.performAndWait { () throws in
            let parcel = try require(context.object(with: id) as? SizedParcel)
            expectEqual(Self.text(parcel), "packed small")
            expectEqual(parcel.isDeleted, deletesFaults)
        }
    }
}
