import StrataKeys

/// Answers questions about rows: a store, or one version of its rows.
///
/// Every member may be called on any thread, and several at once.
package protocol RowSource: AnyObject, Sendable {
    /// Answers a fetch with whole rows, in the order asked for.
    ///
    /// - Throws: A `CocoaError` that is specific to the store (134180 for SQLite), or one that names what the store
    ///   cannot do.
    func rows(for plan: FetchPlan) throws -> [Row]

    /// Answers a fetch with the references of the matching rows only.
    func references(for plan: FetchPlan) throws -> [ObjectReference]

    /// Counts the rows that a fetch would return, with limit and offset applied.
    func count(for plan: FetchPlan) throws -> Int

    /// Answers a fetch with whole rows of one moment, in pieces of the size that the caller takes.
    ///
    /// The store holds no more of them in memory than that, if it can.
    func cursor(for plan: FetchPlan) throws -> any RowCursor

    /// Answers a fetch of dictionaries, in the order asked for.
    ///
    /// A store that computes nothing itself uses the default, which reads whole rows.
    func values(for plan: DictionaryPlan) throws -> FetchedValues

    /// Answers a fetch of dictionaries as above, and hands over each result as soon as it is read.
    ///
    /// A store that cannot do so uses the default, which reads all values first.
    func values(for plan: DictionaryPlan, to receiver: some FetchedValueReceiver) throws

    /// Counts the dictionaries that a fetch would return, with limit and offset applied.
    func count(for plan: DictionaryPlan) throws -> Int

    /// Reads one row.
    ///
    /// - Parameters:
    ///   - key: The key of the row.
    ///   - layout: A layout of the key's hierarchy.
    /// - Returns: The row, in the layout of the row's entity; `nil` if there is no such row.
    /// - Throws: Errors of the store.
    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row?

    /// Reads many rows of one hierarchy, in any order; missing ones are left out.
    ///
    /// - Parameters:
    ///   - keys: The keys of the rows.
    ///   - layout: A layout of the keys' hierarchy.
    ///   - control: Stops the read if the store can be interrupted.
    /// - Returns: The rows, each in the layout of its entity.
    /// - Throws: Errors of the store.
    func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row]

    /// Reads the destinations of a to-many relationship, in their order if it is ordered.
    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference]

    /// Reads the destinations of a to-many relationship of many owners, with one query if the store has queries.
    ///
    /// A store need not implement it: the extension asks for each owner.
    ///
    /// - Parameters:
    ///   - relationship: The relationship.
    ///   - owners: The owners, all of one hierarchy.
    ///   - control: Stops the read if the store can be interrupted.
    /// - Returns: The members of each owner.
    /// - Throws: Errors of the store.
    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?) throws
        -> Memberships
}

extension RowSource {
    package func values(for plan: DictionaryPlan, to receiver: some FetchedValueReceiver) throws {
        try values(for: plan).give(to: receiver)
    }

    /// Reads many rows of one hierarchy; nothing stops the read.
    package func rows(forKeys keys: [Int64], in layout: EntityLayout) throws -> [Row] {
        try rows(forKeys: keys, in: layout, control: nil)
    }

    /// Reads the destinations of a to-many relationship of many owners; nothing stops the read.
    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference]) throws -> Memberships {
        try memberships(of: relationship, ownedBy: owners, control: nil)
    }
}

/// Answers in place of a store that does not exist in the reader's version: it contains nothing.
package final class NoRows: RowSource {
    package init() {}

    package func rows(for plan: FetchPlan) -> [Row] { [] }
    package func references(for plan: FetchPlan) -> [ObjectReference] { [] }
    package func count(for plan: FetchPlan) -> Int { 0 }
    package func cursor(for plan: FetchPlan) -> any RowCursor { ListCursor([]) }
    package func values(for plan: DictionaryPlan) -> FetchedValues { FetchedValues(width: plan.columns.count) }
    package func count(for plan: DictionaryPlan) -> Int { 0 }
    package func row(forKey key: Int64, in layout: EntityLayout) -> Row? { nil }
    package func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) -> [Row] { [] }
    package func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) -> [ObjectReference] { [] }
    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?)
        -> Memberships
    { Memberships() }
}
