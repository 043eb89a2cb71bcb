import CoreData

/// What contexts on one store should show, told by dictionaries: shares nothing with the framework.
struct InterleaveOracle {
    struct Row: Equatable {
        var version: Int
        var values: [Int64]
    }

    /// An object that a context has realised, or made.
    struct Entry {
        var base: Row
        var changes: [Int: Int64] = [:]
        var isInserted = false
        var isDeleted = false

        var values: [Int64] {
            var values = base.values
            for (slot, value) in changes { values[slot] = value }
            return values
        }
    }

    enum Policy: CaseIterable {
        case error
        case storeTrump
        case objectTrump
        case overwrite
        case rollback
    }

    enum SaveOutcome: Equatable {
        /// And whether that changed anything.
        case saved(Bool)
        case refused(Set<Int64>)
        /// Nobody has promised anything for this case.
        case undefined
    }

    /// The rows of the store, by serial number.
    private(set) var stored: [Int64: Row] = [:]
    /// By context.
    var entries: [[Int64: Entry]]
    let policies: [Policy]
    /// What each context has saved last, of those saves that changed anything.
    private(set) var lastSaves: [(updated: Set<Int64>, deleted: Set<Int64>)?]
    private var lastVersion = 0

    init(_ policies: [Policy]) {
        self.policies = policies
        entries = policies.map { _ in [:] }
        lastSaves = policies.map { _ in nil }
    }

    /// Has a context realise an object that it has not, if there is one to realise.
    ///
    /// - Returns: Whether the object can be used.
    mutating func realise(_ serial: Int64, in context: Int) -> Bool {
        if let entry = entries[context][serial] { return !entry.isDeleted }
        guard let row = stored[serial] else { return false }
        entries[context][serial] = Entry(base: row)
        return true
    }

    mutating func insert(_ serial: Int64, _ values: [Int64], in context: Int) {
        entries[context][serial] = Entry(base: Row(version: 0, values: values), isInserted: true)
    }

    mutating func delete(_ serial: Int64, in context: Int) {
        if entries[context][serial]?.isInserted == true {
            entries[context][serial] = nil
        } else {
            entries[context][serial]?.isDeleted = true
        }
    }

    /// The objects whose first value is at least `limit`, as a context sees them, and those that it may see or not.
    func matching(_ limit: Int64, in context: Int) -> (certain: Set<Int64>, open: Set<Int64>) {
        var (certain, open): (Set<Int64>, Set<Int64>) = ([], [])
        for (serial, row) in stored {
            let entry = entries[context][serial]
            if entry?.isDeleted == true { continue }
            let isChanged = entry.map { !$0.changes.isEmpty } ?? false
            if (isChanged ? entry?.values[0] ?? 0 : row.values[0]) >= limit { certain.insert(serial) }
        }
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
            }
        }
    }

    // MARK: - Saving

    mutating func save(_ context: Int) -> SaveOutcome {
        var conflicts: Set<Int64> = []
        for (serial, entry) in entries[context] where !entry.isInserted && (entry.isDeleted || !entry.changes.isEmpty) {
            if stored[serial]?.version != entry.base.version { conflicts.insert(serial) }
            if entry.isDeleted, stored[serial] == nil { return .undefined }
        }
        if !conflicts.isEmpty, policies[context] == .error { return .refused(conflicts) }
        for serial in conflicts { resolve(serial, context) }
        return .saved(write(context))
    }

    private mutating func resolve(_ serial: Int64, _ context: Int) {
        guard var entry = entries[context][serial] else { return }
        let memoryWins = [.objectTrump, .overwrite].contains(policies[context])
        guard let newer = stored[serial] else {
            // Deleted by somebody else: comes back, or is gone here as well.
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
        var (updated, deleted): (Set<Int64>, Set<Int64>) = ([], [])
        for (serial, entry) in entries[context] {
            if entry.isDeleted {
                stored[serial] = nil
                entries[context][serial] = nil
                deleted.insert(serial)
            } else if entry.isInserted || !entry.changes.isEmpty {
                lastVersion += 1
                let row = Row(version: lastVersion, values: entry.values)
                stored[serial] = row
                entries[context][serial] = Entry(base: row)
                updated.insert(serial)
            }
        }
        guard !updated.isEmpty || !deleted.isEmpty else { return false }
        lastSaves[context] = (updated, deleted)
        return true
    }

    /// Merges the last save of one context into another.
    ///
    /// - Returns: Whether it is defined what comes of it.
    mutating func merge(from source: Int, into target: Int) -> Bool {
        guard let save = lastSaves[source] else { return false }
        for serial in save.updated.union(save.deleted) {
            guard let entry = entries[target][serial] else { continue }
            if entry.isDeleted { return false }
            if let row = stored[serial] {
                entries[target][serial]?.base = row
            } else if entry.changes.isEmpty {
                entries[target][serial] = nil
            }
        }
        return true
    }
}
