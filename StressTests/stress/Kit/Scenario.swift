import CoreData

/// One way of trying to break the framework.
protocol Scenario: SendableMetatype {
    /// The name on the command line.
    static var name: String { get }
    /// One line on what it does and demands.
    static var summary: String { get }
    /// The stores on which it makes sense.
    static var stores: [StoreKind] { get }
    /// Whether it also runs on PostgreSQL if the command line asks for that.
    static var runsOnPostgreSQL: Bool { get }
    /// How many seconds it runs on each store by default.
    static var seconds: Double { get }
    /// The figure that counts its work, and the number below which a run proves nothing.
    static var work: (figure: String, floor: Int) { get }
    /// A second figure that must reach a number on PostgreSQL, if there is one.
    static var databaseWork: (figure: String, floor: Int)? { get }
    /// The figure that counts the work of a ``Machine``.
    static var part: String { get }
    /// The scenario's own options.
    static var knobs: [Knob] { get }
    /// The kinds of trouble that it makes; a run can be limited to one of them.
    static var parts: [String] { get }
    /// The guards that can be broken on purpose, to see that a run notices it.
    static var sabotages: [Sabotage] { get }

    /// Runs until `run` is over, and reports its work and its findings to it.
    ///
    /// - Parameter run: The run.
    /// - Throws: Errors that keep it from running, which are failures of the harness.
    static func run(_ run: Run) throws

    /// Takes part in the run of another process, as a ``Machine`` does.
    ///
    /// - Parameter run: The same run, as this process sees it.
    /// - Returns: The result that the other process needs.
    /// - Throws: Errors that keep it from taking part.
    static func takePart(in run: Run) throws -> Data
}

extension Scenario {
    static var stores: [StoreKind] { [.sqlite, .memory] }
    static var runsOnPostgreSQL: Bool { false }
    static var seconds: Double { 5 }
    static var databaseWork: (figure: String, floor: Int)? { nil }
    static var part: String { work.figure }
    static var knobs: [Knob] { [] }
    static var parts: [String] { [] }

    static func takePart(in run: Run) throws -> Data {
        throw StressError("\(name) has no part for another process")
    }

    /// The figures that must reach a number on a kind of store.
    static func works(on kind: StoreKind) -> [(figure: String, floor: Int)] {
        kind == .postgresql ? [work] + [databaseWork].compactMap { $0 } : [work]
    }

    /// Whether the scenario can run on a kind of store.
    static func runs(on kind: StoreKind) -> Bool { stores.contains(kind) || runsOnPostgreSQL && kind == .postgresql }
}

/// All scenarios, in the order in which `stress all` runs them.
let allScenarios: [any Scenario.Type] = [
    Bank.self, Ring.self, Append.self, Anomalies.self, Interleave.self, Nested.self, Converge.self,
    SocietyScenario.self, Deadlock.self, Cancel.self, Batch.self, Answers.self, Replica.self, Mixed.self,
    Crash.self, PowerLoss.self, Processes.self, Jobs.self, ModelScenario.self, Soak.self, Hostile.self, IOFault.self,
]

/// An option of a scenario, a whole number.
struct Knob: Equatable {
    let name: String
    let standard: Int
    let help: String

    init(_ name: String, _ standard: Int, _ help: String) {
        (self.name, self.standard, self.help) = (name, standard, help)
    }
}

/// A guard that can be broken on purpose.
struct Sabotage: Equatable {
    let name: String
    /// How the run must end; `nil` if the program must be stopped by a signal.
    let exit: StressExit?
    /// A text that a finding must contain, so that the sabotage is caught for the right reason.
    let sign: String
    /// The store on which the sabotage works, if that is not the scenario's first.
    let store: StoreKind?

    init(_ name: String, _ sign: String, exit: StressExit? = .anomaly, store: StoreKind? = nil) {
        (self.name, self.sign, self.exit, self.store) = (name, sign, exit, store)
    }

    /// A sabotage that switches a guard of the library off; none in builds that have no such switch.
    static func ofGuard(_ name: String, _ sign: String, store: StoreKind? = nil) -> [Sabotage] {
        FaultPoints.guards.contains(name) ? [Sabotage(name, sign, store: store)] : []
    }
}

/// The stores that a scenario can run on.
enum StoreKind: String, CaseIterable {
    case sqlite
    case memory
    case postgresql

    var type: NSPersistentStore.StoreType {
        switch self {
        case .sqlite: .sqlite
        case .memory: .inMemory
        case .postgresql: DatabasePlace.type
        }
    }

    /// Whether several coordinators can share a store, contexts can be pinned to versions, and a history can be kept.
    var isShared: Bool { self != .memory }

    /// The URL of a store, which is named like a file.
    func place(_ file: URL) -> URL { self == .postgresql ? DatabasePlace.url(for: file) : file }
}

/// The reason why the harness cannot go on.
struct StressError: LocalizedError, Equatable {
    let errorDescription: String?

    init(_ text: String) { errorDescription = text }
}
