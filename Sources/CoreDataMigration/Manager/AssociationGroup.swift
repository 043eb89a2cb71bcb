import CoreDataEssentials

/// The associated keys of one source entity and one destination entity.
///
/// Usually both keys increase by one from pair to pair, because objects are read in the order of their keys, and the
/// objects made from them keep these keys or get new ones in order. Such a stretch takes 24 bytes, whatever its length.
/// Pairs that are out of order take 16 bytes each.
///
/// Only the thread that migrates uses it.
struct AssociationGroup {
    struct Pair {
        let source: Int64
        let destination: Int64
    }

    /// A sequence of pairs in which both keys increase by one from pair to pair.
    private struct Stretch {
        let source: Int64
        let destination: Int64
        /// The number of pairs in the stretches before.
        let position: Int
    }

    /// The numbers of the entities.
    let source: Int
    let destination: Int
    /// The stretches in the order of sources, which is also the order of destinations.
    private var stretches: [Stretch] = []
    private var countInOrder = 0
    /// The pairs that were added when a greater source or a greater destination existed already.
    private var rest: [Pair] = []
    private var highest = Pair(source: .min, destination: .min)
    /// The places in `rest` in the order of keys, if that order differs; empty until the first lookup.
    private var restBySource: [Int32] = []
    private var restByDestination: [Int32] = []

    init(source: Int, destination: Int) {
        self.source = source
        self.destination = destination
    }

    var count: Int { countInOrder + rest.count }

    // MARK: - Adding

    mutating func append(_ pair: Pair) {
        defer {
            highest = Pair(
                source: max(highest.source, pair.source),
                destination: max(highest.destination, pair.destination)
            )
        }
        guard pair.source > highest.source, pair.destination > highest.destination else {
            rest.append(pair)
            (restBySource, restByDestination) = ([], [])
            return
        }
        defer { countInOrder += 1 }
        if let last = stretches.last {
            let length = Int64(countInOrder - last.position)
            if pair.source - last.source == length, pair.destination - last.destination == length { return }
        }
        stretches.append(Stretch(source: pair.source, destination: pair.destination, position: countInOrder))
    }

    // MARK: - Lookup

    /// Calls `body` with the pairs at some places: first the pairs in order, then the others as they were added.
    func forEachPair(in range: Range<Int>, _ body: (Pair) -> Void) {
        let inOrder = range.clamped(to: 0..<countInOrder)
        if !inOrder.isEmpty {
            var index = Self.last(stretches, where: { $0.position <= inOrder.lowerBound }) ?? 0
            for place in inOrder {
                if index + 1 < stretches.count, stretches[index + 1].position <= place { index += 1 }
                body(pair(at: Int64(place - stretches[index].position), of: stretches[index]))
            }
        }
        for place in range.clamped(to: countInOrder..<count) { body(rest[place - countInOrder]) }
    }

    /// - Complexity: O(log n); O(n log n) for the first lookup after pairs were added out of order.
    mutating func forEachDestination(of key: Int64, _ body: (Int64) -> Void) {
        if let index = Self.last(stretches, where: { $0.source <= key }), key - stretches[index].source < length(index)
        {
            body(stretches[index].destination + (key - stretches[index].source))
        }
        guard !rest.isEmpty else { return }
        if restBySource.isEmpty { restBySource = Self.order(rest, \.source) }
        Self.forEach(key, pairs: rest, places: restBySource, key: \.source) { body($0.destination) }
    }

    /// - Complexity: That of ``forEachDestination(of:_:)``.
    mutating func forEachSource(of key: Int64, _ body: (Int64) -> Void) {
        if let index = Self.last(stretches, where: { $0.destination <= key }),
            key - stretches[index].destination < length(index)
        {
            body(stretches[index].source + (key - stretches[index].destination))
        }
        guard !rest.isEmpty else { return }
        if restByDestination.isEmpty { restByDestination = Self.order(rest, \.destination) }
        Self.forEach(key, pairs: rest, places: restByDestination, key: \.destination) { body($0.source) }
    }

    // MARK: - Looking up

    private func pair(at offset: Int64, of stretch: Stretch) -> Pair {
        Pair(source: stretch.source + offset, destination: stretch.destination + offset)
    }

    /// The number of pairs in a stretch.
    private func length(_ index: Int) -> Int64 {
        let end = index + 1 < stretches.count ? stretches[index + 1].position : countInOrder
        return Int64(end - stretches[index].position)
    }

    /// The last stretch that fulfils a condition, which must hold for a prefix of the stretches.
    private static func last(_ stretches: [Stretch], where holds: (Stretch) -> Bool) -> Int? {
        let count = firstPlace(stretches.count) { !holds(stretches[$0]) }
        return count > 0 ? count - 1 : nil
    }

    /// The places in the order of keys; equal keys stay in the order in which they were added.
    private static func order(_ pairs: [Pair], _ key: KeyPath<Pair, Int64>) -> [Int32] {
        (0..<Int32(pairs.count)).sorted { (pairs[Int($0)][keyPath: key], $0) < (pairs[Int($1)][keyPath: key], $1) }
    }

    private static func forEach(
        _ wanted: Int64,
        pairs: [Pair],
        places: [Int32],
        key: KeyPath<Pair, Int64>,
        body: (Pair) -> Void
    ) {
        let first = firstPlace(places.count) { pairs[Int(places[$0])][keyPath: key] >= wanted }
        for place in places[first...] {
            let pair = pairs[Int(place)]
            guard pair[keyPath: key] == wanted else { break }
            body(pair)
        }
    }

    /// The first place that fulfils a condition, which must hold for all later places too.
    private static func firstPlace(_ count: Int, where holds: (Int) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
