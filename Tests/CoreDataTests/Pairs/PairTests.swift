import CoreData
import Expectations
import TestSupport
import Testing

/// Operations of different features on one item, one after another, compared with a plain reference after each step.
@Suite("Pairs of features")
struct PairTests {
    /// Each look at a relationship is a round trip to a server.
    private static let seeds = StoreKind.isPostgreSQL ? Array(DifferentialSeeds.all.prefix(1)) : DifferentialSeeds.all

    /// Each seed has a tenth of the pairs, so ten seeds have all.
    @Test(arguments: StoreKind.allCases, seeds)
    func `after each operation, each other one does what it does alone`(_ kind: StoreKind, _ seed: UInt64) throws {
        let operations = PairOperation.all
        for isStored in [true, false] {
            for (place, first) in operations.enumerated() {
                // A new store for each first operation: keys of all entities begin at 1, and are the same.
                let seconds = operations.enumerated().filter { ($0.offset + place) % 10 == Int(seed % 10) }
                let world = try PairWorld(kind)
                for second in seconds {
                    try world.begin(isStored: isStored)
                    try play([first, second.element], world)
                }
                expectEqual(try world.stack.state().lines.filter { $0.hasPrefix("problem") }, [], "after \(first)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases, seeds)
    func `operations in any order do what they do alone`(_ kind: StoreKind, _ seed: UInt64) throws {
        var random = SeededRandom(seed: seed &* 977)
        var done = 0
        for _ in 0..<12 {
            let world = try PairWorld(kind)
            for _ in 0..<4 {
                try world.begin(isStored: Bool.random(using: &random))
                let drawn = (0..<8).compactMap { _ in PairOperation.all.randomElement(using: &random) }
                done += try play(drawn, world)
            }
            expectEqual(try world.stack.state().lines.filter { $0.hasPrefix("problem") }, [], "seed \(seed)")
        }
        expect(done > 150, "\(done) operations were possible")
    }

    /// Makes the operations that are possible, and checks the state after each, after a save, and after all was read again.
    ///
    /// - Returns: The number of operations that were possible.
    @discardableResult
    private func play(_ operations: [PairOperation], _ world: PairWorld) throws -> Int {
        var done: [String] = []
        for operation in operations where operation.isPossible(world) {
            done.append(operation.name)
            let moment = "\(world.stack.kind): \(done.joined(separator: ", then "))"
            do {
                try operation.run(world)
                try world.check(moment)
                try world.checkStore(moment)
            } catch {
                expect(false, "\(moment): \(error)")
                return done.count
            }
        }
        let moment = "\(world.stack.kind): \(done.joined(separator: ", then "))"
        try world.context.saveAndWait()
        world.reference.save()
        world.context.performAndWait { world.context.refreshAllObjects() }
        try world.check("\(moment), saved and read again")
        try world.checkStore("\(moment), saved")
        return done.count
    }
}
