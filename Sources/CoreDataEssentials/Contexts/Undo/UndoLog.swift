/// The changes of the current event, for undo, and the rows that undo has brought back.
///
/// Invariants:
/// - In one event, an object has at most one record, which is made before its first change.
/// - Between two events there is no record: the end of an event combines all records into one undo step.
///
/// This is confined to the context's queue. Members look at objects and call nothing else, so no access to a log
/// lasts while other code runs.
struct UndoLog {
    /// The undo manager that registers changes; `nil` if there is none.
    var manager: UndoManager?
    /// One record for each object that the current event has changed.
    private(set) var records: [UndoRecord] = []
    /// The objects of `records`, and the values that their transient properties had before the event, by their index in
    /// the layout.
    private var noted: [ObjectIdentifier: [Int: Any?]] = [:]
    /// Whether changes are being undone; such changes are not recorded.
    var isApplyingUndo = false
    /// The keys of rows that undo has brought back.
    private(set) var revivedKeys = RevivedKeys()

    init() {}

    /// Records an object's state before its first change in this event.
    ///
    /// - Parameters:
    ///   - object: The object that is about to change.
    ///   - status: The object's status before; `nil` for its present status.
    mutating func record(_ object: NSManagedObject, before status: UndoRecord.Status?) {
        guard noted[ObjectIdentifier(object)] == nil else { return }
        noted[ObjectIdentifier(object)] = [:]
        records.append(UndoRecord(object, status: status ?? UndoRecord.status(of: object)))
    }

    /// Records the value of a transient property before a change, if the event has a record of the object.
    mutating func record(_ value: Any?, of object: NSManagedObject, transient index: Int) {
        guard let known = noted[ObjectIdentifier(object)], known[index] == nil else { return }
        noted[ObjectIdentifier(object)]?.updateValue(value, forKey: index)
    }

    /// Notes the new key of a row that undo has brought back.
    mutating func recordRevival(of old: Int64, as new: Int64, root: Int) {
        revivedKeys.record(old, as: new, root: root)
    }

    /// Takes the records of the event, completes them with the present state, and ends the event.
    mutating func close() -> [UndoRecord] {
        defer { forgetEvent() }
        return records.map { $0.closed(transients: noted[ObjectIdentifier($0.object)] ?? [:]) }
    }

    /// Forgets all notes.
    mutating func forgetAll() {
        forgetEvent()
        revivedKeys = RevivedKeys()
    }

    private mutating func forgetEvent() {
        records = []
        noted.removeAll()
    }

    /// Stops a debug build if a record remains after the end of an event.
    func checkInvariantsAfterEvent() {
        #if DEBUG
        assert(records.isEmpty && noted.isEmpty, "CoreData: an undo record has outlived its event.")
        #endif
    }

    /// Stops a debug build if the records do not match the objects that have one.
    func checkInvariants() {
        #if DEBUG
        assert(records.count == noted.count, "CoreData: \(noted.count) objects have \(records.count) undo records.")
        #endif
    }
}
