/// A step of a scripted transaction.
enum AnomalyStep: Sendable {
    case read([String])
    case write([String: Int64])
    /// Adds one to the value that was read last.
    case increment(String)
    /// Counts the rows with a value of 30.
    case scan
    /// Inserts a row with that value.
    case insert
    case save
    case rollback
}

/// The outcome of one order of a case's steps.
struct AnomalyOutcome {
    struct Part {
        /// The values read by name, in order.
        var reads: [(name: String, value: Int64)] = []
        var scans: [Int] = []
        var isSaved = false

        func read(_ name: String) -> Int64? { reads.last { $0.name == name }?.value }
    }

    /// The part of each transaction.
    var parts: [Part]
    /// The transactions in the order in which their saves succeeded.
    var saved: [Int] = []
    /// The values at the end.
    var final: [String: Int64] = [:]
}

/// One of the classic anomalies: transactions of fixed steps, and a test that shows whether it has happened.
struct AnomalyCase: Sendable {
    let name: String
    let scripts: [[AnomalyStep]]
    let hasHappened: @Sendable (AnomalyOutcome) -> Bool

    /// Dirty write: both transactions succeed, each with one of its two writes.
    private static let g0 = AnomalyCase(
        name: "G0",
        scripts: [
            [.write(["x": 11]), .write(["y": 11]), .save], [.write(["x": 12]), .write(["y": 12]), .save],
        ],
        hasHappened: { $0.saved.count == 2 && $0.final["x"] != $0.final["y"] }
    )
    /// Reads a value that is then rolled back.
    private static let g1a = AnomalyCase(
        name: "G1a",
        scripts: [[.write(["x": 101]), .rollback], [.read(["x"]), .read(["x"])]],
        hasHappened: { $0.parts[1].reads.contains { $0.value == 101 } }
    )
    /// Reads a value that is overwritten before the save.
    private static let g1b = AnomalyCase(
        name: "G1b",
        scripts: [[.write(["x": 101]), .write(["x": 11]), .save], [.read(["x"]), .read(["x"])]],
        hasHappened: { $0.parts[1].reads.contains { $0.value == 101 } }
    )
    /// Each transaction reads what the other writes.
    private static let g1c = AnomalyCase(
        name: "G1c",
        scripts: [
            [.write(["x": 11]), .read(["y"]), .save], [.write(["y": 22]), .read(["x"]), .save],
        ],
        hasHappened: { $0.saved.count == 2 && $0.parts[0].read("y") == 22 && $0.parts[1].read("x") == 11 }
    )
    /// The effect of a transaction vanishes: an older value is read after a newer one.
    private static let otv = AnomalyCase(
        name: "OTV",
        scripts: [
            [.write(["x": 11, "y": 21]), .save], [.write(["x": 12, "y": 22]), .save], [.read(["x"]), .read(["y"])],
        ],
        hasHappened: { outcome in
            guard let x = outcome.parts[2].read("x"), let y = outcome.parts[2].read("y") else { return false }
            let ages = [10] + outcome.saved.filter { $0 < 2 }.map { Int64(11 + $0) }
            guard let ageOfX = ages.firstIndex(of: x), let ageOfY = ages.firstIndex(of: y - 10) else { return true }
            return ageOfY < ageOfX
        }
    )
    /// The same predicate returns another result.
    private static let pmp = AnomalyCase(
        name: "PMP",
        scripts: [[.scan, .scan], [.insert, .save]],
        hasHappened: { $0.parts[0].scans.first != $0.parts[0].scans.last }
    )
    /// Lost update.
    private static let p4 = AnomalyCase(
        name: "P4",
        scripts: [[.read(["x"]), .increment("x"), .save], [.read(["x"]), .increment("x"), .save]],
        hasHappened: { $0.saved.count == 2 && $0.final["x"] == 11 }
    )
    /// Read skew: an old value beside a new one.
    private static let gSingle = AnomalyCase(
        name: "G-single",
        scripts: [[.read(["x"]), .read(["y"])], [.write(["x": 12, "y": 22]), .save]],
        hasHappened: { $0.parts[0].read("x") == 10 && $0.parts[0].read("y") == 22 }
    )
    /// Write skew: each transaction writes one of two values that both have read.
    private static let g2Item = AnomalyCase(
        name: "G2-item",
        scripts: [
            [.read(["x", "y"]), .write(["x": 11]), .save], [.read(["x", "y"]), .write(["y": 21]), .save],
        ],
        hasHappened: { $0.saved.count == 2 && $0.parts[0].read("y") == 20 && $0.parts[1].read("x") == 10 }
    )
    /// Write skew over a predicate: each transaction finds nothing, and inserts.
    private static let g2 = AnomalyCase(
        name: "G2",
        scripts: [[.scan, .insert, .save], [.scan, .insert, .save]],
        hasHappened: { $0.saved.count == 2 && $0.parts.allSatisfy { $0.scans == [0] } }
    )

    static let all = [g0, g1a, g1b, g1c, otv, pmp, p4, gSingle, g2Item, g2]

    /// Every order of the steps that keeps the order of each transaction, as the numbers of the transactions in turn.
    var orders: [[Int]] { Interleavings(scripts.map(\.count)).all }

    /// The steps of one order, one a line.
    func listing(_ order: [Int]) -> String {
        var done = scripts.map { _ in 0 }
        return order.map { turn in
            defer { done[turn] += 1 }
            return "    transaction \(turn): \(scripts[turn][done[turn]])"
        }.joined(separator: "\n")
    }
}
