import StrataLocks
import StrataPredicates
import StrataRows

/// The pending changes of a context by the values of attributes, for fetches that look for a value again and again.
///
/// Without it, each fetch looks at each pending change. So a program that looks for an object before it inserts one would
/// take a time that grows with the square of the number of its insertions.
///
/// The index follows the list of changes. It is made when an attribute is looked for a second time, and each look-up
/// brings it up to date:
///
/// - Objects at the end of the list are added.
/// - An object that has changed since is noted anew. It has called `outdateInIndex()` when it lost the flag `indexed`.
/// - If the list is rewritten, as by a save or a roll-back, then nothing is kept.
///
/// Invariant: after ``update(with:of:)`` each object of the list is noted as it is.
///
/// This is confined to the context's queue. Members call no code of users, so no access lasts while such code runs.
struct PendingIndex {
    /// What is noted of one object of the list.
    private struct Entry: Equatable {
        let root: Int
        /// Whether the object has unsaved changes.
        let isChanged: Bool
        /// Whether the object is new or changed, and not to be deleted.
        let isPresent: Bool
        /// The key under which a store or the parent has the object; 0 if none has it.
        let storedKey: Int64
        let storeIndex: Int32

        init(_ object: NSManagedObject, of context: NSManagedObjectContext) {
            root = object.layout.rootNumber
            isChanged = object.hasChanges
            isPresent = isChanged && object.flags.isDisjoint(with: .deleted)
            let isStored = isChanged && (object.key > 0 || context.isStored(object))
            storedKey = isStored ? object.key : 0
            storeIndex = object.storeIndex
        }

        /// Whether the same row is hidden from fetches.
        func hidesSame(as other: Entry) -> Bool {
            storedKey == other.storedKey && (storedKey == 0 || storeIndex == other.storeIndex)
        }
    }

    /// An attribute of an entity.
    private struct Place: Hashable {
        let entity: Int
        let slot: Int
    }

    private var entries: [Entry] = []
    private var positions: [ObjectIdentifier: Int32] = [:]
    /// The noted objects that have changed since.
    private var outdated: [NSManagedObject] = []
    /// The number of changed objects, by the root of their hierarchy.
    private var changedCounts: [Int: Int] = [:]
    private var hidden: [Int: HiddenChanges] = [:]
    /// The attributes whose values are kept.
    ///
    /// If it is empty, then nothing else is kept.
    private var values: [PendingValues] = []
    /// The attributes that were looked for.
    private var asked: Set<Place> = []

    /// The most attributes whose values are kept.
    private static let mostAttributes = 8

    init() {}

    /// Notes that an object has changed, or is about to.
    mutating func outdate(_ object: NSManagedObject) {
        if !values.isEmpty { outdated.append(object) }
    }

    /// Forgets everything.
    mutating func forget() {
        if !asked.isEmpty { self = PendingIndex() }
    }

    // MARK: - Looking up

    /// The answer for one fetch.
    struct Answer {
        /// The pending objects that may match, in the order of the list.
        let candidates: [NSManagedObject]
        /// The stored objects of the hierarchy that are changed or to be deleted.
        let hidden: HiddenChanges
    }

    /// Looks for the pending changes that matter to a fetch.
    ///
    /// - Parameters:
    ///   - question: What the predicate says about single values.
    ///   - plan: The plan of the fetch.
    ///   - related: The roots of other entities whose changes may change the result.
    ///   - objects: The list of changes.
    ///   - context: The context of the index.
    /// - Returns: The answer; `nil` if each change has to be looked at.
    mutating func answer(
        _ question: ValueQuestion,
        for plan: FetchPlan,
        related: Set<Int>,
        among objects: [NSManagedObject],
        of context: NSManagedObjectContext
    ) -> Answer? {
        guard keep(question.attributes, of: plan.layout, objects) else { return nil }
        update(with: objects, of: context)
        guard !related.contains(where: { changedCounts[$0, default: 0] > 0 }) else { return nil }
        var candidates: [NSManagedObject] = []
        var last: Int32 = -1
        for position in (positions(question, plan.layout, atMost: .max) ?? []).sorted() where position != last {
            last = position
            let object = objects[Int(position)]
            if plan.entityNumbers.contains(object.layout.number) { candidates.append(object) }
        }
        return Answer(candidates: candidates, hidden: hidden[plan.layout.rootNumber] ?? HiddenChanges())
    }

    /// The positions of the objects that may fulfil a question; `nil` if there are more than `limit`.
    private func positions(_ question: ValueQuestion, _ layout: EntityLayout, atMost limit: Int) -> [Int32]? {
        switch question {
        case .isOne(let codes, let attribute):
            // ``keep(_:of:_:)`` has made it.
            return values[kept(attribute, of: layout).unsafelyUnwrapped].positions(of: codes, atMost: limit)
        case .all(let parts):
            // Each part has all objects that match, so the shortest answer does, and no part is followed much further.
            var reach = 16
            while true {
                for part in parts {
                    if let found = positions(part, layout, atMost: min(reach, limit)) { return found }
                }
                if reach >= limit { return nil }
                reach *= 8
            }
        case .any(let parts):
            var all: [Int32] = []
            for part in parts {
                guard let found = positions(part, layout, atMost: limit - all.count) else { return nil }
                all += found
            }
            return all
        }
    }

