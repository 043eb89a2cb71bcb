import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataSQL

@Suite("Positions in ordered relationships")
struct OrderKeysTests {
    @Test(arguments: [
        // New members get sparse numbers.
        (members: [1, 2, 3], now: [:], then: [1: 2048, 2: 3072, 3: 4096]),
        // Members that are in order keep their numbers.
        (members: [1, 2, 3], now: [1: 5, 2: 6, 3: 7], then: [:]),
        (members: [1, 2, 3, 4], now: [1: 2048, 2: 3072], then: [3: 4096, 4: 5120]),
        // A member that moves takes a number between its neighbours.
        (members: [3, 1, 2], now: [1: 2048, 2: 3072, 3: 4096], then: [3: 1024]),
        (members: [1, 3, 4, 2], now: [1: 2048, 2: 3072], then: [3: 2389, 4: 2730]),
        // Equal positions give no order.
        (members: [1, 2], now: [1: 2048, 2: 2048], then: [1: 1024]),
        // There is no room, so all members get new numbers.
        (members: [1, 3, 2], now: [1: 7, 2: 8], then: [1: 2048, 3: 3072, 2: 4096]),
    ])
    func `change as little as possible`(_ example: (members: [Int64], now: [Int64: Int64], then: [Int64: Int64])) {
        let assigned = OrderKeys.assign(example.members) { example.now[$0] }

        expectEqual(Dictionary(uniqueKeysWithValues: assigned), example.then)
    }

    @Test func `random moves keep the order`() {
        var members = Array(Int64(1)...60)
        var positions: [Int64: Int64] = [:]
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let moved = members.remove(at: Int.random(in: members.indices, using: &generator))
            members.insert(moved, at: Int.random(in: 0...members.count, using: &generator))

            for (member, position) in OrderKeys.assign(members, position: { positions[$0] }) {
                positions[member] = position
            }

            expectEqual(members.map { positions[$0] ?? 0 }, members.map { positions[$0] ?? 0 }.sorted())
            expectEqual(Set(positions.values).count, members.count)
        }
    }
}
