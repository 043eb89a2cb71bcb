import Foundation
import StrataRows

// The identity map: at most one object for each row, found by key. It is confined to the context's queue.

extension NSManagedObjectContext {
    /// The frozen model of the coordinator.
    ///
    /// A context without a coordinator stops the program.
    package final var model: FrozenModel {
        @inline(__always) get {
            guard let model = contextModel.frozen else { failWithoutCoordinator() }
            return model
        }
    }

    @inline(never)
    private func failWithoutCoordinator() -> Never {
        fatalError("CoreData: \(describedName) has no persistentStoreCoordinator; set one before you use the context.")
    }

    /// The entity that a class represents in this context's model.
    ///
    /// The program stops if there is none.
    final func requiredEntity(for type: NSManagedObject.Type) -> NSEntityDescription {
        // Usually several objects of one class are made in a row.
        if let last = contextModel.lastInsertion, last.type == type { return last.entity }
        let entity = findEntity(for: type)
        contextModel.lastInsertion = (type, entity)
        return entity
    }

    private func findEntity(for type: NSManagedObject.Type) -> NSEntityDescription {
        guard let entity = model.entity(meantBy: type) else {
            fatalError(
                "CoreData: the model of \(describedName) has no entity of class \(type). Check the class name in the model."
            )
        }
        return entity
    }

    /// The store at an index; any thread may call this.
    package final func openStore(at storeIndex: Int32) -> OpenStore? { coordinator?.openStore(at: Int(storeIndex)) }

    /// The store at an index, for code inside the scope; it takes no lock that other contexts take as well.
    ///
    /// For a pinned context this is the version that the context sees, once the context has read something.
    final func store(at storeIndex: Int32) -> OpenStore? {
        let storeIndex = Int(storeIndex)
        if storeIndex >= 0, storeIndex < pinnedVersion.seenStores.count {
            let seen = pinnedVersion.seenStores[storeIndex]
            guard seen.hasMoved else { return seen }
            pinnedVersion.forgetSeen()
        }
        guard let store = coordinator?.openStore(at: storeIndex) else { return nil }
        while pinnedVersion.seenStores.count <= storeIndex,
            let next = coordinator?.openStore(at: pinnedVersion.seenStores.count)
        {
            pinnedVersion.addSeen(pinnedVersion.stores?.version(of: next) ?? next)
        }
        return storeIndex >= 0 && storeIndex < pinnedVersion.seenStores.count
            ? pinnedVersion.seenStores[storeIndex] : store
    }

    /// The table of one hierarchy in one store, made at its first use.
    final func table(storeIndex: Int32, root: Int) -> ObjectTable<NSManagedObject> {
        if let table = identityMap.table(storeIndex: storeIndex, root: root) { return table }
        let table = identityMap.makeTable(storeIndex: storeIndex, root: root)
        enableNotifications(ofStoreAt: storeIndex)
        return table
    }

    final func forEachRegistered(_ body: (NSManagedObject) -> Void) {
        for table in identityMap.tables { table?.forEach(body) }
        identityMap.temporaryObjects.forEach(body)
    }

    /// Calls `body` with the objects that code other than the map holds, including those with changes.
    ///
    /// A sweep would remove the other objects.
    final func forEachHeld(_ body: (NSManagedObject) -> Void) {
        guard !retainsRegisteredObjects else { return forEachRegistered(body) }
        for table in identityMap.tables { table?.forEachHeldElsewhere(body) }
        identityMap.temporaryObjects.forEachHeldElsewhere(body)
    }

    /// The objects that reference counting would keep if each object held those that its loaded relationships lead
    /// to.
    ///
    /// These are the objects with changes, those that other code holds, rings of objects, and all objects that these
    /// lead to.
    ///
    /// - Complexity: O(number of objects and of their loaded relationships).
    final func reachableObjects() -> [NSManagedObject] {
        var held: [NSManagedObject] = []
        forEachHeld {
            $0.flags.insert(.sought)
            held.append($0)
        }
        /// The objects that only the map holds. The flag is that of those that may still be kept by others.
        var loose: [NSManagedObject] = []
        forEachRegistered { if !$0.flags.contains(.sought), $0.isDisposable { loose.append($0) } }
        held.forEachBorrowed { $0.flags.remove(.sought) }
        guard !loose.isEmpty else { return held }
        loose.forEachBorrowed { $0.flags.insert(.sought) }
        // Most objects are no destination of another one, so they are not in the map.
        var counts = DestinationCounts()
        held.forEachBorrowed { $0.forEachLoadedDestination { counts.add($0) } }
        loose.forEachBorrowed { $0.forEachLoadedDestination { counts.add($0) } }
        var free: [NSManagedObject] = []
        loose.forEachBorrowed { object in
            if counts.isZero(object) { free.append(object) }
            while let object = free.popLast() {
                object.flags.remove(.sought)
                object.forEachLoadedDestination { if counts.subtract($0) { free.append($0) } }
            }
        }
        held += loose.filter { $0.flags.contains(.sought) }
        loose.forEachBorrowed { $0.flags.remove(.sought) }
        return held
    }

