import CoreData

/// One way of trying to break the framework.
protocol Scenario: SendableMetatype {
    /// What it is called on the command line.
    static var name: String { get }
    /// What it does and demands, in a line.
    static var summary: String { get }
    /// The stores on which it makes sense.
    static var stores: [StoreKind] { get }
    /// Whether it runs on PostgreSQL as well, if the command line asks for that.
    static var runsOnPostgreSQL: Bool { get }
    /// How long it runs on each store unless told otherwise, in seconds.
    static var seconds: Double { get }
    /// The figure that counts its work, and the number below which a run proves nothing.
    static var work: (figure: String, floor: Int) { get }
    /// A second figure that has to reach a number on PostgreSQL, if there is one.
    static var databaseWork: (figure: String, floor: Int)? { get }
    /// The figure that counts what a ``Machine`` does.
    static var part: String { get }
    /// The options of its own.
    static var knobs: [Knob] { get }
    /// The kinds of trouble that it makes, to one of which a run can be kept.
    static var parts: [String] { get }
    /// What can be broken on purpose, to see that it is noticed.
    static var sabotages: [Sabotage] { get }

    /// Runs until `run` is over, and tells it what was done and found.
    ///
    /// - Parameter run: What it works with.
    /// - Throws: What keeps it from running, which is a failure of the harness.
    static func run(_ run: Run) throws

    /// Takes part in the run of another process, as a ``Machine`` does.
    ///
    /// - Parameter run: The same run, as this process sees it.
    /// - Returns: What the other process has to know of it.
    /// - Throws: What keeps it from taking part.
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

    /// The figures that have to reach a number on a kind of store.
    static func works(on kind: StoreKind) -> [(figure: String, floor: Int)] {
        kind == .postgresql ? [work] + [databaseWork].compactMap { $0 } : [work]
    }

    /// Whether it can run on a kind of store.
    static func runs(on kind: StoreKind) -> Bool { stores.contains(kind) || runsOnPostgreSQL && kind == .postgresql }
}

/// All scenarios, in the order in which `stress all` runs them.
let allScenarios: [any Scenario.Type] = [
    Bank.self, Ring.self, Append.self, Anomalies.self, Interleave.self, Nested.self, Converge.self,
    SocietyScenario.self, Deadlock.self, Cancel.self, Batch.self, Answers.self, Replica.self, Mixed.self,
    Crash.self, PowerLoss.self, Processes.self, Soak.self, Hostile.self, IOFault.self,
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

/// A guard that can be switched off.
struct Sabotage: Equatable {
    let name: String
    /// How the run must end; `nil` for a stop of the program.
    let exit: StressExit?
    /// A text that the first finding must contain, so that it is caught for the right reason.
    let sign: String
    /// The store on which it is one, if that is not the scenario's first.
    let store: StoreKind?

    init(_ name: String, _ sign: String, exit: StressExit? = .anomaly, store: StoreKind? = nil) {
        (self.name, self.sign, self.exit, self.store) = (name, sign, exit, store)
    }

    /// One that switches a guard of the library off; none in builds that have no such switch.
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

    /// Whether several coordinators may have one store, contexts can be pinned to versions, and a history is kept.
    var isShared: Bool { self != .memory }

    /// The URL of a store that is named like a file.
    func place(_ file: URL) -> URL { self == .postgresql ? DatabasePlace.url(for: file) : file }
}

/// Why the harness cannot go on.
struct StressError: LocalizedError, Equatable {
    let errorDescription: String?

    init(_ text: String) { errorDescription = text }
}
