import CoreData

/// The part of the model for batches: a unique value, a delete rule that cascades, and one that nullifies.
enum ParcelModel {
    static func make() -> [NSEntityDescription] {
        let parcel = NSEntityDescription.keeping("Parcel", Parcel.self, ["code", "value", "region"])
        let crate = NSEntityDescription.keeping("Crate", Crate.self, ["number"])
        parcel.uniquenessConstraints = [["code"]]
        parcel.relate("crate", to: crate, "parcels", inverseIsMany: true, inverseRule: .cascadeDeleteRule)
        parcel.relate("friend", to: parcel, "admirers", inverseIsMany: true)
        return [parcel, crate]
    }
}

/// An object that batches insert, change and delete.
@ManagedObject
final class Parcel: NSManagedObject {
    /// A unique number.
    @Managed var code: Int64
    @Managed var value: Int64
    @Managed var region: Int64
    @Managed var crate: Crate?
    @Managed var friend: Parcel?
    @Managed var admirers: Set<Parcel>
}

/// A crate, which takes its parcels with it when it is deleted.
@ManagedObject
final class Crate: NSManagedObject {
    @Managed var number: Int64
    @Managed var parcels: Set<Parcel>
}
