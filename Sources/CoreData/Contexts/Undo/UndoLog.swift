/// What the current event has done, for undo, and what undo has brought back.
///
/// Invariants:
/// - An object has one record at most in an event, made before its first change.
/// - Between two events there is no record: the end of an event makes one undo step of all.
///
/// Confined to the context's queue. Members look at objects and call nothing else, so no access to a log lasts while
/// other code runs.
struct UndoLog {
    /// What registers changes for undo; `nil` if nothing does.
    var manager: UndoManager?
    /// One record for each object that the current event has changed.
    private(set) var records: [UndoRecord] = []
    /// The objects of `records`.
    private var noted: Set<ObjectIdentifier> = []
    /// Whether changes are being taken back, so that they are no changes to record.
    var isTakingBack = false
    /// The keys of rows that undo has brought back.
    private(set) var revivedKeys = RevivedKeys()

    init() {}

    /// Keeps an object's state before its first change in this event.
    ///
    /// - Parameters:
    ///   - object: The object that is about to change.
    ///   - status: What it was before; `nil` for what it is now.
    mutating func note(_ object: NSManagedObject, before status: UndoRecord.Status?) {
        guard noted.insert(ObjectIdentifier(object)).inserted else { return }
        records.append(UndoRecord(object, status: status ?? UndoRecord.status(of: object)))
    }

    /// Notes the key under which undo has brought a row back.
    mutating func noteRevived(_ old: Int64, as new: Int64, root: Int) { revivedKeys.note(old, new, root: root) }

    /// Takes the records of the event, which ends here, with the state that it has led to.
    mutating func close() -> [UndoRecord] {
        defer { forgetEvent() }
        return records.map { $0.closed() }
    }

    /// Forgets everything that was noted.
    mutating func forgetAll() {
        forgetEvent()
        revivedKeys = RevivedKeys()
    }

    private mutating func forgetEvent() {
        records = []
        noted.removeAll()
    }

    /// Stops a debug build if the end of an event has left a record behind.
    func checkInvariantsAfterEvent() {
        #if DEBUG
        assert(records.isEmpty && noted.isEmpty, "CoreData: an undo record has outlived its event.")
        #endif
    }

    /// Stops a debug build if records and the objects that have one are not the same.
    func checkInvariants() {
        #if DEBUG
        assert(records.count == noted.count, "CoreData: \(noted.count) objects have \(records.count) undo records.")
        #endif
    }
}
