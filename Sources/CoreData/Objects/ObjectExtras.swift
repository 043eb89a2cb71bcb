import StrataRows

/// State that only some managed objects need.
///
/// An object that is only read has none.
///
/// Confined to the queue of the object's context.
final class ObjectExtras {
    // What is unchecked each change or each save of an object goes through: it is confined to one thread at a time, and no access
    // lasts while other code runs.

    /// The row that the object's changes are made upon: what was last fetched or saved.
    ///
    /// `nil` if it has no changed row, or was never saved.
    @exclusivity(unchecked) var base: Row?
    /// The values at the start of the current event, for `changedValuesForCurrentEvent()` and undo; `nil` if the row
    /// was not changed in it, or the object was inserted in it.
    @exclusivity(unchecked) var eventBase: Row?
    /// The to-many relationships that were touched, by their index in the layout.
    @exclusivity(unchecked) var toMany: [ToManyState?]
    /// The to-many relationships changed in the current event, by their index in the layout, as they were at its start; `nil` for
    /// one of which nothing was known.
    @exclusivity(unchecked) private(set) var eventToMany: [(index: Int, state: ToManyState?)] = []
    /// Values of transient properties, by their index in the layout.
    var transients: [Any?] = []
    /// The transient properties that were set since the last save, which a child's save moves up.
    @exclusivity(unchecked) var setTransients = SlotSet()
    /// Values of transformable attributes that their transformer refused, by slot: the save fails and says so.
    @exclusivity(unchecked) var refused: [Int: Any] = [:]
    /// Values of transformable attributes, decoded from `decodedRow`, by slot.
    private var decoded: [Int: Any] = [:]
    /// The values that a fetch of some properties has brought of an object that is a fault.
    var partial: PartialRow?
    /// The row that `decoded` belongs to: code that gives the object another row need not know of it.
    private var decodedRow: RowBuffer?

    /// The sets that show ordered relationships, as long as they are held elsewhere.
    private var orderedSets: [ShownOrderedSet] = []

    init(layout: EntityLayout) {
        toMany = Array(repeating: nil, count: layout.toMany.count)
    }

    /// The decoded value of a transformable attribute, if it was decoded from `row`.
    func decodedValue(_ slot: Int, in row: Row) -> Any? {
        decodedRow === row.buffer ? decoded[slot] : nil
    }

    /// Remembers (or, with `nil`, forgets) what a transformable attribute of `row` holds.
    func setDecoded(_ value: Any?, _ slot: Int, in row: Row) {
        if decodedRow !== row.buffer {
            decoded.removeAll()
            decodedRow = row.buffer
        }
        decoded[slot] = value
    }

    /// Lets the decoded values belong to a copy of the row that they were decoded from.
    func moveDecoded(from row: Row, to copy: Row) {
        if decodedRow === row.buffer { decodedRow = copy.buffer }
    }

    /// Forgets all values of transformable attributes: they are read from the row again.
    func forgetDecoded() {
        decoded.removeAll()
        decodedRow = nil
        refused.removeAll()
    }

    /// Notes what a to-many relationship was before its first change in the event.
    func noteEvent(_ index: Int, _ state: ToManyState?) { eventToMany.append((index, state)) }

    /// Forgets what the to-many relationships were at the start of the event; the next event needs the memory again.
    @inline(__always)
    func endEventToMany() {
        guard !eventToMany.isEmpty else { return }
        for place in eventToMany.indices {
            // First, so that the members are not shared any more.
            eventToMany[place].state = nil
            toMany[eventToMany[place].index]?.gather()
        }
        eventToMany.removeAll(keepingCapacity: true)
    }

    /// Replaces the keys of objects that a save has made permanent.
    func replaceKeys(_ permanent: KeyMap<Int64>) {
        for index in toMany.indices { toMany[index]?.replaceKeys(permanent) }
        for index in eventToMany.indices { eventToMany[index].state?.replaceKeys(permanent) }
    }

    /// Whether a transient property has a value, which no store could give back.
    var holdsTransients: Bool { transients.contains { $0 != nil } }

    /// Drops the values of transient properties.
    func forgetTransients() {
        transients = []
        setTransients = SlotSet()
    }

    /// Turns all to-many relationships into faults; their changes stay.
    func reloadRelationships() {
        for index in toMany.indices { toMany[index]?.turnIntoFault() }
    }

    /// The set that shows an ordered relationship, if it is held elsewhere.
    func orderedSet(_ index: Int) -> RelationshipOrderedSet? { orderedSets.first { $0.index == index }?.set }

    /// Remembers the set that shows an ordered relationship.
    func noteOrderedSet(_ set: RelationshipOrderedSet, _ index: Int) {
        orderedSets.removeAll { $0.index == index || $0.set == nil }
        orderedSets.append(ShownOrderedSet(index: index, set: set))
    }

    /// Has the set that shows an ordered relationship show a change.
    @inline(__always)
    func refreshOrderedSet(_ index: Int) {
        if !orderedSets.isEmpty { orderedSet(index)?.refresh() }
    }

    /// Takes the changes of to-many relationships for stored.
    func commitRelationships() {
        for index in toMany.indices { toMany[index]?.commitChanges() }
    }

    /// Lets go of the collections handed out: they hold their members, and members may hold this object in theirs.
    func forgetCollections() {
        for index in toMany.indices where toMany[index]?.cached != nil { toMany[index]?.cached = nil }
    }
}
