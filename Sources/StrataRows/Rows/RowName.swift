/// The name of a row: its store, the root of its hierarchy, and its key.
///
/// Whatever has to find rows again by what they are, and not by what they hold, keeps these names. Engines, which have
/// one store each, leave out the store.
public struct RowName: Hashable, Sendable {
    /// The index of the store in its coordinator; 0 for an engine, and -1 under a temporary key.
    public let store: Int32
    /// The number of the root entity.
    public let root: Int32
    /// The primary key; a negative one is temporary, and unique in the process.
    public let key: Int64

    /// Names a row by the index of its store, the number of its root entity, and its key.
    @inlinable
    public init(store: Int32 = 0, root: Int, key: Int64) {
        self.store = key < 0 ? -1 : store
        self.root = Int32(truncatingIfNeeded: root)
        self.key = key
    }

    /// Whether both name the same row.
    @inlinable
    public static func == (left: RowName, right: RowName) -> Bool {
        left.key == right.key && left.root == right.root && left.store == right.store
    }

    /// Feeds the name to a hasher.
    @inlinable
    public func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(Int64(root) << 32 | Int64(UInt32(bitPattern: store)))
    }
}

extension RowName {
    /// Names a row of an engine.
    package init(_ row: Row) { self.init(root: row.layout.rootNumber, key: row.key) }
}
