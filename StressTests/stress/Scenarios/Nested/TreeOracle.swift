/// The objects that the contexts of a tree show: those of the parent, with the context's own changes on top.
struct TreeOracle {
    enum Change: Equatable {
        case inserted(Int64)
        case changed(Int64)
        case deleted
    }

    /// The number of each context's parent; the root is 0.
    let parents: [Int]
    /// The stored values, by serial number.
    private(set) var stored: [Int64: Int64] = [:]
    /// The unsaved changes of each context.
    private(set) var pending: [[Int64: Change]]
    /// Whether each context has deleted an object that it had inserted itself.
    ///
    /// Until it saves, that may count as a change or not.
    private(set) var hasUndone: [Bool]

    init(_ parents: [Int]) {
        self.parents = parents
        pending = parents.map { _ in [:] }
        hasUndone = parents.map { _ in false }
    }

    /// The context, its parent, and so on up to the root.
    func way(_ place: Int) -> [Int] {
        var way = [place]
        while let last = way.last, last != 0 { way.append(parents[last]) }
        return way
    }

    func isLeaf(_ place: Int) -> Bool { !parents.indices.contains { $0 != 0 && parents[$0] == place } }

    /// The objects that a context shows.
    func view(_ place: Int) -> [Int64: Int64] {
        var shown = stored
        for level in way(place).reversed() {
            for (serial, change) in pending[level] {
                switch change {
                case .inserted(let value): shown[serial] = value
                case .changed(let value): if shown[serial] != nil { shown[serial] = value }
                case .deleted: shown[serial] = nil
                }
            }
        }
        return shown
    }

    /// The objects that a context, or one above it, has changed, and that have been deleted above it.
    ///
    /// Until it saves, they may be shown or not. Then the deletion wins.
    func unclear(_ place: Int) -> Set<Int64> {
        var unclear: Set<Int64> = []
        for level in way(place) where level != 0 {
            let above = view(parents[level])
            for (serial, change) in pending[level] where above[serial] == nil {
                if case .inserted = change { continue }
                unclear.insert(serial)
            }
        }
        return unclear
    }

    /// Whether a context below has changed one of the objects.
    func areChanged(_ serials: some Sequence<Int64>, below place: Int) -> Bool {
        let below = parents.indices.filter { $0 != place && way($0).contains(place) }
        return serials.contains { serial in below.contains { pending[$0][serial] != nil } }
    }

    // MARK: - Calls

    mutating func insert(_ serial: Int64, _ value: Int64, in place: Int) { pending[place][serial] = .inserted(value) }

    mutating func change(_ serial: Int64, to value: Int64, in place: Int) {
        if case .inserted = pending[place][serial] {
            pending[place][serial] = .inserted(value)
        } else {
            pending[place][serial] = .changed(value)
        }
    }

    mutating func delete(_ serial: Int64, in place: Int) {
        if case .inserted = pending[place][serial] {
            pending[place][serial] = nil
            hasUndone[place] = true
        } else {
            pending[place][serial] = .deleted
        }
    }

    mutating func drop(_ place: Int) {
        pending[place] = [:]
        hasUndone[place] = false
    }

    /// Moves the changes of a context one level up, or into the store.
    mutating func save(_ place: Int) {
        hasUndone[place] = false
        guard place != 0 else {
            stored = view(0)
            pending[0] = [:]
            return
        }
        let parent = parents[place]
        let above = view(parent)
        for (serial, change) in pending[place] {
            // A change to an object that was deleted further up is carried up to that level, and ends there.
            let isCarried = above[serial] != nil || parent != 0 && pending[parent][serial] != .deleted
            switch change {
            case .inserted(let value): insert(serial, value, in: parent)
            case .changed(let value): if isCarried { self.change(serial, to: value, in: parent) }
            case .deleted: if isCarried { delete(serial, in: parent) }
            }
        }
        pending[place] = [:]
    }

    /// Takes a save from outside the tree.
    mutating func store(_ value: Int64?, for serial: Int64) { stored[serial] = value }
}
