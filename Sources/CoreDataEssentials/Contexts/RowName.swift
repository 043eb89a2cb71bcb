/// The name of a row among all rows of a context's stores: its store, the root of its hierarchy, and its key.
package struct RowName: Hashable {
    /// -1 for a temporary key, which is unique in the process.
    let storeIndex: Int32
    let root: Int
    let key: Int64

    init(storeIndex: Int32, root: Int, key: Int64) {
        self.storeIndex = key < 0 ? -1 : storeIndex
        self.root = root
        self.key = key
    }

    /// Names the row of an object, whatever instance of the object this is.
    package init(_ object: NSManagedObject) {
        self.init(storeIndex: object.storeIndex, root: object.layout.rootNumber, key: object.key)
    }
}
