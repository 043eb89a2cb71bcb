import Foundation
import StrataLocks
import SwiftData

#if canImport(SwiftDataPostgreSQL)
import SwiftDataPostgreSQL
#endif

/// Contexts and actors of one container change models of SwiftData in every way.
///
/// Each worker has separate barges, and a plain dictionary that says what they must show at each step. All barges lie at
/// the same wharfs. Each worker raises its beacon with each save, and reads the beacons of all others: once a save has
/// returned, each read shows it or a later one, and the parts of what is read belong together.
enum ModelScenario: Scenario {
    static let name = "models"
    static let summary = "changes models of SwiftData in several contexts and actors: each shows what a plain list says"
    static let stores: [StoreKind] = [.sqlite]
    static let runsOnPostgreSQL = true
    static let work = (figure: "steps", floor: 500)
    static let wharfs = Knob("wharfs", 4, "places that the objects of all workers share")
    static let knobs = [wharfs]
    static let sabotages =
        [
            Sabotage("kept-model", "still alive"), Sabotage("stray-write", "shows"),
            Sabotage("leak", "resident memory"), Sabotage("silent", "was not called"),
        ]
        + Sabotage.ofGuard("no-merge", "after a save of")

    static func run(_ run: Run) throws {
        let board = Board(workers: run.options.contexts)
        let container = try open(run)
        try fill(run, ModelContext(container))
        let fleets = Locked<[Int: BargeValues]>([:])
        let memory = Locked<[Int]>([])
        run.race(run.options.contexts + 1) { worker in
            guard worker.number < run.options.contexts else {
                let samples = ModelMemory.watch(worker)
                return memory.withLock { $0 = samples }
            }
            let end =
                worker.number % 2 == 0
                ? try Shipper(worker, container, board).work() : try ShippingActor.work(worker, container, board)
            fleets.withLock { $0.merge(end) { own, _ in own } }
        }
        ModelMemory.judge(run, memory.withLock { $0 })
        try settle(run, ModelContext(container), fleets.withLock { $0 }, board)
    }

    private static func open(_ run: Run) throws -> ModelContainer {
        let configuration: ModelConfiguration
        #if canImport(SwiftDataPostgreSQL)
        if run.kind == .postgresql {
            configuration = ModelConfiguration(postgreSQL: run.placeOfStore)
        } else {
            configuration = ModelConfiguration(url: run.storeURL)
        }
        #else
        configuration = ModelConfiguration(url: run.storeURL)
        #endif
        return try ModelContainer(for: Barge.self, Wharf.self, Beacon.self, configurations: configuration)
    }

    private static func fill(_ run: Run, _ context: ModelContext) throws {
        for number in 0..<max(run.knob(wharfs), 1) { context.insert(Wharf(number: number)) }
        for owner in 0..<run.options.contexts { context.insert(Beacon(owner: owner)) }
        try context.save()
    }

    /// Compares the store with what the workers have saved.
    private static func settle(_ run: Run, _ context: ModelContext, _ fleet: [Int: BargeValues], _ board: Board) throws
    {
        let barges = try context.fetch(FetchDescriptor<Barge>())
        var missing = fleet
        for barge in barges {
            let wanted = missing.removeValue(forKey: barge.code)
            if barge.shown != wanted {
                run.find("the store shows \(barge.shown) for \(barge.code), not \(String(describing: wanted))")
            }
        }
        for code in missing.keys { run.find("the store shows nothing for \(code)") }
        for wharf in try context.fetch(FetchDescriptor<Wharf>()) {
            let wanted = Set(fleet.filter { $0.value.wharf == wharf.number }.keys)
            let found = Set(wharf.barges.map(\.code))
            if found != wanted { run.find("wharf \(wharf.number) shows \(found.sorted()), not \(wanted.sorted())") }
        }
        for beacon in try context.fetch(FetchDescriptor<Beacon>()) {
            let count = board.saved(by: beacon.owner)
            if beacon.count != count { run.find("beacon \(beacon.owner) shows \(beacon.count), not \(count)") }
        }
    }
}

/// The counts of the beacons, which all workers share.
final class Board: Sendable {
    private struct Counts {
        /// The count of the last save that has returned.
        var saved = 0
        /// The count of the last save that was begun.
        var begun = 0
    }

    private let counts: Locked<[Counts]>

    init(workers: Int) { counts = Locked(Array(repeating: Counts(), count: workers)) }

    func begin(_ count: Int, by owner: Int) { counts.withLock { $0[owner].begun = count } }
    func end(_ count: Int, by owner: Int) { counts.withLock { $0[owner].saved = count } }
    func saved(by owner: Int) -> Int { counts.withLock { $0[owner].saved } }
    func begun(by owner: Int) -> Int { counts.withLock { $0[owner].begun } }
}

/// A worker whose context belongs to an actor.
@ModelActor
actor ShippingActor {
    /// Runs the work of a thread in an actor.
    static func work(_ worker: Worker, _ container: ModelContainer, _ board: Board) throws -> [Int: BargeValues] {
        let sent = SentWorker(worker: worker)
        let result = Locked<Result<[Int: BargeValues], any Error>?>(nil)
        let end = DispatchSemaphore(value: 0)
        Task.detached {
            let actor = ShippingActor(modelContainer: container)
            do {
                let fleet = try await actor.ship(sent, board)
                result.withLock { $0 = .success(fleet) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            end.signal()
        }
        end.wait()
        return try result.withLock { $0 }?.get() ?? [:]
    }

    private func ship(_ sent: SentWorker, _ board: Board) throws -> [Int: BargeValues] {
        try Shipper(sent.worker, modelContainer, board, modelContext).work()
    }

    private struct SentWorker: @unchecked Sendable {
        // @unchecked Sendable: the thread of the worker waits, so that one thread at a time uses it.
        let worker: Worker
    }
}
