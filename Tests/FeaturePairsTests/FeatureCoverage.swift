import TestSupport

/// The pairs of operations that have come directly after one another, on each kind of store.
struct FeatureCoverage: CustomStringConvertible {
    private struct Pair: Hashable {
        var kind: StoreKind
        var first: Int
        var second: Int
    }

    private var counts: [Pair: Int] = [:]
    /// How many other operations each has followed, on each kind of store.
    private var followed: [StoreKind: [Int: Int]] = [:]

    /// All operations, in the order in which they are tried after another one: those first that have not followed it, and
    /// of these the rarest.
    ///
    /// Some are only possible at few moments, so they must not be missed then.
    func order(after last: Int?, _ kind: StoreKind, _ random: inout SeededRandom) -> [Int] {
        let shuffled = FeatureOperation.all.indices.shuffled(using: &random)
        guard let last else { return shuffled }
        func isNew(_ operation: Int) -> Bool { counts[Pair(kind: kind, first: last, second: operation)] == nil }
        let known = followed[kind] ?? [:]
        let new = shuffled.filter(isNew).sorted { known[$0, default: 0] < known[$1, default: 0] }
        return new + shuffled.filter { !isNew($0) }
    }

    mutating func note(_ first: Int, _ second: Int, _ kind: StoreKind) {
        let pair = Pair(kind: kind, first: first, second: second)
        if counts[pair] == nil { followed[kind, default: [:]][second, default: 0] += 1 }
        counts[pair, default: 0] += 1
    }

    mutating func add(_ other: FeatureCoverage) { counts.merge(other.counts) { $0 + $1 } }

    /// The number of pairs that were made on a kind of store.
    func pairs(_ kind: StoreKind) -> Int { counts.keys.count { $0.kind == kind } }

    /// The steps on a kind of store.
    func steps(_ kind: StoreKind) -> Int { counts.filter { $0.key.kind == kind }.values.reduce(0, +) }

    /// A line for each kind of store, and the operations that the fewest others came before or after.
    var description: String {
        let all = FeatureOperation.all
        return Set(counts.keys.map(\.kind)).sorted { $0.rawValue < $1.rawValue }.map { kind in
            let partners = all.indices.map { operation in
                counts.keys.count { $0.kind == kind && ($0.first == operation || $0.second == operation) }
            }
            let rarest = all.indices.sorted { partners[$0] < partners[$1] }.prefix(12).map {
                "\(all[$0].name) \(partners[$0])"
            }
            return "\(kind): \(pairs(kind)) of \(all.count * all.count) ordered pairs of \(all.count) operations, "
                + "\(steps(kind)) steps; fewest partners: \(rarest.joined(separator: ", "))"
        }.joined(separator: "\n")
    }
}