    /// The number of relationships that lead to each object that only the map holds.
    private struct DestinationCounts {
        private var counts = KeyMap<Int>()

        private func name(_ object: NSManagedObject) -> Int64 {
            Int64(Int(bitPattern: Unmanaged.passUnretained(object).toOpaque()))
        }

        func isZero(_ object: NSManagedObject) -> Bool {
            object.flags.contains(.sought) && (counts[name(object)] ?? 0) == 0
        }

        mutating func add(_ object: NSManagedObject) {
            guard object.flags.contains(.sought) else { return }
            let name = name(object)
            counts.set((counts[name] ?? 0) + 1, for: name)
        }

        /// Counts a relationship less.
        ///
        /// - Returns: Whether it was the last one that led to the object.
        mutating func subtract(_ object: NSManagedObject) -> Bool {
            let name = name(object)
            guard object.flags.contains(.sought), let left = counts[name] else { return false }
            counts.set(left - 1, for: name)
            return left == 1
        }
    }

    /// The registered object with a key; `nil` if there is none.
    package final func registered(key: Int64, layout: EntityLayout, storeIndex: Int32) -> NSManagedObject? {
        guard key < 0 else {
            return identityMap.table(storeIndex: storeIndex, root: layout.rootNumber)?[key]
        }
        if let object = identityMap.temporaryObjects[key] { return object }
        guard let permanent = identityMap.permanentKeys[key] else { return nil }
        let storeIndex = storeIndex >= 0 ? storeIndex : Int32(coordinator?.storeForInsertion(of: layout)?.index ?? 0)
        return registered(key: permanent, layout: layout, storeIndex: storeIndex)
    }

    /// The registered object that a relationship of `owner` names; `nil` if there is none.
    final func registered(_ reference: ObjectReference, near owner: NSManagedObject) -> NSManagedObject? {
        registered(key: reference.key, layout: layout(of: reference), storeIndex: max(0, owner.storeIndex))
    }

    package final func layout(of reference: ObjectReference) -> EntityLayout {
        let layouts = model.layouts
        // The number came from our own model, or the store that read it has checked it.
        return layouts[reference.entity - 1]
    }

    /// The object that a relationship of `owner` names: the registered object, or else a fault.
    ///
    /// - Returns: `nil` for an unsaved object that does not exist any more.
    @inline(__always)
    final func object(for reference: ObjectReference, near owner: NSManagedObject) -> NSManagedObject? {
        if let found = knownObject(reference, near: owner) { return found }
        return findObject(for: reference, near: owner)
    }

    /// The registered object of a stored row that a relationship of `owner` names; `nil` if a search has to find it.
    @inline(__always)
    final func knownObject(_ reference: ObjectReference, near owner: NSManagedObject) -> NSManagedObject? {
        knownPlace(reference, near: owner)?.takeUnretainedValue()
    }

    /// The same without a counted reference, for callers inside the scope that let no other code run.
    @inline(__always)
    final func knownPlace(_ reference: ObjectReference, near owner: NSManagedObject) -> Unmanaged<NSManagedObject>? {
        guard reference.key > 0, owner.storeIndex >= 0 else { return nil }
        let root = identityMap.rootNumbers[reference.entity &- 1]
        return identityMap.table(storeIndex: owner.storeIndex, root: root)?.uncounted(reference.key)
    }

    @inline(never)
    private func findObject(for reference: ObjectReference, near owner: NSManagedObject) -> NSManagedObject? {
        let layout = layout(of: reference)
        let storeIndex = owner.storeIndex >= 0 ? owner.storeIndex : storeIndexForInsertion(of: owner)
        if let found = registered(key: reference.key, layout: layout, storeIndex: storeIndex) { return found }
        guard reference.key > 0 else { return foreignObject(for: reference, storeIndex: storeIndex) }
        return makeFault(key: reference.key, layout: layout, storeIndex: storeIndex)
    }

