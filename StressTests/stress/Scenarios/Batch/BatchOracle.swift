/// A model of a store after batches, and of the contexts on it, made of dictionaries.
///
/// It shares no code with the framework.
struct BatchOracle {
    /// A row; the oracle has given it a number.
    struct Row: Equatable {
        var version = 1
        var code: Int64
        var value: Int64
        var region: Int64
        var crate: Int64?
        var friend: Int64?
    }

    /// The values of one row in a batch insert.
    struct Given {
        var code: Int64
        var value: Int64
        var region: Int64
        var crate: Int64?
    }

    /// How an insert treats codes that are taken.
    enum Policy: CaseIterable {
        case error
        case storeTrump
        case rollback
        case objectTrump
        case overwrite
    }

    /// The rows that a batch applies to.
    enum Condition {
        case all
        case none
        case region(Int64)
        case upTo(Int64)
        case ofFriendIn(Int64)
        case withoutCrate
    }

    /// The change that a batch update makes to each row.
    enum Change {
        case addToValue(Int64)
        case set(value: Int64, region: Int64)
        /// The new code may be one that is taken.
        case addToCode(Int64)
        case crate(Int64?)
        case friend(Int64?)
    }

    /// A row as a context has loaded it, with the context's change.
    struct Entry {
        var base: Row
        var change: Int64?

        var value: Int64 { change ?? base.value }
    }

    private(set) var rows: [Int64: Row] = [:]
    private(set) var crates: Set<Int64> = []
    /// The loaded rows of each context.
    var entries: [[Int64: Entry]]
    private var lastRow: Int64 = 0
    private var lastCode: Int64 = 0
    private var lastValue: Int64 = 0

    init(contexts: Int) { entries = Array(repeating: [:], count: contexts) }

    mutating func addCrate(_ number: Int64) { crates.insert(number) }

    /// A code that no row has.
    mutating func freshCode() -> Int64 {
        let taken = codes
        repeat { lastCode += 10 } while taken[lastCode] != nil
        return lastCode
    }

    /// A value that no row was set to, and that no batch computes.
    mutating func freshValue() -> Int64 {
        lastValue += 1_000_000
        return lastValue
    }

    var codes: [Int64: Int64] { Dictionary(uniqueKeysWithValues: rows.map { ($1.code, $0) }) }

    func matching(_ condition: Condition) -> Set<Int64> {
        Set(
            rows.filter { _, row in
                switch condition {
                case .all: true
                case .none: false
                case .region(let region): row.region == region
                case .upTo(let region): row.region <= region
                case .ofFriendIn(let region): row.friend.map { rows[$0]?.region == region } ?? false
                case .withoutCrate: row.crate == nil
                }
            }.keys
        )
    }

    // MARK: - Batches

    /// Inserts rows, or changes those that have the codes.
    ///
    /// - Returns: The new rows, and those that were changed instead; `nil` if the insert must be refused.
    mutating func insert(_ given: [Given], _ policy: Policy) -> (new: [Int64], changed: [Int64])? {
        var taken = codes
        var (new, changed): ([Int64], [Int64]) = ([], [])
        let before = self
        for row in given {
            guard let holder = taken[row.code] else {
                lastRow += 1
                rows[lastRow] = Row(code: row.code, value: row.value, region: row.region, crate: row.crate)
                taken[row.code] = lastRow
                new.append(lastRow)
                continue
            }
            switch policy {
            case .error:
                self = before
                return nil
            case .storeTrump, .rollback: continue
            case .objectTrump, .overwrite:
                guard var old = rows[holder] else { continue }
                (old.value, old.region) = (row.value, row.region)
                old.crate = policy == .overwrite ? row.crate : row.crate ?? old.crate
                if policy == .overwrite { old.friend = nil }
                old.version += 1
                rows[holder] = old
                changed.append(holder)
            }
        }
        return (new, changed)
    }

    /// Changes rows.
    ///
    /// - Returns: The changed rows; `nil` if the update must be refused.
    mutating func update(_ condition: Condition, _ change: Change) -> Set<Int64>? {
        let touched = matching(condition)
        var changed = rows
        for key in touched {
            guard var row = changed[key] else { continue }
            switch change {
            case .addToValue(let number): row.value += number
            case .set(let value, let region): (row.value, row.region) = (value, region)
            case .addToCode(let number): row.code += number
            case .crate(let number): row.crate = number
            case .friend(let key): row.friend = key
            }
            row.version += 1
            changed[key] = row
        }
        guard Set(changed.values.map(\.code)).count == changed.count else { return nil }
        rows = changed
        return touched
    }

    /// Deletes rows, and clears the relationships that lead to them.
    mutating func delete(_ doomed: Set<Int64>) {
        for key in doomed { rows[key] = nil }
        for (key, row) in rows {
            guard let friend = row.friend, doomed.contains(friend) else { continue }
            rows[key]?.friend = nil
            rows[key]?.version += 1
        }
    }

    /// Deletes crates with their contents.
    ///
    /// - Returns: The rows that are deleted with them.
    mutating func deleteCrates(_ numbers: Set<Int64>) -> Set<Int64> {
        let doomed = Set(rows.filter { $1.crate.map(numbers.contains) ?? false }.keys)
        crates.subtract(numbers)
        delete(doomed)
        return doomed
    }

    // MARK: - Contexts

    /// Loads a row into a context.
    ///
    /// - Returns: Whether there is such a row.
    mutating func load(_ key: Int64, in context: Int) -> Bool {
        if entries[context][key] != nil { return true }
        guard let row = rows[key] else { return false }
        entries[context][key] = Entry(base: row)
        return true
    }

    /// The rows over which a save of a context must fail: those that it has changed, and that others have changed
    /// since they were loaded.
    func conflicts(of context: Int) -> Set<Int64> {
        Set(
            entries[context].filter { key, entry in
                entry.change != nil && rows[key]?.version != entry.base.version
            }.keys
        )
    }

    /// Saves the changes of a context, whether there are conflicts or not.
    mutating func save(_ context: Int) {
        for (key, entry) in entries[context] {
            guard let value = entry.change, var row = rows[key] else { continue }
            row.value = value
            row.version += 1
            rows[key] = row
            entries[context][key] = Entry(base: row)
        }
    }

    /// Merges the changes of a batch into a context.
    mutating func merge(_ keys: Set<Int64>, into context: Int) {
        for key in keys where entries[context][key] != nil {
            if let row = rows[key] { entries[context][key]?.base = row } else { entries[context][key] = nil }
        }
    }
}
