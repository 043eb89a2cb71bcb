import StrataRows

/// The progress of a context's save.
///
/// Invariants:
/// - `survivors` has entries only while conflicts are resolved, and `revivedBases` only while the context saves.
///
/// Confined to the context's queue.
struct SaveState {
    /// Whether a save is going on; false again as soon as its notifications are about to be posted.
    private(set) var isSaving = false
    /// The number of saves that were tried; a fetch that is going on sees by it that there is more to read.
    private(set) var count = 0
    /// A save that may or may not have been committed; the next save first asks the store about it.
    var doubt: SaveDoubt?
    /// Collects what is saved, for a save that lets other contexts merge its changes.
    var collector: SaveCollector?
    /// The surviving objects into which new objects were merged; only while conflicts are resolved.
    ///
    /// The keys are the references of the new objects. Relationships without an inverse may still name these.
    var survivors: [ObjectReference: NSManagedObject] = [:]

    /// The base rows of changed objects whose deleted rows a merge policy restores; only while the context saves.
    ///
    /// They are needed if another context or process restores the rows first.
    var revivedBases: [RowName: Row] = [:]
    /// The sets of this save's notifications; only from the beginning of `save()` to its end.
    var shownSets: ShownSets?

    init() {}

    /// Begins a save.
    mutating func begin() {
        isSaving = true
        count += 1
    }

    /// Ends a save, whether it has succeeded or failed; another one may begin.
    mutating func end() {
        isSaving = false
        revivedBases = [:]
    }

    /// Stops a debug build if data of a save is left over after its end.
    func checkInvariants() {
        #if DEBUG
        assert(isSaving || survivors.isEmpty && revivedBases.isEmpty, "CoreData: a conflict has outlived its save.")
        #endif
    }
}