    /// The objects that a to-many relationship of `owner` names, without those whose deletion is final.
    final func objects(for references: [ObjectReference], near owner: NSManagedObject) -> [NSManagedObject] {
        var result: [NSManagedObject] = []
        result.reserveCapacity(references.count)
        for reference in references {
            guard let object = object(for: reference, near: owner), !object.flags.contains(.gone) else { continue }
            result.append(object)
        }
        return result
    }

    /// The ID that a relationship of `owner` names; no object is made for it.
    final func id(of reference: ObjectReference, near owner: NSManagedObject) -> NSManagedObjectID {
        if reference.key < 0 {
            let id = temporaryID(reference.key) ?? TemporaryIDs.id(key: reference.key, layout: layout(of: reference))
            return id.latest
        }
        guard let store = store(at: owner.storeIndex >= 0 ? owner.storeIndex : storeIndexForInsertion(of: owner)) else {
            return NSManagedObjectID.leadingNowhere(layout(of: reference))
        }
        return store.ids.id(key: reference.key, layout: layout(of: reference), store: store)
    }

    /// Makes and registers a fault for a stored row.
    package final func makeFault(key: Int64, layout: EntityLayout, storeIndex: Int32) -> NSManagedObject {
        let type = layout.objectClass.type(of: layout.entity)
        return makeFault(key: key, layout: layout, storeIndex: storeIndex, type: type)
    }

    final func makeFault(
        key: Int64,
        layout: EntityLayout,
        storeIndex: Int32,
        type: NSManagedObject.Type
    ) -> NSManagedObject {
        makeFault(
            key: key,
            layout: layout,
            storeIndex: storeIndex,
            type: type,
            flags: .newFault,
            in: table(storeIndex: storeIndex, root: layout.rootNumber)
        )
    }

    /// The same as the other form, for many faults of one hierarchy whose table the caller has found.
    @inline(__always)
    final func makeFault(
        key: Int64,
        layout: EntityLayout,
        storeIndex: Int32,
        type: NSManagedObject.Type,
        flags: ObjectFlags,
        in table: ObjectTable<NSManagedObject>
    ) -> NSManagedObject {
        let object = layout.unmanagedEntity._withUnsafeGuaranteedRef { type.init(entity: $0, insertInto: nil) }
        object.becomeFault(key: key, storeIndex: storeIndex, context: self, flags: flags)
        register(object, in: table)
        return object
    }

    /// Files a stored object.
    @inline(__always)
    final func register(_ object: NSManagedObject, in table: ObjectTable<NSManagedObject>) {
        identityMap.file(object, in: table)
        if identityMap.notifiesStores { notifyStore(of: object, isRegistered: true) }
    }

    /// Files an unsaved object.
    final func registerUnsaved(_ object: NSManagedObject) {
        object.join(self)
        object.assignTemporaryKey()
        object.flags.remove(.detached)
        if ConfinementScope.isChecked { object.flags.insert(.checked) }
        identityMap.temporaryObjects.insert(object, for: object.key)
    }

    /// Moves an object whose row has obtained its permanent key to the stored objects.
    final func refile(_ object: NSManagedObject, key: Int64, storeIndex: Int32) {
        if object.key < 0 { identityMap.temporaryObjects.remove(object.key) }
        object.setPermanentKey(key, storeIndex: storeIndex)
        register(object, in: table(storeIndex: storeIndex, root: object.layout.rootNumber))
    }

    /// Forgets an object.
    ///
    /// The object cannot be used any more, unless it is inserted anew.
    final func unregister(_ object: NSManagedObject) {
        // Code that still holds the object may ask for its ID, which only the context can make.
        _ = object.objectID
        if object.key < 0 {
            identityMap.temporaryObjects.remove(object.key)
        } else {
            let table = identityMap.table(storeIndex: object.storeIndex, root: object.layout.rootNumber)
            if identityMap.remove(object.key, from: table) != nil, identityMap.notifiesStores {
                notifyStore(of: object, isRegistered: false)
            }
        }
        object.leaveContext()
    }

    /// Forgets an object whose deletion is saved.
    ///
    /// Code that holds it can still read it.
    final func bury(_ object: NSManagedObject) {
        object.leaveLooseRelationships()
        // An undo can bring the object back.
        if object.flags.contains(.inserted), undoManager == nil { object.forgetTemporaryURI() }
        unregister(object)
        object.flags.remove([.deleted, .inserted, .updated, .deletePropagated, .ownsRow, .writable])
        object.flags.insert(.gone)
        object.extras?.base = nil
    }

    /// Releases unchanged objects that no other code holds, each time their number has doubled: O(1) for each object.
    final func sweepIfGrown() {
        guard identityMap.isSweepDue else { return }
        sweep()
        identityMap.endSweep()
    }

