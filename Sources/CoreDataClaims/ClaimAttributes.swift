import CoreDataEssentials
import StrataPredicates
import StrataRows

/// The two attributes of an entity that say which worker has an object, and until when.
///
/// The entity declares both: a text for the worker and a date for the end of the lease. Both are optional, because they
/// are nil for an object that no worker has. They are plain attributes: any fetch may use them, and any save may set them.
///
/// ```swift
/// let standard = ClaimAttributes()  // claimedBy and claimedUntil
/// let others = ClaimAttributes(worker: "owner", end: "ownedUntil")
/// print(standard.worker, others.worker)
/// ```
public struct ClaimAttributes: Hashable, Sendable {
    /// The name of the attribute for the worker, of type String; `claimedBy` by default.
    public var worker: String

    /// The name of the attribute for the time when the lease ends, of type Date; `claimedUntil` by default.
    public var end: String

    /// Names the attributes.
    ///
    /// Whether the entity has them is checked when they are used.
    ///
    /// - Parameters:
    ///   - worker: The name of the attribute for the worker.
    ///   - end: The name of the attribute for the end of the lease.
    public init(worker: String = "claimedBy", end: String = "claimedUntil") {
        self.worker = worker
        self.end = end
    }

    /// The slots of the attributes in an entity.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the entity lacks one of them, or has it in another form.
    func slots(_ layout: EntityLayout) throws -> (worker: Slot, end: Slot) {
        (try slot(worker, .string, layout), try slot(end, .date, layout))
    }

    private func slot(_ name: String, _ type: AttributeType, _ layout: EntityLayout) throws -> Slot {
        let form = "\(type == .date ? "a date" : "a text")"
        guard let slot = layout.slot(named: name), slot.type == type, slot.isOptional, !slot.isDerived else {
            throw FetchPlanner.refused(
                """
                Objects of \(layout.name) cannot be claimed: "\(name)" must be an attribute of that entity, \(form), optional, \
                stored and not derived. Declare it, or name others with ClaimAttributes.
                """
            )
        }
        return slot
    }
}
