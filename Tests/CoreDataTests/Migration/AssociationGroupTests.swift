import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Keys that a migration has associated")
struct AssociationGroupTests {
    typealias Pair = AssociationGroup.Pair

    /// Compares the group's answer for each key with a list of the pairs.
    private func check(_ pairs: [Pair], _ note: String) {
        var group = AssociationGroup(source: 1, destination: 2)
        for (number, pair) in pairs.enumerated() {
            group.append(pair)
            // These reads come between the insertions, since a read puts the pairs in order.
            if number % 7 == 0 { group.forEachDestination(of: pair.source) { _ in } }
        }
        expectEqual(group.count, pairs.count, "\(note)")
        for key in Set(pairs.map(\.source)).union([-1, 0, 1_000_000]) {
            var found: [Int64] = []
            group.forEachDestination(of: key) { found.append($0) }
            expectEqual(found, pairs.filter { $0.source == key }.map(\.destination), "\(note), source \(key)")
        }
        for key in Set(pairs.map(\.destination)).union([-1, 0, 1_000_000]) {
            var found: [Int64] = []
            group.forEachSource(of: key) { found.append($0) }
            expectEqual(found, pairs.filter { $0.destination == key }.map(\.source), "\(note), destination \(key)")
        }
        // Windows over the group give each pair once.
        var seen: [[Int64]] = []
        for start in stride(from: 0, to: pairs.count, by: 5) {
            group.forEachPair(in: start..<min(start + 5, pairs.count)) { seen.append([$0.source, $0.destination]) }
        }
        let expected = pairs.map { [$0.source, $0.destination] }
        expect(
            seen.sorted { $0.lexicographicallyPrecedes($1) } == expected.sorted { $0.lexicographicallyPrecedes($1) },
            "\(note)"
        )
    }

    @Test func `keys that go up by one, with gaps, and in reverse`() {
        check((1...40).map { Pair(source: $0, destination: $0 + 7) }, "a stretch")
        check((1...40).map { Pair(source: $0 / 10 * 3 + $0, destination: $0) }, "gaps on one side")
        check((1...40).map { Pair(source: 41 - $0, destination: $0) }, "in reverse")
    }

    @Test func `several of one, and one of several, come in the order of association`() {
        check((0..<40).map { Pair(source: $0 / 3, destination: $0) }, "three of each")
        check((0..<40).map { Pair(source: $0, destination: $0 / 3) }, "one of three")
        let first = (1...20).map { Pair(source: $0, destination: $0) }
        check(first + first.map { Pair(source: $0.source, destination: 40 - $0.source) }, "all of them once more")
        // The second pair is out of order by its destination alone. The third pair has the same source.
        let late: [(Int64, Int64)] = [(1, 9), (5, 3), (5, 12)]
        check(late.map { Pair(source: $0.0, destination: $0.1) }, "late")
    }

    @Test(arguments: 1...20)
    func `random pairs`(seed: Int) {
        var random = SeededRandom(seed: UInt64(seed))
        var pairs: [Pair] = []
        var (source, destination): (Int64, Int64) = (0, 0)
        for _ in 0..<200 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0: source = .random(in: 0...60, using: &random)
            case 1: destination = .random(in: 0...60, using: &random)
            case 2: source += .random(in: 0...3, using: &random)
            default: (source, destination) = (source + 1, destination + 1)
            }
            pairs.append(Pair(source: source, destination: destination))
        }
        check(pairs, "seed \(seed)")
    }
}