    /// Releases unchanged objects that no other code holds.
    package final func sweep() {
        guard !retainsRegisteredObjects else { return }
        forEachRegistered { object in
            // Collections that were returned to the program hold their members. They are made again when they are
            // asked for.
            object.extras?.forgetCollections()
        }
        for case let table? in identityMap.tables {
            let count = table.sweep { object in
                guard object.isToBeSwept else { return false }
                if identityMap.notifiesStores { notifyStore(of: object, isRegistered: false) }
                return true
            }
            identityMap.subtractSwept(count)
        }
        forgetUnusedBatches()
    }

    // MARK: - Looking up by ID

    /// The registered object with an ID of this coordinator.
    ///
    /// An unchanged object that no code holds is only here because no sweep has removed it yet. It becomes a fault
    /// again, as if it had been removed and made anew, so that it does not show old values.
    private func lookUp(_ objectID: NSManagedObjectID) -> NSManagedObject? {
        // The ID is read first. If it is permanent by then, then the next call files its object here by the permanent
        // key too.
        let (key, store) = objectID.current
        fileNewlySavedFaults()
        let storeIndex = Int32(store?.index ?? 0)
        makeFaultIfForgotten(key: key, root: objectID.layout.rootNumber, storeIndex: storeIndex)
        return registered(key: key, layout: objectID.layout, storeIndex: storeIndex)
    }

    /// Turns an unchanged object that no code holds into a fault.
    ///
    /// - Returns: Whether there is such an object.
    @discardableResult
    final func makeFaultIfForgotten(key: Int64, root: Int, storeIndex: Int32) -> Bool {
        guard !retainsRegisteredObjects, let table = table(ofKey: key, root: root, storeIndex: storeIndex),
            !table.isHeldElsewhere(key), let object = table[key], object.isDisposable
        else { return false }
        object.turnIntoFault()
        return true
    }

    private func table(ofKey key: Int64, root: Int, storeIndex: Int32) -> ObjectTable<NSManagedObject>? {
        // Only those objects without a permanent key are disposable that belong to contexts above.
        key < 0 ? identityMap.temporaryObjects : identityMap.table(storeIndex: storeIndex, root: root)
    }

    /// Does the work of ``registeredObject(for:)``, which subclasses may override.
    package final func knownObject(for objectID: NSManagedObjectID) -> NSManagedObject? {
        ownID(objectID).flatMap { lookUp($0) }
    }

    /// Does the work of ``object(with:)``, which subclasses may override.
    package final func objectOrFault(with objectID: NSManagedObjectID) -> NSManagedObject {
        guard let objectID = ownID(objectID) else {
            fatalError("CoreData: \(strangeness(of: objectID))")
        }
        if let found = lookUp(objectID) { return found }
        let (key, store) = objectID.current
        if let store { return makeFault(key: key, layout: objectID.layout, storeIndex: Int32(store.index)) }
        if upward != nil { return makeForeignFault(objectID) }
        // This is an unsaved object of another context: its fault can be realised only after it was saved there.
        let type = objectID.layout.objectClass.type(of: objectID.layout.entity)
        let object = type.init(entity: objectID.layout.entity, insertInto: nil)
        object.key = key
        object.setKnownID(objectID)
        registerUnsaved(object)
        object.flags.insert(.fault)
        identityMap.addFaultOfUnsaved(object)
        return object
    }

    /// Files objects that other contexts have saved meanwhile under their permanent keys.
    final func fileNewlySavedFaults() {
        if upward != nil { replaceForeignTemporaryKeys() }
        guard !identityMap.faultsOfUnsaved.isEmpty else { return }
        let promotions = NSManagedObjectID.promotions.load(ordering: .acquiring)
        guard promotions != identityMap.seenPromotions else { return }
        identityMap.seenPromotions = promotions
        let rest = identityMap.faultsOfUnsaved.filter { !file(savedMeanwhile: $0) }
        identityMap.keepFaultsOfUnsaved(rest)
    }

    /// Files a fault for an unsaved object of another context, if the object was saved meanwhile.
    ///
    /// - Returns: Whether the fault no longer has to wait.
    private func file(savedMeanwhile object: NSManagedObject) -> Bool {
        guard object.context === self, object.key < 0, object.flags.isDisjoint(with: .changed) else { return true }
        let store = object.objectID.current.store
        guard store != nil else { return false }
        // As long as the ID was temporary, it did not show which coordinator it belongs to.
        guard let own = ownID(object.objectID), case (let key, let store?) = own.current else { return false }
        // The fault was made for the other coordinator's model.
        guard own.layout === object.layout else { return true }
        object.setKnownID(own)
        guard registered(key: key, layout: object.layout, storeIndex: Int32(store.index)) == nil else { return true }
        refile(object, key: key, storeIndex: Int32(store.index))
        object.current = nil
        return true
    }

