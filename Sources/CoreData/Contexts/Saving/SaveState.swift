import StrataRows

/// How far a context's save has come.
///
/// Invariants:
/// - Survivors are known only while conflicts are resolved, and rows that come back only while the context saves.
///
/// Confined to the context's queue.
struct SaveState {
    /// Whether a save is under way: until its changes are announced.
    private(set) var isSaving = false
    /// How many saves were tried, by which a fetch that is under way knows that there is more to read.
    private(set) var count = 0
    /// A save that may or may not have been committed; the next one first asks what has become of it.
    var doubt: SaveDoubt?
    /// Gathers what is saved, for a save that lets other contexts merge it.
    var collector: SaveCollector?
    /// While conflicts are resolved: what new objects were merged into that others may lead to without an inverse.
    var survivors: [ObjectReference: NSManagedObject] = [:]

    /// While a context saves: the base rows of changed objects that a policy brings back.
    ///
    /// They are needed if others bring the rows back first.
    var revivedBases: [RowName: Row] = [:]

    init() {}

    /// Begins a save.
    mutating func begin() {
        isSaving = true
        count += 1
    }

    /// Ends a save, whether it has succeeded or not: another one may begin.
    mutating func end() {
        isSaving = false
        revivedBases = [:]
    }

    /// Stops a debug build if a save has left something behind.
    func checkInvariants() {
        #if DEBUG
        assert(isSaving || survivors.isEmpty && revivedBases.isEmpty, "CoreData: a conflict has outlived its save.")
        #endif
    }
}
