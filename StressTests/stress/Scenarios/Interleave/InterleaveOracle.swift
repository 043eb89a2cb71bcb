import CoreData

/// The state that contexts on one store must show, kept in dictionaries.
///
/// It shares no code with the framework.
struct InterleaveOracle {
    struct Row: Equatable {
        var version: Int
        /// Two numbers, then the parent's serial number, 0 for none.
        var values: [Int64]
    }

    /// The work of a save, by serial number.
    struct Save {
        var inserted: Set<Int64> = []
        var updated: Set<Int64> = []
        var deleted: Set<Int64> = []
        /// The objects for which the content of a notification is not promised: owners of changed children, and
        /// objects that a policy brought back or gave up.
        var open: Set<Int64> = []
        /// The objects in the notifications of the save.
        var told: Set<Int64> = []
    }

    /// An object that a context has realised, or made.
    struct Entry {
        var base: Row
        var changes: [Int: Int64] = [:]
        var isInserted = false
        var isDeleted = false
        /// The children whose parent the deletion has removed.
        var freed: Set<Int64> = []

        /// Whether all changes have led back to the former values.
        ///
        /// Nothing says whether that counts as a change.
        var isIdle: Bool { !isInserted && !changes.isEmpty && changes.allSatisfy { base.values[$0] == $1 } }

        var values: [Int64] {
            var values = base.values
            for (slot, value) in changes { values[slot] = value }
            return values
        }
    }

    /// The merge policy of a context, under its name on the command line.
    enum Policy: String, CaseIterable {
        case error
        case storeTrump = "store"
        case objectTrump = "object"
        case overwrite
        case rollback
    }

    enum SaveOutcome: Equatable {
        /// The value is whether the save has changed anything.
        case saved(Bool)
        case refused(Set<Int64>)
        /// Nothing is promised for this case.
        case undefined
    }

    /// The rows of the store, by serial number.
    private(set) var stored: [Int64: Row] = [:]
    /// The objects of each context.
    var entries: [[Int64: Entry]]
    let policies: [Policy]
    /// The last save of each context that has changed anything.
    var lastSaves: [Save?]
    /// The owners of children that have come or gone, for each context; they may count as changed.
    var touched: [Set<Int64>]
    /// The steps of each context; `nil` without an undo manager.
    var steps: [Steps?]
    /// The number of saves when a context last knew the children of an object, for each context and object.
    var known: [[Int64: Int]]
    /// The number of saves when the stored children of an object last changed.
    private(set) var related: [Int64: Int] = [:]
    private(set) var lastVersion = 0
    /// The objects that conflicts of a save will bring back or give up.
    private var disputed: Set<Int64> = []
    /// Whether it is unclear what a save writes.
    private var isUnclear = false

    init(_ policies: [Policy], undoes: [Bool]) {
        self.policies = policies
        steps = undoes.map { $0 ? Steps() : nil }
        entries = policies.map { _ in [:] }
        lastSaves = policies.map { _ in nil }
        touched = policies.map { _ in [] }
        known = policies.map { _ in [:] }
    }

    /// Lets a context realise an object, if it has not done so and the object is stored.
    ///
    /// - Returns: Whether the object can be used.
    mutating func realise(_ serial: Int64, in context: Int) -> Bool {
        if let entry = entries[context][serial] { return !entry.isDeleted }
        guard let row = stored[serial] else { return false }
        entries[context][serial] = Entry(base: row)
        return true
    }

    /// The objects that a context has or can get, in order.
    func usable(in context: Int) -> [Int64] {
        let own = entries[context].filter { !$1.isDeleted }.keys
        return Set(own).union(stored.keys.filter { entries[context][$0] == nil }).sorted()
    }

    mutating func insert(_ serial: Int64, _ values: [Int64], in context: Int) {
        entries[context][serial] = Entry(base: Row(version: 0, values: values), isInserted: true)
        // The context knows the children of a new object from the beginning, and does not read them.
        known[context][serial] = lastVersion
    }

    mutating func delete(_ serial: Int64, in context: Int) {
        if entries[context][serial]?.isInserted == true {
            entries[context][serial] = nil
        } else {
            entries[context][serial]?.isDeleted = true
        }
    }

    /// The objects whose first value is at least `limit`, as a context sees them, and those that it may or may not
    /// find.
    func matching(_ limit: Int64, in context: Int) -> (certain: Set<Int64>, open: Set<Int64>) {
        var (certain, open): (Set<Int64>, Set<Int64>) = ([], [])
        for (serial, row) in stored {
            let entry = entries[context][serial]
            if entry?.isDeleted == true { continue }
            // An owner that counts as changed is compared as it is in memory.
            if touched[context].contains(serial) {
                open.insert(serial)
                continue
            }
            let isChanged = entry.map { !$0.changes.isEmpty } ?? false
            if (isChanged ? entry?.values[0] ?? 0 : row.values[0]) >= limit { certain.insert(serial) }
        }
        // It is not promised either that owners are left out whose rows have gone.
        open.formUnion(touched[context].filter { stored[$0] == nil })
        for (serial, entry) in entries[context] where stored[serial] == nil {
            if !entry.isInserted { open.insert(serial) } else if entry.values[0] >= limit { certain.insert(serial) }
        }
        return (certain, open)
    }

    mutating func rollback(_ context: Int) {
        for (serial, entry) in entries[context] {
            if entry.isInserted {
                entries[context][serial] = nil
            } else {
                entries[context][serial]?.changes = [:]
                entries[context][serial]?.isDeleted = false
                entries[context][serial]?.freed = []
            }
        }
        touched[context] = []
        endSteps(context)
    }

