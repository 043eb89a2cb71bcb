import Foundation
import StrataLocks
import StrataPredicates
import StrataRows

/// The unsaved changes that matter to one fetch; it adds them to the store's answer.
///
/// It lives for one call, on the context's queue.
struct PendingOverlay {
    private let plan: FetchPlan
    private let context: NSManagedObjectContext
    /// Reads the objects that have to be looked at.
    let reader: ObjectReader
    /// The quiet reads that a child's fetch makes in this context.
    private let quiet: QuietReads?
    /// The new and changed objects of the entity, without deleted ones, and without some new ones that do not match.
    private var present: [NSManagedObject] = []
    /// The keys of the changed and deleted objects, by the index of their store.
    ///
    /// The store's values for these objects do not count.
    private var hidden: [KeySet] = []
    /// The keys of hidden objects that only the parent has so far.
    private var hiddenUnsaved = KeySet()
    /// The number of stored objects that may be missing from the store's answer.
    private(set) var changedCount = 0
    /// Whether a change in another entity may change the result; then every object is looked at in memory.
    private(set) var mustEvaluateAll = false

    /// Makes the overlay; `nil` if no pending change can matter, or if the request excludes pending changes.
    ///
    /// - Parameters:
    ///   - context: The context that fetches.
    ///   - plan: The plan for the stores.
    ///   - specification: The request.
    ///   - affected: The stores that are asked; `nil` for all.
    ///   - quiet: The quiet reads that a child's fetch makes in this context.
    init?(
        context: NSManagedObjectContext,
        plan: FetchPlan,
        specification: FetchSpecification,
        affected: [OpenStore]? = nil,
        quiet: QuietReads? = nil
    ) {
        guard specification.includesPendingChanges, !context.changeTracker.objects.isEmpty else { return nil }
        self.context = context
        self.plan = plan
        reader = ObjectReader(quiet)
        self.quiet = quiet
        let related = plan.relatedRootNumbers
        var mayChangeOthers = false
        var isMine: (number: Int, answer: Bool) = (0, false)
        let objects = context.pendingCandidates(for: plan, related: related) ?? context.changeTracker.objects
        for object in objects where object.hasChanges {
            let number = object.layout.number
            if number != isMine.number { isMine = (number, plan.entityNumbers.contains(number)) }
            if isMine.answer, affected?.hold(object, of: context) ?? true {
                if object.flags.isDisjoint(with: .deleted) { present.append(object) }
                if context.isStored(object) || object.key > 0 { hide(object) }
            }
            if !related.isEmpty, related.contains(object.layout.rootNumber) { mayChangeOthers = true }
        }
        mustEvaluateAll = mayChangeOthers
        guard !present.isEmpty || changedCount > 0 || mustEvaluateAll else { return nil }
    }

    private mutating func hide(_ object: NSManagedObject) {
        changedCount += 1
        guard object.key > 0 else {
            hiddenUnsaved.insert(object.key)
            return
        }
        // An object that has only obtained a permanent ID has a key, but no store knows this key.
        let storeIndex = Int(max(0, object.storeIndex))
        while hidden.count <= storeIndex { hidden.append(KeySet()) }
        hidden[storeIndex].insert(object.key)
    }

    /// The number of new and changed objects that match.
    var matchingCount: Int {
        get throws { try plan.matching(readable, reader).count }
    }

    /// The new and changed objects of which a child can have the values.
    ///
    /// A fault may have changed relationships although its row is gone. It keeps them until it is read, but a child cannot
    /// have it.
    private var readable: [NSManagedObject] {
        get throws {
            guard let quiet else { return present }
            return try present.filter { object in try !object.isFault || quiet.row(of: object) != nil }
        }
    }

    /// Whether a store's answer about a row does not count.
    func hides(_ reference: ObjectReference, _ store: OpenStore) -> Bool { hides(reference.key, store.index) }

    /// Whether the parent's answer about an object does not count.
    func hides(_ id: NSManagedObjectID) -> Bool {
        let (key, store) = id.current
        return hides(key, store?.index ?? -1) || (id.temporaryKey != 0 && hiddenUnsaved.contains(id.temporaryKey))
    }

    private func hides(_ key: Int64, _ storeIndex: Int) -> Bool {
        if key < 0 { return hiddenUnsaved.contains(key) }
        return storeIndex >= 0 && storeIndex < hidden.count && hidden[storeIndex].contains(key)
    }

