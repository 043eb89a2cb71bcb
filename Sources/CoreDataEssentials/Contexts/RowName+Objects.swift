import StrataRows

extension RowName {
    /// Names the row of an object, whatever instance of the object this is.
    package init(_ object: NSManagedObject) {
        self.init(store: object.storeIndex, root: object.layout.rootNumber, key: object.key)
    }

    /// Names a row of an open store.
    package init(_ store: OpenStore, root: Int, key: Int64) {
        self.init(store: Int32(store.index), root: root, key: key)
    }
}
