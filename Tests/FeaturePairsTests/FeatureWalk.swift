import CoreData
import Foundation
import TestSupport

/// Walks from one operation to the next, all about one item, and compares the whole state after each.
///
/// The next operation is one that has not yet come directly after the last one, as long as there is such a one. So few
/// steps make each pair, in both orders. A walk that fails is made again with fewer and fewer steps.
struct FeatureWalk {
    struct Step {
        var operation: Int
        /// Whether the context is looked at after it.
        ///
        /// If not, then the next operation finds faults.
        var looks: Bool
        /// Whether the state is read by another coordinator after it, and the store is checked for damage.
        var looksAtAll: Bool
    }

    /// What was wrong, and the steps that lead there.
    struct Failure: CustomStringConvertible {
        var text: String
        var kind: StoreKind
        var isStored: Bool
        var steps: [Step]

        var description: String {
            let names = steps.map { step in
                let marks = (step.looks ? "" : " (no look)") + (step.looksAtAll ? " (whole)" : "")
                return FeatureOperation.all[step.operation].name + marks
            }
            return "\(kind), \(isStored ? "stored" : "new") item: \(names.joined(separator: "; ")): \(text)"
        }
    }

    let kind: StoreKind
    private var random: SeededRandom

    init(_ kind: StoreKind, seed: UInt64) {
        self.kind = kind
        random = SeededRandom(seed: seed)
    }

    /// Makes a walk on a new store.
    ///
    /// - Parameters:
    ///   - length: The number of steps.
    ///   - coverage: The pairs that were made before; those of this walk are added.
    /// - Returns: The failure, cut down; `nil` if all is as it should be.
    /// - Throws: Errors that keep a walk from beginning.
    mutating func go(_ length: Int, _ coverage: inout FeatureCoverage) throws -> Failure? {
        let isStored = random.chance(70)
        let world = try FeatureWorld(kind)
        try world.begin(isStored: isStored)
        var steps: [Step] = []
        var last: Int?
        while steps.count < length {
            var isMade = false
            for operation in coverage.order(after: last, kind, &random) {
                let step = Step(operation: operation, looks: random.chance(75), looksAtAll: random.chance(5))
                do {
                    guard try Self.make(step, world) else { continue }
                } catch {
                    steps.append(step)
                    return cutDown(Failure(text: "\(error)", kind: kind, isStored: isStored, steps: steps))
                }
                steps.append(step)
                if let last { coverage.note(last, operation, kind) }
                last = operation
                isMade = true
                break
            }
            if !isMade { break }
        }
        do { try Self.end(world) } catch {
            return cutDown(Failure(text: "\(error)", kind: kind, isStored: isStored, steps: steps))
        }
        return nil
    }

    private static let isTraced = ProcessInfo.processInfo.environment["STRATA_WALK_TRACE"] != nil

    private static func make(_ step: Step, _ world: FeatureWorld) throws -> Bool {
        let operation = FeatureOperation.all[step.operation]
        if isTraced { FileHandle.standardError.write(Data("\(world.kind) \(operation.name)\n".utf8)) }
        world.refocus()
        guard try operation.run(world) else { return false }
        if step.looks { try world.checkContext() }
        try world.checkStore()
        if step.looksAtAll { try world.checkWhole() }
        return true
    }

    /// Saves what is left, and looks at everything.
    private static func end(_ world: FeatureWorld) throws {
        try world.checkContext()
        try world.save()
        try world.checkContext()
        try world.checkStore()
        try world.checkWhole()
    }

    /// Makes the steps that are possible; returns what is wrong.
    static func play(_ steps: [Step], _ kind: StoreKind, isStored: Bool) -> String? {
        do {
            let world = try FeatureWorld(kind)
            try world.begin(isStored: isStored)
            for step in steps { _ = try make(step, world) }
            try end(world)
            return nil
        } catch { return "\(error)" }
    }

    /// Leaves out steps as long as the walk still fails.
    private func cutDown(_ failure: Failure) -> Failure {
        var least = failure
        var size = max(failure.steps.count / 2, 1)
        var attempts = 0
        while attempts < 300 {
            var isShorter = false
            var start = 0
            while start < least.steps.count, attempts < 300 {
                var steps = least.steps
                steps.removeSubrange(start..<min(start + size, steps.count))
                attempts += 1
                if let text = Self.play(steps, kind, isStored: failure.isStored) {
                    (least.steps, least.text, isShorter) = (steps, text, true)
                } else {
                    start += size
                }
            }
            if !isShorter {
                if size == 1 { break }
                size = max(size / 2, 1)
            }
        }
        return least
    }
}
