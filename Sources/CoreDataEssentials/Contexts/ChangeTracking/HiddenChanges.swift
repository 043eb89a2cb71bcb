import StrataRows

/// The keys of changed and deleted objects: what a store or a parent says about these objects does not count.
struct HiddenChanges {
    /// The keys of the objects that are in a store, by the index of their store.
    private(set) var stored: [KeySet] = []
    /// The keys of the objects that only the parent has so far.
    private(set) var unsaved = KeySet()
    /// The number of objects.
    private(set) var count = 0

    /// Adds an object that was not added before.
    mutating func add(key: Int64, storeIndex: Int32) {
        count += 1
        guard key > 0 else {
            unsaved.insert(key)
            return
        }
        // An object that has only obtained a permanent ID has a key, but no store knows this key.
        let storeIndex = Int(max(0, storeIndex))
        while stored.count <= storeIndex { stored.append(KeySet()) }
        stored[storeIndex].insert(key)
    }

    func contains(_ key: Int64, _ storeIndex: Int) -> Bool {
        if key < 0 { return unsaved.contains(key) }
        return storeIndex >= 0 && storeIndex < stored.count && stored[storeIndex].contains(key)
    }
}
