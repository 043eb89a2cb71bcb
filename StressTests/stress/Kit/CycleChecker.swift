/// Judges a history of appends and reads.
///
/// As every number is appended once, a read shows which writes it has seen, and the final lists show the order of the
/// writes. The dependencies between transactions follow from that. A cycle of them is an anomaly, and its edges name
/// the kind.
struct CycleChecker {
    private enum Edge: Int {
        /// The first has written what the second has appended to.
        case writeWrite
        /// The first has written what the second has read.
        case writeRead
        /// The first has read what the second has then appended to.
        case readWrite
    }

    private(set) var findings: [String] = []
    private(set) var figures: [(String, Int)] = []
    private let history: History
    /// The transaction that appended each number.
    private var writers: [Int: Int] = [:]
    private var edges: [[(to: Int, kind: Edge)]]
    private var counts = [0, 0, 0]

    /// Checks the whole history.
    init(_ history: History) {
        self.history = history
        edges = Array(repeating: [], count: history.transactions.count)
        noteWriters()
        checkFinal()
        for number in history.transactions.indices { checkReads(number) }
        addWriteEdges()
        judge()
    }

    private mutating func noteWriters() {
        for (number, transaction) in history.transactions.enumerated() {
            for case .append(_, let element) in transaction.operations {
                if writers.updateValue(number, forKey: element) != nil { findings.append("\(element) written twice") }
            }
        }
    }

    /// Checks that every acknowledged append is there once, and that nothing else is.
    private mutating func checkFinal() {
        var seen: Set<Int> = []
        for (key, list) in history.final {
            for element in list {
                if !seen.insert(element).inserted { findings.append("list \(key) has \(element) twice") }
                guard let writer = writers[element] else {
                    findings.append("list \(key) has \(element), which nobody has written")
                    continue
                }
                if history.transactions[writer].outcome == .failed {
                    findings.append("aborted read: \(element) of a failed transaction is in list \(key)")
                }
            }
        }
        for transaction in history.transactions where transaction.outcome == .ok {
            for case .append(let key, let element) in transaction.operations where !seen.contains(element) {
                findings.append("lost: \(element), acknowledged, is not in list \(key)")
            }
        }
    }

    private mutating func checkReads(_ number: Int) {
        let transaction = history.transactions[number]
        /// The transaction's own appends.
        var own: [Int: [Int]] = [:]
        /// The numbers of other transactions that it has seen.
        var foreign: [Int: [Int]] = [:]
        for operation in transaction.operations {
            switch operation {
            case .append(let key, let element): own[key, default: []].append(element)
            case .read(let key, let list):
                let mine = own[key] ?? []
                guard list.suffix(mine.count).elementsEqual(mine) else {
                    findings.append("transaction \(number) does not see its own writes to list \(key)")
                    continue
                }
                let others = Array(list.dropLast(mine.count))
                if let before = foreign[key], before != others {
                    findings.append(
                        "fuzzy read: transaction \(number) saw list \(key) change from \(before.count) to \(others.count) elements: \(transaction.summary)"
                    )
                }
                foreign[key] = others
                checkRead(number, key, others)
            }
        }
    }

    /// Checks what was read of other transactions, and adds the edges that follow.
    private mutating func checkRead(_ number: Int, _ key: Int, _ list: [Int]) {
        let order = history.final[key] ?? []
        guard order.starts(with: list) else {
            let strange = list.first { writers[$0].map { history.transactions[$0].outcome == .failed } ?? false }
            findings.append(
                strange.map { "aborted read: transaction \(number) saw \($0) in list \(key)" }
                    ?? "transaction \(number) saw list \(key) as \(list), which it never was"
            )
            return
        }
        guard history.transactions[number].outcome == .ok else { return }
        if let last = list.last, let writer = writers[last], writer != number {
            add(writer, number, .writeRead)
            let later = history.transactions[writer].operations.contains {
                if case .append(key, let element) = $0 { order.dropFirst(list.count).contains(element) } else { false }
            }
            if later { findings.append("intermediate read: transaction \(number) saw half of \(writer)'s list \(key)") }
        }
        if list.count < order.count, let next = writers[order[list.count]], next != number {
            add(number, next, .readWrite)
        }
    }

