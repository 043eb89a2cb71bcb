/// What the contexts of a tree show: each what its parent shows, with its own changes on top.
struct TreeOracle {
    enum Change: Equatable {
        case inserted(Int64)
        case changed(Int64)
        case deleted
    }

    /// By context, the number of its parent; the root is 0.
    let parents: [Int]
    /// What is stored, values by serial number.
    private(set) var stored: [Int64: Int64] = [:]
    /// By context, what it has not saved.
    private(set) var pending: [[Int64: Change]]
    /// By context, whether it has deleted what it had inserted itself: until it saves, that counts as a change or not.
    private(set) var hasUndone: [Bool]

    init(_ parents: [Int]) {
        self.parents = parents
        pending = parents.map { _ in [:] }
        hasUndone = parents.map { _ in false }
    }

    /// The context, its parent, and so on to the root.
    func way(_ place: Int) -> [Int] {
        var way = [place]
        while let last = way.last, last != 0 { way.append(parents[last]) }
        return way
    }

    func isLeaf(_ place: Int) -> Bool { !parents.indices.contains { $0 != 0 && parents[$0] == place } }

    /// What a context shows.
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

    /// What a context, or one above it, has changed and what has been deleted above: not promised to be shown or not
    /// until it saves, when the deletion wins.
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

    /// Moves what a context has changed one level up, or into the store.
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
            // To what was deleted further up a change is carried, and ends there.
            let isCarried = above[serial] != nil || parent != 0 && pending[parent][serial] != .deleted
            switch change {
            case .inserted(let value): insert(serial, value, in: parent)
            case .changed(let value): if isCarried { self.change(serial, to: value, in: parent) }
            case .deleted: if isCarried { delete(serial, in: parent) }
            }
        }
        pending[place] = [:]
    }

    /// What somebody outside of the tree has saved.
    mutating func store(_ value: Int64?, for serial: Int64) { stored[serial] = value }
}