    /// Does the work of ``existingObject(with:)``, which subclasses may override.
    final func readObject(with objectID: NSManagedObjectID) throws -> NSManagedObject {
        guard let objectID = ownID(objectID) else {
            throw Self.missing(objectID, strangeness(of: objectID)).marked(.request)
        }
        let known = lookUp(objectID)
        if let known, !known.isFault {
            if let error = failedReads.error(ofWrittenRowOf: known) { throw error }
            if known.flags.isDisjoint(with: [.inaccessible, .gone]) { return known }
            // The row may exist again. Changes that were made over unreadable values go away only with a refresh.
            if known.isUpdated || objectID.current.store?.isOpen == false { throw Self.missing(objectID) }
        }
        if upward != nil { return try existingObjectInTree(objectID, known) }
        let (key, store) = objectID.current
        guard key > 0, let store else { throw Self.missing(objectID) }
        let prefetched = known.flatMap { $0.isFault ? $0.current : nil }
        guard let row = try newestRow(key: key, layout: objectID.layout, store: store, prefetched: prefetched) else {
            throw Self.missing(objectID)
        }
        let object = known ?? makeFault(key: key, layout: row.layout, storeIndex: Int32(store.index))
        fill(object, row)
        return object
    }

    /// Whether the row of an object that was deleted here exists again; if so, the object shows the row.
    ///
    /// - Throws: An error of the store: then it is not known whether the row exists.
    /// - Complexity: Reads the row.
    final func isBack(_ object: NSManagedObject) throws -> Bool {
        do {
            return try readObject(with: object.objectID) === object
        } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity {
            return false
        }
    }

    static func missing(_ id: NSManagedObjectID, _ reason: String? = nil) -> CocoaError {
        let text =
            reason
            ?? "There is no object \(id.uriRepresentation().absoluteString) in its store: it was deleted, or never saved."
        return CocoaError.described(
            .managedObjectReferentialIntegrity,
            userInfo: [NSLocalizedDescriptionKey: text, NSAffectedObjectsErrorKey: [id]]
        )
    }

    /// Whether a store, if there is one, is one of this context's coordinator.
    final func isOwn(_ store: OpenStore?) -> Bool {
        guard let store, let coordinator else { return true }
        return store.owner == ObjectIdentifier(coordinator)
    }

    /// The ID in this context's coordinator for the row of an ID of any coordinator.
    ///
    /// - Returns: The present ID of the object; `nil` if the coordinator does not have the store open.
    final func ownID(_ id: NSManagedObjectID) -> NSManagedObjectID? {
        let id = id.latest
        if isOwn(id.current.store) { return id }
        return coordinator?.managedObjectID(forURIRepresentation: id.uriRepresentation())
    }

    /// The text of a message about an ID that ``ownID(_:)`` finds nothing for.
    private func strangeness(of id: NSManagedObjectID) -> String {
        """
        \(id) belongs to another coordinator than \(describedName), and to a store that is not open in this context's. \
        Add that store to the context's coordinator, or use a context of the other one.
        """
    }
}

extension NSManagedObject {
    /// Calls `body` with the registered objects that loaded relationships of this object lead to; loads nothing.
    fileprivate final func forEachLoadedDestination(_ body: (NSManagedObject) -> Void) {
        guard !isFault, let context else { return }
        if let row = current {
            for slot in layout.referenceSlots {
                if let destination = row.reference(slot).flatMap({ context.registered($0, near: self) }) {
                    body(destination)
                }
            }
        }
        for state in extras?.toMany ?? [] {
            for member in state?.content ?? [] {
                if let destination = context.registered(member, near: self) { body(destination) }
            }
        }
    }

    /// Whether nothing is lost when the object is released, provided that no code holds it.
    final var isDisposable: Bool {
        flags.isDisjoint(with: [.inserted, .updated, .deleted, .conflictDetection, .gone])
    }

    /// Whether a sweep removes the object; no code holds it.
    ///
    /// A prefetched object is about to be used, so it is spared once.
    fileprivate final var isToBeSwept: Bool {
        if flags.contains(.prefetched) {
            flags.remove(.prefetched)
            return flags.contains(.gone)
        }
        return isDisposable || flags.contains(.gone)
    }
}
