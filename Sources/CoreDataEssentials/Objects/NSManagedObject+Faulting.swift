import Foundation
import StrataRows

extension NSManagedObject {
    /// The row to read.
    ///
    /// A fault fires, and confinement is checked if that is switched on.
    ///
    /// - Parameter slot: The slot to read, for the error if the row is missing; -1 for no particular slot.
    /// - Returns: The row.
    @inline(__always)
    final func readableRow(_ slot: Int = -1) -> Row {
        if !flags.isDisjoint(with: .slowRead) { return Row(shared: slowlyReadableRow(slot).takeUnretainedValue()) }
        // An object that is not a fault always has a row.
        return current.unsafelyUnwrapped
    }

    /// The slow path of a read: it uses the values of a fetch of some properties, or else loads the whole object.
    ///
    /// The object holds the row until it is next written to or released. Each first read of an object comes here, so
    /// no references are counted.
    @inline(never)
    final func slowlyReadableRow(_ slot: Int) -> Unmanaged<RowBuffer> {
        if slot >= 0, heldRow == nil, flags.contains(.fault), flags.isDisjoint(with: .awaitsBatch),
            let partial = extras?.partial, partial.slots.contains(slot)
        {
            assertConfined(propertyName(slot))
            return Unmanaged.passUnretained(partial.row.buffer)
        }
        prepareToRead(slot)
        // `prepareToRead` always provides a row.
        return heldRow.unsafelyUnwrapped
    }

    /// The slow path of a read: it checks confinement and realises a fault.
    @inline(never)
    final func prepareToRead(_ slot: Int = -1) {
        if flags.contains(.detached) { return prepareDetached() }
        assertConfined(propertyName(slot))
        if flags.contains(.fault) { fireFault(triggeredBy: slot) }
    }

    /// The name of the property in a slot for messages; for -1, the object as a whole.
    private func propertyName(_ slot: Int) -> String {
        layout.slots.indices.contains(slot) ? "property \"\(layout.slots[slot].name)\"" : "a property"
    }

    /// Gives a row to an object outside any context.
    private func prepareDetached() {
        guard current == nil else { return }
        if flags.isDisjoint(with: [.fault, .gone]) {
            // The object was never inserted: it has the model's defaults, which are changed in place.
            current = layout.defaults.copy()
            flags.insert(.ownsRow)
        } else {
            // A fault whose context has ended has lost its values: they read nil, zero or empty.
            current = Row(layout: layout, key: key)
        }
    }

    /// Stops the program if the current thread is not inside the context's scope.
    @inline(__always)
    final func assertConfined(_ member: @autoclosure () -> String) {
        guard flags.contains(.checked), let context else { return }
        context.assertCurrent(member(), object: self)
    }

    /// Loads the values of a fault.
    ///
    /// - Parameter slot: The slot whose value is read; -1 for no particular slot.
    package final func fireFault(triggeredBy slot: Int = -1) {
        guard flags.contains(.fault), let unmanagedContext else { return }
        if flags.isDisjoint(with: .awaitsBatch), let heldRow,
            unmanagedContext._withUnsafeGuaranteedRef({ $0.isNewest(heldRow, storeIndex: storeIndex) })
        {
            return realise()
        }
        let context = unmanagedContext.takeUnretainedValue()
        switch context.rowForFault(self, triggeredBy: slot) {
        case .found(let row): context.fill(self, row)
        case .missing:
            let property = layout.slots.indices.contains(slot) ? layout.slots[slot].property : nil
            becomeInaccessible(in: context, triggeredBy: property)
        case .unreadable:
            // The object is still a fault, so the next access tries again. Until then it needs values. Their version
            // is one that no save would take for the stored one.
            current = Row(layout: layout, key: key, version: -1)
        }
    }

