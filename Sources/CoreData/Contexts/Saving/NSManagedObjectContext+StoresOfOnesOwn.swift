// What a store of one's own asks of the context that saves into it, in its own words.

extension NSManagedObjectContext {
    /// The objects that the save may have to write, in the order of their first change.
    final var changedList: [NSManagedObject] { changeTracker.objects }

    /// The index of the store that an object is saved into.
    final func storeSlotForInsertion(of object: NSManagedObject) -> Int32 { storeIndexForInsertion(of: object) }

    /// The registered object of a key, if there is one.
    final func registered(key: Int64, layout: EntityLayout, storeSlot: Int32) -> NSManagedObject? {
        registered(key: key, layout: layout, storeIndex: storeSlot)
    }
}

extension OpenStore {
    /// The store's index.
    var slot: Int { index }
}