    /// The plan for a store's part of the answer.
    ///
    /// It asks for as many additional rows as may have to be left out. If the store can leave out the changed rows
    /// itself, then it does.
    ///
    /// - Parameter store: The store, if it is the only one.
    /// - Returns: The plan.
    func widened(_ store: OpenStore?) -> FetchPlan {
        var wide = plan.widened(by: changedCount)
        if let store, store.index < hidden.count, !hidden[store.index].isEmpty {
            wide.skipped = SkippedRows(keys: hidden[store.index], wanted: plan.limit > 0 ? plan.end : .max)
        }
        return wide
    }

    /// Adds the changes to a store's answer, which had been asked for with enough rows.
    func fold(into stored: [NSManagedObject]) throws -> [NSManagedObject] {
        let unchanged = changedCount == 0 ? stored : stored.filter { !hides($0.key, Int($0.storeIndex)) }
        let matching = try matching(
            before: plan.limit > 0 && unchanged.count >= plan.end ? unchanged[plan.end - 1] : nil
        )
        return plan.window(
            try plan.merged(unchanged, with: matching, reader: reader, as: { $0 }, object: { unchanged[$0] })
        )
    }

    /// Adds the changes to the references that a store has returned.
    ///
    /// Only those stored objects are read that have to be compared with changed ones, batch by batch.
    ///
    /// - Parameters:
    ///   - stored: The objects that the store or the parent has found.
    ///   - store: The store.
    ///   - unsaved: The found objects that only the parent has so far.
    ///   - batchSize: The number of rows that are read at a time.
    /// - Returns: The references, and those of the changed objects that are not stored yet.
    /// - Throws: Errors of the store.
    func fold(
        into stored: [ObjectReference],
        of store: OpenStore,
        unsaved: [NSManagedObject],
        batchSize: Int
    ) throws -> (references: [ObjectReference], unsaved: [NSManagedObject]) {
        let unchanged = stored.filter { !hides($0, store) }
        let matching = try matching(before: nil)
        let batches = BatchedFetch(
            unchanged,
            of: plan.layout,
            storeIndex: Int32(store.index),
            unsaved: unsaved,
            batchSize: batchSize,
            BatchedFetch.Options()
        )
        let merged = try plan.merged(unchanged, with: matching, reader: reader, as: \.reference) { position in
            let object = batches.object(at: position, in: context)
            if object.isFault, object.current == nil { batches.read(batches.batch(of: position), in: context) }
            return object
        }
        return (plan.window(merged), matching.filter { $0.key < 0 })
    }

    /// The new and changed objects that match, in order, without those after the last object that can be in the
    /// result.
    private func matching(before last: NSManagedObject?) throws -> [NSManagedObject] {
        let matching = try plan.matching(readable, reader)
        guard let sort = plan.sort, let last, matching.count > 1 else { return try plan.sorted(matching, reader) }
        let end = try sort.keys(of: last, reader: reader)
        let cut = try sort.preceding(end, among: matching, reader: reader)
        return try plan.sorted(cut, reader)
    }

    /// The answer after a look at every object in memory.
    func evaluateAll(_ stored: [NSManagedObject]) throws -> [NSManagedObject] {
        let present = try readable
        let candidates = stored.filter { !hides($0.key, Int($0.storeIndex)) } + present
        return try plan.sorted(try plan.matching(candidates, reader), reader)
    }

    func window(_ objects: [NSManagedObject]) -> [NSManagedObject] { plan.window(objects) }
}

extension [OpenStore] {
    /// Whether an object is, or will be once it is saved, in one of the stores.
    fileprivate func hold(_ object: NSManagedObject, of context: NSManagedObjectContext) -> Bool {
        let storeIndex = context.storeIndexForInsertion(of: object)
        return contains { $0.index == Int(storeIndex) }
    }
}

extension NSManagedObjectContext {
    /// The unsaved changes that may matter to a fetch, from the index; `nil` if each of them has to be looked at.
    fileprivate final func pendingCandidates(for plan: FetchPlan, related: Set<Int>) -> [NSManagedObject]? {
        let objects = changeTracker.objects
        guard objects.count >= WorkSize.indexedChanges, let predicate = plan.predicate,
            let question = ValueQuestion(predicate.condition, plan.layout, most: objects.count)
        else { return nil }
        return changeTracker.index.candidates(question, for: plan, related: related, among: objects)
    }
}