    /// Makes a new object the fault of a stored row.
    ///
    /// The caller files the object.
    @inline(__always)
    final func becomeFault(key: Int64, storeIndex: Int32, context: NSManagedObjectContext, flags: ObjectFlags) {
        self.context = context
        self.key = key
        self.storeIndex = storeIndex
        self.flags = flags
    }

    /// Makes `row` the values of the object, which is then no longer a fault.
    final func realise(_ row: Row) {
        current = row
        realise()
    }

    /// Makes the row that the object already has its values.
    final func realise() {
        if let extras {
            extras.partial = nil
            // A fault has no transient values, unless its row could not be read before. Then accessors have computed
            // them from missing values.
            if flags.contains(.fault) { extras.forgetTransients() }
        }
        flags.remove([.fault, .inaccessible, .mergedFault])
        flags.insert(.awaking)
        awakeFromFetch()
        flags.remove(.awaking)
    }

    /// Handles a row that has gone: the properties read nil, zero or empty.
    ///
    /// If the context wants it so, then the object counts as deleted.
    private func becomeInaccessible(in context: NSManagedObjectContext, triggeredBy property: NSPropertyDescription?) {
        let isHandled = context.shouldHandleInaccessibleFault(self, for: objectID, triggeredByProperty: property)
        // The program's code may itself have realised the fault or dropped the object.
        guard flags.contains(.fault), self.context != nil else {
            if current == nil { current = Row(layout: layout, key: key) }
            return
        }
        current = Row(layout: layout, key: key)
        flags.remove(.fault)
        flags.insert(.inaccessible)
        if isHandled {
            context.markAsInaccessible(self)
        } else {
            context.handleInaccessibleFault(of: self)
        }
    }

    /// Forgets what a fault knows of its row, so that the next access reads the row.
    ///
    /// If only the whole row were forgotten, then the values of an earlier fetch of some properties would show again.
    final func forgetRow() {
        current = nil
        extras?.partial = nil
    }

    /// Forgets what a fault knows of its row and of its members; pending changes of relationships stay.
    final func forgetWhatWasRead() {
        forgetRow()
        extras?.reloadRelationships()
    }

    /// Reads the whole row of a fault that has values of a fetch of some properties.
    ///
    /// A change is made on the row that is stored, and these values may be older.
    ///
    /// - Parameter slot: The slot that is about to be changed.
    @inline(__always)
    final func completeRow(for slot: Int) {
        if flags.contains(.fault), extras?.partial != nil { fireFault(triggeredBy: slot) }
    }

    /// Drops the values and makes the object a fault.
    ///
    /// Pending changes, if any, are lost.
    final func turnIntoFault() {
        guard !flags.contains(.fault) else {
            // Values that fetches have read in advance are dropped too.
            extras?.partial = nil
            extras?.reloadRelationships()
            return
        }
        willTurnIntoFault()
        current = nil
        extras = nil
        flags.remove([.ownsRow, .inaccessible, .writable])
        flags.insert(.fault)
        didTurnIntoFault()
    }

    /// Drops the values if nothing is lost; the next access reads them again.
    final func letGoOfValues() {
        guard isDisposable, flags.isDisjoint(with: [.awaking, .inaccessible, .detached]),
            extras?.holdsTransients != true
        else { return }
        guard flags.contains(.fault) else { return turnIntoFault() }
        // These are values that were read in advance.
        current = nil
        extras = nil
    }

    /// Removes the object from its context for good.
    ///
    /// Loaded values stay readable; relationships read nil or empty.
    final func leaveContext() {
        context = nil
        flags.insert(.detached)
        flags.remove([.writable, .checked])
        guard let extras else { return }
        extras.forgetCollections()
        // A transient relationship holds its destination, which may hold this object.
        for slot in layout.transients where slot.property is NSRelationshipDescription {
            if slot.index < extras.transients.count { extras.transients[slot.index] = nil }
        }
    }

