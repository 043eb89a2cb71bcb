import StrataRows

/// State that only some managed objects need.
///
/// An object that is only read has none.
///
/// The state is confined to the queue of the object's context.
final class ObjectExtras {
    // Each change or each save of an object uses the unchecked properties. The state is confined to one thread at a
    // time, and no access lasts while other code runs.

    /// The row under the object's changes: its last fetched or saved values.
    ///
    /// It is `nil` if the object has no changed row, or was never saved.
    @exclusivity(unchecked) var base: Row?
    /// The values at the start of the current event, for `changedValuesForCurrentEvent()` and undo.
    ///
    /// It is `nil` if the row was not changed in the event, or if the object was inserted in the event.
    @exclusivity(unchecked) var eventBase: Row?
    /// The to-many relationships that were used, by their index in the layout.
    @exclusivity(unchecked) var toMany: [ToManyState?]
    /// The to-many relationships that the current event has changed, with their state at its start.
    ///
    /// The index is that in the layout. The state is `nil` if nothing was known of the relationship.
    @exclusivity(unchecked) private(set) var eventToMany: [(index: Int, state: ToManyState?)] = []
    /// The values of transient properties, by their index in the layout.
    var transients: [Any?] = []
    /// The transient properties that were set since the last save; a child's save moves them up to its parent.
    @exclusivity(unchecked) var setTransients = SlotSet()
    /// The values of transformable attributes that their transformer refused, by slot; a save fails with an error for
    /// them.
    @exclusivity(unchecked) var refused: [Int: Any] = [:]
    /// The values of transformable attributes that were decoded from `decodedRow`, by slot.
    private var decoded: [Int: Any] = [:]
    /// The objects without a context that the relationships of this object, which has no context either, lead to; by
    /// their keys.
    var companions: [Int64: NSManagedObject] = [:]
    /// The values that a fetch of some properties has read for an object that is a fault.
    var partial: PartialRow?
    /// The row that `decoded` belongs to; code that gives the object another row need not know about `decoded`.
    private var decodedRow: RowBuffer?

    /// The sets that show ordered relationships, as long as other code holds them.
    private var orderedSets: [ShownOrderedSet] = []

    /// The values that changed transient properties had at the last save, by their index in the layout.
    private var savedTransients: [Int: Any?] = [:]

    init(layout: EntityLayout) {
        toMany = Array(repeating: nil, count: layout.toMany.count)
    }

    /// The decoded value of a transformable attribute, if it was decoded from `row`.
    func decodedValue(_ slot: Int, in row: Row) -> Any? {
        decodedRow === row.buffer ? decoded[slot] : nil
    }

    /// Remembers the decoded value of a transformable attribute of `row`; `nil` forgets it.
    func setDecoded(_ value: Any?, _ slot: Int, in row: Row) {
        if decodedRow !== row.buffer {
            decoded.removeAll()
            decodedRow = row.buffer
        }
        decoded[slot] = value
    }

    /// Moves the decoded values to a copy of the row that they were decoded from.
    func moveDecoded(from row: Row, to copy: Row) {
        if decodedRow === row.buffer { decodedRow = copy.buffer }
    }

    /// Forgets all decoded values of transformable attributes, so that they are read from the row again.
    func forgetDecoded() {
        decoded.removeAll()
        decodedRow = nil
        refused.removeAll()
    }

    /// Notes the state of a to-many relationship before its first change in the event.
    func recordBeforeEvent(index: Int, state: ToManyState?) { eventToMany.append((index, state)) }

    /// Forgets the states of to-many relationships at the start of the event.
    ///
    /// The memory of the list is kept for the next event.
    @inline(__always)
    func endEventToMany() {
        guard !eventToMany.isEmpty else { return }
        for place in eventToMany.indices {
            // This comes first, so that the members are not shared any more.
            eventToMany[place].state = nil
            toMany[eventToMany[place].index]?.gather()
        }
        eventToMany.removeAll(keepingCapacity: true)
    }

    /// Replaces the keys of objects that a save has made permanent.
    func replaceKeys(_ permanent: PermanentKeys) {
        for index in toMany.indices { toMany[index]?.replaceKeys(permanent) }
        for index in eventToMany.indices { eventToMany[index].state?.replaceKeys(permanent) }
    }

    /// Whether a transient property has a value, which no store could return.
    var holdsTransients: Bool { transients.contains { $0 != nil } }

    /// Keeps the value of a transient property before its first change since the last save.
    func keepSavedTransient(_ index: Int) {
        if savedTransients[index] == nil { savedTransients.updateValue(transients[index], forKey: index) }
    }

    /// Whether transient properties have other values than at the last save; a value that cannot be compared counts as
    /// another one.
    var hasChangedTransients: Bool {
        savedTransients.contains { index, saved in
            switch (saved, transients[index]) {
            case (nil, nil): false
            case (let saved?, let now?): (saved as? AnyHashable).map { $0 != now as? AnyHashable } ?? true
            default: true
            }
        }
    }

    /// Gives transient properties the values of the last save again.
    func restoreTransients() {
        for (index, saved) in savedTransients { transients[index] = saved }
    }

    /// Marks the values of transient properties as saved.
    @inline(__always)
    func commitTransients() {
        guard !setTransients.isEmpty else { return }
        setTransients = SlotSet()
        savedTransients = [:]
    }

    /// Drops the values of transient properties.
    func forgetTransients() {
        transients = []
        commitTransients()
    }

    /// Turns all to-many relationships into faults; their changes stay.
    func reloadRelationships() {
        for index in toMany.indices { toMany[index]?.turnIntoFault() }
    }

    /// The set that shows an ordered relationship, if other code holds it.
    func orderedSet(_ index: Int) -> RelationshipOrderedSet? { orderedSets.first { $0.index == index }?.set }

    /// Remembers the set that shows an ordered relationship.
    func setOrderedSet(_ set: RelationshipOrderedSet, at index: Int) {
        orderedSets.removeAll { $0.index == index || $0.set == nil }
        orderedSets.append(ShownOrderedSet(index: index, set: set))
    }

    /// Updates the set that shows an ordered relationship after a change.
    @inline(__always)
    func refreshOrderedSet(_ index: Int) {
        if !orderedSets.isEmpty { orderedSet(index)?.refresh() }
    }

    /// Marks the changes of to-many relationships as stored.
    func commitRelationships() {
        for index in toMany.indices { toMany[index]?.commitChanges() }
    }

    /// Releases the collections that were returned to the program.
    ///
    /// They hold their members, and members may hold this object in their collections.
    func forgetCollections() {
        for index in toMany.indices where toMany[index]?.cached != nil { toMany[index]?.cached = nil }
    }
}