    mutating func reset(_ context: Int) {
        (entries[context], touched[context], known[context]) = ([:], [], [:])
        endSteps(context)
    }

    // MARK: - Saving

    mutating func save(_ context: Int) -> SaveOutcome {
        var conflicts: Set<Int64> = []
        for (serial, entry) in entries[context] where !entry.isInserted && (entry.isDeleted || !entry.changes.isEmpty) {
            if stored[serial]?.version != entry.base.version { conflicts.insert(serial) }
            if entry.isDeleted, stored[serial] == nil { return .undefined }
        }
        if policies[context] == .error {
            let all = conflicts.union(gone(context))
            if !all.isEmpty { return .refused(all) }
        }
        var after = self
        after.resolve(conflicts, context)
        let isChange = after.write(context)
        // Relationships to rows that have gone are resolved in several ways. Only that none is left is checked.
        if after.stored.values.contains(where: { $0.values[2] != 0 && after.stored[$0.values[2]] == nil }) {
            return .undefined
        }
        let losers = conflicts.filter { !(entries[context][$0]?.freed.isEmpty ?? true) }
        if !losers.isEmpty || after.isUnclear || !gone(context).isEmpty { return .undefined }
        self = after
        return .saved(isChange)
    }

    private mutating func resolve(_ conflicts: Set<Int64>, _ context: Int) {
        for serial in conflicts {
            let wasThere = entries[context][serial]?.isDeleted == false
            // The children that the context knows, perhaps from long ago, may win together with the object.
            if policies[context] == .overwrite, !isClear(serial, in: context) { isUnclear = true }
            let parent = entries[context][serial]?.base.values[2] ?? 0
            resolve(serial, context)
            if stored[serial] == nil || !wasThere { disputed.insert(serial) }
            // Owners are notified of children that another context has given to them or taken from them.
            disputed.formUnion([parent, stored[serial]?.values[2] ?? 0])
            if entries[context][serial]?.isIdle == true { isUnclear = true }
        }
    }

    private mutating func resolve(_ serial: Int64, _ context: Int) {
        guard var entry = entries[context][serial] else { return }
        let memoryWins = [.objectTrump, .overwrite].contains(policies[context])
        guard let newer = stored[serial] else {
            // Another context has deleted it: it comes back, or it is gone here as well.
            if memoryWins {
                for slot in entry.values.indices { entry.changes[slot] = entry.values[slot] }
                entries[context][serial] = entry
            } else {
                entries[context][serial] = nil
            }
            return
        }
        if entry.isDeleted {
            if !memoryWins { entry = Entry(base: newer) }
        } else {
            switch policies[context] {
            case .storeTrump:
                entry.changes = entry.changes.filter { newer.values[$0.key] == entry.base.values[$0.key] }
            case .overwrite: for (slot, value) in entry.values.enumerated() { entry.changes[slot] = value }
            case .rollback: entry.changes = [:]
            case .objectTrump, .error: break
            }
            entry.base = newer
        }
        entries[context][serial] = entry
    }

    private mutating func write(_ context: Int) -> Bool {
        var save = Save(open: touched[context].union(disputed))
        let before = stored
        for (serial, entry) in entries[context] {
            if entry.isDeleted {
                stored[serial] = nil
                entries[context][serial] = nil
                save.deleted.insert(serial)
            } else if entry.isInserted || !entry.changes.isEmpty {
                lastVersion += 1
                let row = Row(version: lastVersion, values: entry.values)
                stored[serial] = row
                entries[context][serial] = Entry(base: row)
                if entry.isInserted { save.inserted.insert(serial) } else { save.updated.insert(serial) }
            }
        }
        (touched[context], disputed) = ([], [])
        let written = save.inserted.union(save.updated)
        guard !written.isEmpty || !save.deleted.isEmpty else { return false }
        for serial in written.union(save.deleted) {
            let parents = [before[serial]?.values[2] ?? 0, stored[serial]?.values[2] ?? 0]
            if parents[0] != parents[1] { for parent in parents { related[parent] = lastVersion } }
        }
        lastSaves[context] = save
        return true
    }

    /// Puts a newer row under the changes of a context.
    ///
    /// Owners are notified of a new parent in it.
    mutating func rebase(_ serial: Int64, _ row: Row, _ context: Int) {
        guard let old = entries[context][serial] else { return }
        if old.base.values[2] != row.values[2] { touched[context].formUnion([old.base.values[2], row.values[2]]) }
        entries[context][serial]?.base = row
        // A change to a value that another context has also set is no change any more, if there are other changes
        // beside it.
        guard entries[context][serial]?.isIdle == false else { return }
        entries[context][serial]?.changes = old.changes.filter { row.values[$0] != $1 }
    }

    /// Merges the last save of one context into another.
    ///
    /// - Returns: Whether the outcome is defined.
    mutating func merge(from source: Int, into target: Int) -> Bool {
        guard let save = lastSaves[source] else { return false }
        for serial in save.told {
            guard let entry = entries[target][serial] else { continue }
            if entry.isDeleted { return false }
            if let row = stored[serial] {
                rebase(serial, row, target)
            } else if entry.changes.isEmpty {
                entries[target][serial] = nil
            }
        }
        return !entries[target].values.contains { $0.isIdle || !$0.isDeleted && save.deleted.contains($0.values[2]) }
    }
}
