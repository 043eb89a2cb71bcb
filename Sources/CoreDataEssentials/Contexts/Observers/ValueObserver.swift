import StrataRows

/// Finds the properties of objects whose values change in another way than by their setters.
///
/// Merges, roll-backs, undo, refreshes and the keeping of inverses change values like that. The layer above owns this,
/// and names the objects whose values matter to it. The values of other objects are not kept. Confined to the context's
/// queue.
package final class ValueObserver {
    /// The known values of an object before they changed.
    private struct Before {
        let object: NSManagedObject
        /// The values; `nil` for a fault.
        let row: Row?
        /// The members of to-many relationships that were loaded, by their index in the layout.
        let members: [[ObjectReference]?]
        /// The relationships that have changed if they were read anew; `nil` if that is not known.
        var changed: SlotSet?
    }

    private let isObserved: (NSManagedObject) -> Bool
    private let changed: (NSManagedObject, [String]) -> Void
    private var noted: [ObjectIdentifier: Before] = [:]
    private var inverses: [(object: NSManagedObject, name: String)] = []
    /// The numbers of the transactions of the context's last save, by the UUIDs of the stores with a history.
    package internal(set) var savedTransactions: [String: Int64] = [:]

    /// Makes an observer of the objects of one context.
    ///
    /// - Parameters:
    ///   - isObserved: Whether the values of an object matter.
    ///   - changed: Called with an object and the names of its changed properties, after the change. It may do anything.
    package init(
        isObserved: @escaping (NSManagedObject) -> Bool,
        changed: @escaping (NSManagedObject, [String]) -> Void
    ) {
        self.isObserved = isObserved
        self.changed = changed
    }

    /// Keeps the values of an object, which are going to change.
    ///
    /// - Parameters:
    ///   - object: The object.
    ///   - relationships: The to-many relationships that change; `nil` if that is not known. If the values are kept
    ///     already, then `nil` adds nothing.
    func note(_ object: NSManagedObject, relationships: SlotSet?) {
        let key = ObjectIdentifier(object)
        if noted[key] != nil {
            if let relationships { noted[key]?.changed?.formUnion(relationships) }
            return
        }
        guard isObserved(object) else { return }
        var row = object.isFault ? nil : object.current
        // The object's own values are written in place.
        if object.flags.contains(.ownsRow) { row = row?.copy() }
        noted[key] = Before(
            object: object,
            row: row,
            members: object.extras?.toMany.map { $0?.content } ?? [],
            changed: relationships
        )
    }

    /// Notes that the other side of a relationship was set.
    func noteInverse(_ object: NSManagedObject, _ name: String) {
        if isObserved(object) { inverses.append((object, name)) }
    }

    /// Whether there is something to report.
    var isEmpty: Bool { noted.isEmpty && inverses.isEmpty }

    /// Reports what has changed since the values were noted.
    ///
    /// - Complexity: O(number of properties and members of the noted objects).
    package func report() {
        guard !isEmpty else { return }
        let (noted, inverses) = (noted, inverses)
        self.noted = [:]
        self.inverses = []
        var names: [ObjectIdentifier: Set<String>] = [:]
        for (object, name) in inverses where names[ObjectIdentifier(object), default: []].insert(name).inserted {
            changed(object, [name])
        }
        for (key, before) in noted {
            let changes = Self.changes(since: before).subtracting(names[key] ?? [])
            if !changes.isEmpty { changed(before.object, changes.sorted()) }
        }
    }

    /// The names of the properties whose values are others than before; all that were known if the object is a fault.
    private static func changes(since before: Before) -> Set<String> {
        let object = before.object
        guard object.flags.isDisjoint(with: [.gone, .detached]) else { return [] }
        var names: Set<String> = []
        if let row = before.row {
            for slot in object.layout.slots {
                if let now = object.isFault ? nil : object.current, row.hasSameValue(as: now, in: slot) { continue }
                names.insert(slot.name.compositeName ?? slot.name)
            }
        }
        for (index, members) in before.members.enumerated() {
            guard let members else { continue }
            if let now = object.extras?.toMany[index]?.content {
                if now == members || Set(now) == Set(members) && !object.layout.toMany[index].isOrdered { continue }
            } else if before.changed?.contains(index) == false {
                continue
            }
            names.insert(object.layout.toMany[index].name)
        }
        return names
    }
}

extension NSManagedObject {
    /// Keeps the values for observers of values, if there are any; called before a change that no setter makes.
    @inline(__always)
    final func noteValues(relationships: SlotSet? = nil) {
        unmanagedContext?._withUnsafeGuaranteedRef { context in
            if let observer = context.observers.values { observer.note(self, relationships: relationships) }
        }
    }

    /// Notes for observers of values that the other side of a relationship was set.
    @inline(__always)
    final func noteInverse(_ name: String) {
        unmanagedContext?._withUnsafeGuaranteedRef { context in
            if let observer = context.observers.values { observer.noteInverse(self, name) }
        }
    }
}