    /// Lets go of the temporary ID of an object that was inserted here, was never saved, and is given up.
    ///
    /// The parent of the context does not have the object.
    final func forgetTemporaryURI() {
        if key < 0 { TemporaryIDs.forget(key) }
    }

    /// Removes the object from a context that ends; its changes are dropped, since they cannot be saved any more.
    final func outliveContext() {
        let isNew = key < 0 && flags.contains(.inserted)
        if isNew { forgetTemporaryURI() }
        leaveContext()
        flags = flags.intersection([.fault, .ownsRow, .inaccessible, .gone, .detached])
        // A stored object cannot be inserted anew, because its row already exists in the store or in the parent.
        if !isNew { flags.insert(.gone) }
    }

    /// The extras, made at the first use.
    final var writableExtras: ObjectExtras {
        if let extras { return extras }
        let made = ObjectExtras(layout: layout)
        extras = made
        return made
    }

    /// The row under the object's changes: the last fetched or saved values; `nil` for a fault or a new object.
    final var baseRow: Row? {
        if flags.contains(.ownsRow) { return extras?.base }
        if flags.contains(.inserted) { return nil }
        return current
    }

    // MARK: - Public

    /// Whether a to-many relationship is not loaded yet; for a to-one relationship, whether its destination is a
    /// fault.
    ///
    /// The call loads nothing.
    ///
    /// ```swift
    /// print(venue.hasFault(forRelationshipNamed: "city"))
    /// ```
    ///
    /// - Parameter key: The name of a relationship.
    /// - Returns: True if reading the relationship would go to the row cache or to the store.
    public final func hasFault(forRelationshipNamed key: String) -> Bool {
        assertConfined(#function)
        switch layout.places[key] {
        case .toMany(let index):
            // A new object has no members in the store to load.
            if flags.contains(.inserted) || flags.contains(.detached) { return false }
            return extras?.toMany[index]?.isFault ?? true
        case .slot(let index) where layout.slots[index].kind == .reference:
            guard !isFault else { return true }
            guard let reference = readableRow().reference(layout.slots[index]) else { return false }
            guard let context else { return destination(reference)?.isFault ?? true }
            return context.registered(reference, near: self)?.isFault ?? true
        default:
            return false
        }
    }

    /// The IDs of a to-many relationship's members, in order if it is ordered; no objects are made.
    ///
    /// The result is empty for a relationship that the entity lacks.
    ///
    /// ```swift
    /// print(city.objectIDs(forRelationshipNamed: "venues").count)  // fills no fault
    /// ```
    ///
    /// - Parameter key: The name of a to-many relationship.
    /// - Returns: The IDs; empty for a relationship without members.
    public final func objectIDs(forRelationshipNamed key: String) -> [NSManagedObjectID] {
        assertConfined(#function)
        guard let slot = layout.toMany(named: key) else { return [] }
        guard let context else { return members(slot).map(\.objectID) }
        return loadedMembers(slot).compactMap { reference in
            if context.registered(reference, near: self)?.flags.contains(.gone) == true { return nil }
            return context.id(of: reference, near: self)
        }
    }

    /// Announces a read of a property; a fault fires.
    ///
    /// ```swift
    /// venue.willAccessValue(forKey: "name")
    /// print(venue.primitiveValue(forKey: "name") as? String ?? "")
    /// venue.didAccessValue(forKey: "name")
    /// ```
    ///
    /// - Parameter key: The property; `nil` for the object as a whole.
    public final func willAccessValue(forKey key: String?) {
        guard flags.contains(.fault) else { return }
        prepareToRead(key.flatMap { layout.slot(named: $0)?.index } ?? -1)
        // The object's context was reset: the object has values to read now, which are nil, zero and empty.
        if flags.contains(.detached) { flags.remove(.fault) }
    }

    /// Announces that a property was read.
    ///
    /// The method has no effect; it exists for code from other platforms.
    ///
    /// - Parameter key: Ignored.
    public final func didAccessValue(forKey key: String?) {}
}
