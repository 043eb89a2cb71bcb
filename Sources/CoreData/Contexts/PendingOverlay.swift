import Foundation
import StrataPredicates

/// The unsaved changes that matter to one fetch, and how they fold into what the store answers.
///
/// Lives for one call, on the context's queue.
struct PendingOverlay {
    private let plan: FetchPlan
    private let context: NSManagedObjectContext
    /// New and changed objects of the entity, deleted ones excluded.
    private var present: [NSManagedObject] = []
    /// The changed, deleted and inserted objects: what the store says of them does not count.
    private var hidden: Set<ObjectIdentifier> = []
    /// Whether a change in another entity may change what matches: then everything is looked at in memory.
    let mustEvaluateAll: Bool

    /// How many stored objects may be missing from the store's answer.
    var changedCount: Int { hidden.count }

    /// Makes the overlay; `nil` if no pending change can matter, or the request wants none.
    init?(_ context: NSManagedObjectContext, _ plan: FetchPlan, _ specification: FetchSpecification) {
        guard specification.includesPendingChanges, !context.changedList.isEmpty else { return nil }
        self.context = context
        self.plan = plan
        let numbers = Set(plan.entityNumbers)
        var mayChangeOthers = false
        let related = plan.relatedRootNumbers
        for object in context.changedList where object.hasChanges {
            if numbers.contains(object.layout.number) {
                hidden.insert(ObjectIdentifier(object))
                if object.flags.isDisjoint(with: .deleted) { present.append(object) }
            }
            if related.contains(object.layout.rootNumber) { mayChangeOthers = true }
        }
        mustEvaluateAll = mayChangeOthers
        guard !hidden.isEmpty || mustEvaluateAll else { return nil }
    }

    /// How many of the new and changed objects match.
    var matchingCount: Int {
        get throws { try plan.matching(present).count }
    }

    /// Whether what a store says of a row does not count.
    func hides(_ reference: ObjectReference, _ store: OpenStore) -> Bool {
        guard
            let object = context.registered(
                key: reference.key,
                layout: plan.layout,
                storeSlot: Int32(store.slot)
            )
        else { return false }
        return hidden.contains(ObjectIdentifier(object))
    }

    /// Whether what the parent says of an object does not count.
    func hides(_ id: NSManagedObjectID) -> Bool {
        context.registeredObject(for: id).map { hidden.contains(ObjectIdentifier($0)) } ?? false
    }

    /// Folds the changes into the store's answer, which was asked for widely enough.
    func fold(into stored: [NSManagedObject]) throws -> [NSManagedObject] {
        let unchanged = stored.filter { !hidden.contains(ObjectIdentifier($0)) }
        let matching = try plan.matching(present)
        return plan.window(
            plan.sort == nil ? unchanged + matching : try plan.merged(unchanged, plan.sorted(matching))
        )
    }

    /// The answer by looking at every object in memory.
    func evaluateAll(_ stored: [NSManagedObject]) throws -> [NSManagedObject] {
        let candidates = stored.filter { !hidden.contains(ObjectIdentifier($0)) } + present
        return try plan.sorted(try plan.matching(candidates))
    }

    func window(_ objects: [NSManagedObject]) -> [NSManagedObject] { plan.window(objects) }
}