    private mutating func addWriteEdges() {
        for list in history.final.values {
            for (one, other) in zip(list, list.dropFirst()) {
                guard let before = writers[one], let after = writers[other], before != after else { continue }
                add(before, after, .writeWrite)
            }
        }
    }

    private mutating func add(_ from: Int, _ to: Int, _ kind: Edge) {
        edges[from].append((to, kind))
        counts[kind.rawValue] += 1
    }

    // MARK: - Cycles

    private mutating func judge() {
        let dirty = components(graph { _, _, kind in kind == .writeWrite })
        for cycle in dirty {
            findings.append("dirty write: a cycle of \(cycle.count) transactions, \(cycle.prefix(5))")
        }
        let circular = components(graph { _, _, kind in kind != .readWrite })
        if dirty.isEmpty {
            for cycle in circular {
                findings.append("circular reads: \(cycle.count) transactions, \(cycle.prefix(5))")
            }
        }
        if circular.isEmpty {
            for cycle in components(snapshotGraph) {
                let members = Set(cycle.map { $0 / 2 }).sorted()
                findings.append("read skew within a version: \(members.count) transactions, \(members.prefix(5))")
            }
        }
        let skewed = components(graph { _, _, _ in true })
        // The transactions that are checked on saving must be serialisable among themselves.
        let transactions = history.transactions
        let strict = components(graph { from, to, _ in transactions[from].isChecked && transactions[to].isChecked })
        for cycle in strict {
            findings.append("write skew among checked transactions: \(cycle.count), such as \(cycle.prefix(5))")
        }
        figures = [
            ("edges", counts.reduce(0, +)), ("allowed-skews", skewed.count),
            ("largest", skewed.map(\.count).max() ?? 0),
        ]
    }

    /// The transactions that follow each transaction.
    private func graph(_ follows: (_ from: Int, _ to: Int, _ kind: Edge) -> Bool) -> [[Int]] {
        edges.indices.map { from in edges[from].filter { follows(from, $0.to, $0.kind) }.map(\.to) }
    }

    /// The paths on which no two read-write edges follow each other.
    ///
    /// Each transaction is two nodes: a path that is at the odd one has just come by a read-write edge. Among
    /// transactions that read one version each, and that are refused if what they write has changed since, a cycle
    /// needs two such edges in a row (Fekete and others, "Making Snapshot Isolation Serializable"). Other
    /// transactions may have read versions of any time, so their read-write edges prove nothing; their writes do.
    private var snapshotGraph: [[Int]] {
        (0..<edges.count * 2).map { node in
            let from = node / 2
            return edges[from].compactMap { to, kind in
                guard kind == .readWrite else { return to * 2 }
                return node % 2 == 0 && history.transactions[from].isPinned ? to * 2 + 1 : nil
            }
        }
    }

    /// The sets of more than one node that reach each other, by Tarjan's algorithm without recursion.
    private func components(_ graph: [[Int]]) -> [[Int]] {
        var index = Array(repeating: -1, count: graph.count)
        var low = index
        var isOnStack = Array(repeating: false, count: graph.count)
        var stack: [Int] = []
        var found: [[Int]] = []
        var next = 0
        for root in graph.indices where index[root] < 0 {
            var frames: [(node: Int, edge: Int)] = [(root, 0)]
            while let (node, edge) = frames.last {
                if edge == 0 {
                    index[node] = next
                    low[node] = next
                    next += 1
                    stack.append(node)
                    isOnStack[node] = true
                }
                if edge < graph[node].count {
                    frames[frames.count - 1].edge += 1
                    let to = graph[node][edge]
                    if index[to] < 0 {
                        frames.append((to, 0))
                    } else if isOnStack[to] {
                        low[node] = min(low[node], index[to])
                    }
                    continue
                }
                frames.removeLast()
                if let above = frames.last?.node { low[above] = min(low[above], low[node]) }
                guard low[node] == index[node] else { continue }
                var component: [Int] = []
                while let member = stack.popLast() {
                    isOnStack[member] = false
                    component.append(member)
                    if member == node { break }
                }
                if component.count > 1 { found.append(component.sorted()) }
            }
        }
        return found
    }
}
