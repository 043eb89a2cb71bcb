/// What tells a row from all others of a context's stores: its store, the root of its hierarchy, and its key.
struct RowName: Hashable {
    /// -1 under a temporary key, which is unique in the process.
    let storeSlot: Int32
    let root: Int
    let key: Int64

    init(storeSlot: Int32, root: Int, key: Int64) {
        self.storeSlot = key < 0 ? -1 : storeSlot
        self.root = root
        self.key = key
    }

    /// The row that an object stands for, whatever instance it is.
    init(_ object: NSManagedObject) {
        self.init(storeSlot: object.storeSlot, root: object.layout.rootNumber, key: object.key)
    }
}