    // MARK: - Keeping

    /// Makes sure that the values of attributes are kept.
    ///
    /// - Returns: Whether they are; `false` if one of them is looked for the first time.
    private mutating func keep(
        _ attributes: [PredicateAttribute],
        of layout: EntityLayout,
        _ objects: [NSManagedObject]
    ) -> Bool {
        let missing = attributes.filter { kept($0, of: layout) == nil }
        if missing.isEmpty { return true }
        var areNew = false
        for attribute in missing {
            if asked.count >= 4 * Self.mostAttributes { asked.removeAll() }
            if asked.insert(Place(entity: layout.number, slot: attribute.slot)).inserted { areNew = true }
        }
        guard !areNew, attributes.count <= Self.mostAttributes else { return false }
        if values.count + missing.count > Self.mostAttributes {
            startAgain(withValues: false)
            return keep(attributes, of: layout, objects)
        }
        for attribute in missing where kept(attribute, of: layout) == nil {
            var added = PendingValues(attribute, of: layout)
            for (position, entry) in entries.enumerated() {
                added.note(objects[position], isPresent: entry.isPresent, at: position)
            }
            values.append(added)
        }
        return true
    }

    /// The position in `values` of those of an attribute; `nil` if they are not kept.
    private func kept(_ attribute: PredicateAttribute, of layout: EntityLayout) -> Int? {
        values.firstIndex { $0.layout === layout && $0.attribute.slot == attribute.slot }
    }

    /// Brings the index up to date with the list of changes.
    private mutating func update(with objects: [NSManagedObject], of context: NSManagedObjectContext) {
        if values.contains(where: \.isWorn) { startAgain(withValues: true) }
        let changed = outdated
        outdated.removeAll(keepingCapacity: changed.count < 64)
        for object in changed {
            // An object that is not in the list is noted if it gets there.
            guard let position = positions[ObjectIdentifier(object)] else { continue }
            guard note(object, at: Int(position), of: context) else {
                // Keys cannot be taken out of a set, so the index is made anew.
                startAgain(withValues: true)
                break
            }
        }
        for position in entries.count..<objects.count {
            let object = objects[position]
            positions[ObjectIdentifier(object)] = Int32(position)
            _ = note(object, at: position, of: context)
        }
        checkInvariants(with: objects, of: context)
    }

    /// Notes an object as it is.
    ///
    /// - Returns: Whether that is possible.
    private mutating func note(_ object: NSManagedObject, at position: Int, of context: NSManagedObjectContext) -> Bool
    {
        let entry = Entry(object, of: context)
        if position == entries.count {
            entries.append(entry)
            if entry.isChanged { changedCounts[entry.root, default: 0] += 1 }
            hide(entry)
        } else {
            let former = entries[position]
            if former.storedKey != 0, !former.hidesSame(as: entry) { return false }
            entries[position] = entry
            if former.isChanged != entry.isChanged { changedCounts[entry.root, default: 0] += entry.isChanged ? 1 : -1 }
            if former.storedKey == 0 { hide(entry) }
        }
        for index in values.indices { values[index].note(object, isPresent: entry.isPresent, at: position) }
        // The next write takes the slow path, and outdates the object.
        object.flags.remove(.writable)
        object.flags.insert(.indexed)
        return true
    }

    private mutating func hide(_ entry: Entry) {
        guard entry.storedKey != 0 else { return }
        hidden[entry.root, default: HiddenChanges()].add(key: entry.storedKey, storeIndex: entry.storeIndex)
    }

    /// Drops what is noted of objects.
    private mutating func startAgain(withValues keepsValues: Bool) {
        var fresh = PendingIndex()
        fresh.asked = asked
        if keepsValues { fresh.values = values.map { PendingValues($0.attribute, of: $0.layout) } }
        self = fresh
    }

    // MARK: - Invariants

    /// Stops a debug build if an object of the list is not noted as it is.
    ///
    /// Only short lists are checked, since the check is made for each look-up.
    private func checkInvariants(with objects: [NSManagedObject], of context: NSManagedObjectContext) {
        #if DEBUG
        guard objects.count <= 256 else { return }
        for (position, object) in objects.enumerated() {
            let entry = entries[position]
            assert(entry == Entry(object, of: context), "CoreData: the index has outdated facts of \(object.objectID).")
            for kept in values {
                assert(
                    kept.isRight(about: object, isPresent: entry.isPresent, at: position),
                    "CoreData: the index has another value for \(kept.attribute.name) of \(object.objectID)."
                )
            }
        }
        #endif
    }
}
