import StrataPredicates
import StrataRows

/// The new objects of a context by the values of attributes, for fetches that look for a value again and again.
///
/// Without it, each fetch looks at each unsaved object. So a program that looks for an object before it inserts one would
/// take a time that grows with the square of the number of its insertions.
///
/// The index follows the list of changes. It is made when an attribute is looked for a second time, and each look-up
/// brings it up to date:
///
/// - Objects at the end of the list are added.
/// - An object whose values have changed since is noted anew. It has called `outdateInIndex()` when it lost the flag
///   `indexed`.
/// - If the list is rewritten, as by a save or a roll-back, then nothing is kept.
///
/// It leaves out objects only because of their values. Whether an object counts otherwise, for example because it was
/// deleted, is for the fetch to see. An object that a store or a parent may have is never left out.
///
/// This is confined to the context's queue. Members call no code of users, so no access lasts while such code runs.
struct PendingIndex {
    /// An attribute of an entity.
    private struct Place: Hashable {
        let entity: Int
        let slot: Int
    }

    /// Whether each noted object is one of `others`, by position.
    private var isOther: [Bool] = []
    /// The positions of the objects that are not new, which every look-up includes.
    private var others: [Int32] = []
    /// The roots of the hierarchies that have new objects.
    private var newRoots: Set<Int> = []
    private var positions: [ObjectIdentifier: Int32] = [:]
    /// The noted objects that have changed since.
    private var outdated: [NSManagedObject] = []
    /// The attributes whose values are kept.
    ///
    /// If it is empty, then nothing else is kept.
    private var values: [PendingValues] = []
    /// The attributes that were looked for.
    private var asked: Set<Place> = []

    /// The most attributes whose values are kept.
    private static let mostAttributes = 32

    init() {}

    /// Notes that an object has changed, or is about to.
    mutating func outdate(_ object: NSManagedObject) {
        // An object that has left the list may still have the flag. It must not be held, so that it can be released.
        if positions[ObjectIdentifier(object)] != nil { outdated.append(object) }
    }

    /// Forgets everything.
    mutating func forget() {
        if !asked.isEmpty { self = PendingIndex() }
    }

    // MARK: - Looking up

    /// The objects of the list that may matter to a fetch, in their order.
    ///
    /// - Parameters:
    ///   - question: What the predicate says about single values.
    ///   - plan: The plan of the fetch.
    ///   - related: The roots of other entities whose changes may change the result.
    ///   - objects: The list of changes.
    /// - Returns: The objects; `nil` if each change has to be looked at.
    /// - Complexity: O(number of objects that fulfil the question, that are not new, and that have changed since the last
    ///   call), amortised.
    mutating func candidates(
        _ question: ValueQuestion,
        for plan: FetchPlan,
        related: Set<Int>,
        among objects: [NSManagedObject]
    ) -> [NSManagedObject]? {
        guard keep(question.attributes, of: plan.layout, objects) else { return nil }
        update(with: objects)
        guard newRoots.isDisjoint(with: related) else { return nil }
        let found = positions(question, plan.layout, atMost: .max) ?? []
        var result: [NSManagedObject] = []
        var last: Int32 = -1
        for position in (found + others).sorted() where position != last {
            last = position
            result.append(objects[Int(position)])
        }
        return result
    }

    /// The positions of the new objects that may fulfil a question; `nil` if there are more than `limit`.
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
        for attribute in missing {
            var added = PendingValues(attribute, of: layout)
            for (position, isOther) in isOther.enumerated() {
                added.note(objects[position], isPresent: !isOther, at: position)
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
    private mutating func update(with objects: [NSManagedObject]) {
        if values.contains(where: \.isWorn) { startAgain(withValues: true) }
        let changed = outdated
        outdated.removeAll(keepingCapacity: changed.count < 64)
        for object in changed {
            // An object that is not in the list is noted if it gets there.
            if let position = positions[ObjectIdentifier(object)] { note(object, at: Int(position)) }
        }
        for position in isOther.count..<objects.count {
            positions[ObjectIdentifier(objects[position])] = Int32(position)
            note(objects[position], at: position)
        }
        checkInvariants(with: objects)
    }

    /// Notes an object as it is.
    private mutating func note(_ object: NSManagedObject, at position: Int) {
        let isNew = object.key < 0 && object.flags.contains(.inserted)
        if position == isOther.count {
            isOther.append(false)
            if isNew { newRoots.insert(object.layout.rootNumber) }
        }
        if !isNew, !isOther[position] {
            isOther[position] = true
            others.append(Int32(position))
        }
        for index in values.indices { values[index].note(object, isPresent: !isOther[position], at: position) }
        guard !isOther[position] else { return }
        // The next write takes the slow path, and outdates the object.
        object.flags.remove(.writable)
        object.flags.insert(.indexed)
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
    private func checkInvariants(with objects: [NSManagedObject]) {
        #if DEBUG
        guard objects.count <= 256 else { return }
        for (position, object) in objects.enumerated() {
            assert(
                isOther[position] || object.key < 0 && (object.flags.contains(.inserted) || !object.hasChanges),
                "CoreData: the index takes \(object.objectID) for a new object."
            )
            for kept in values {
                assert(
                    kept.isRight(about: object, isPresent: !isOther[position], at: position),
                    "CoreData: the index has another value for \(kept.attribute.name) of \(object.objectID)."
                )
            }
        }
        #endif
    }
}
