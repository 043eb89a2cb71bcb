#if Schedules
import CoreData
import Foundation
import StrataLocks

/// Runs programs under one schedule after the other.
struct Lane {
    struct WrongArgument: Error, CustomStringConvertible { let description: String }

    private var chosen: [any Program.Type] = []
    private var seed: UInt64 = 1
    private var schedules: UInt64 = 200
    private var only: UInt64?
    private var steps: Int?
    private var seconds = 60.0
    private var guarding: String?
    private var leftOut: Set<Int> = []
    private var hunt: Double?
    /// The time after which a second thread runs beside one without a step, in nanoseconds; `nil` if the seed alone decides.
    private var beside: UInt64?

    init(_ arguments: [String], _ programs: [any Program.Type], usage: String) throws {
        var arguments = arguments[...]
        while let argument = arguments.popFirst() {
            guard argument.hasPrefix("--") else {
                guard let program = programs.first(where: { $0.name == argument }) else {
                    throw WrongArgument(description: "there is no program \(argument)")
                }
                chosen.append(program)
                continue
            }
            if argument == "--help" {
                print(usage)
                for program in programs { print("  \(program.name): \(program.summary)") }
                exit(0)
            }
            guard let value = arguments.popFirst() else {
                throw WrongArgument(description: "\(argument) needs a value")
            }
            func number() throws -> UInt64 {
                if argument == "--seed", value == "random" { return UInt64.random(in: 1...999_999) }
                guard let number = UInt64(value) else { throw WrongArgument(description: "\(argument) needs a number") }
                return number
            }
            switch argument {
            case "--seed": seed = try number()
            case "--schedules": schedules = try number()
            case "--only": only = try number()
            case "--steps": steps = Int(try number())
            case "--hunt": hunt = Double(try number())
            case "--beside": beside = try number() * 1_000
            case "--seconds": seconds = Double(try number())
            case "--without": leftOut = Set(value.split(separator: ",").compactMap { Int($0) })
            case "--off":
                guard let found = FaultGuard(rawValue: value) else {
                    throw WrongArgument(description: "there is no guard \(value), or the build has none")
                }
                found.switchOff()
                guarding = value
            default: throw WrongArgument(description: "unknown option \(argument)")
            }
        }
        if chosen.isEmpty { chosen = programs.filter { guarding == nil || $0.guards.contains(guarding ?? "") } }
        if chosen.isEmpty { throw WrongArgument(description: "no program shows that \(guarding ?? "") is off") }
    }

    /// - Returns: Whether everything has held; with a guard off, whether that was found.
    func run() throws -> Bool {
        print("schedules: seed \(only ?? seed), guard off: \(guarding ?? "none")")
        if let hunt { return try findAny(hunt) }
        var failed = false
        for program in chosen {
            for isInMemory in program.needsFile ? [false] : [false, true] {
                if let only {
                    let runs = try (0..<2).map { _ in try once(program, isInMemory, only) }
                    let isSame = runs[0].outcome.trace == runs[1].outcome.trace
                    show(program, isInMemory, only, runs[0])
                    print("  \(isSame ? "the same choices twice" : "the second run made other choices")")
                    failed = failed || !runs[0].findings.isEmpty || !isSame
                } else if program.isSearched {
                    failed = try search(program, isInMemory) || failed
                } else {
                    failed = try many(program, isInMemory) || failed
                }
            }
        }
        return guarding == nil ? !failed : failed
    }

    /// The processor time of a program before the next one has its turn, in seconds.
    private static let huntedTime = 0.1

    /// Looks for a failure until the time is over.
    ///
    /// It searches what can be searched completely. Then it goes round all programs and stores, for a moment each time.
    private func findAny(_ seconds: Double) throws -> Bool {
        for program in chosen where program.isSearched && program.variants < .max {
            for isInMemory in program.needsFile ? [false] : [false, true] {
                if try search(program, isInMemory) { return false }
            }
        }
        let lanes = chosen.filter { !$0.isSearched }.flatMap { program in
            (program.needsFile ? [false] : [false, true]).map { (program, $0) }
        }
        var seeds = Array(repeating: seed, count: lanes.count)
        var count = 0
        while time < seconds {
            for (place, (program, isInMemory)) in lanes.enumerated() where time < seconds {
                let end = time + Self.huntedTime * Double(program.weight)
                while time < end {
                    let seed = seeds[place]
                    seeds[place] += 1
                    let run = try once(program, isInMemory, seed)
                    count += 1
                    guard !run.findings.isEmpty else { continue }
                    show(program, isInMemory, seed, run)
                    print("  found after \(count) orders of all programs and \(shown(time)) s of processor time")
                    return false
                }
            }
        }
        print("nothing was found in \(count) orders of all programs and \(shown(time)) s of processor time")
        return true
    }

    /// The processor time of this process, in seconds.
    private var time: Double { Double(clock()) / Double(CLOCKS_PER_SEC) }

    private func shown(_ time: Double) -> Double { (time * 10).rounded() / 10 }

    /// How many strays may be the doing of a busy machine, beside one for two orders.
    private static let mostStrays = 20

    private func many(_ program: any Program.Type, _ isInMemory: Bool) throws -> Bool {
        let start = clock()
        var (steps, switches, strays, count) = (0, 0, 0, 0)
        var traces: Set<UInt64> = []
        for seed in seed..<seed + schedules where Double(clock() - start) / Double(CLOCKS_PER_SEC) < seconds {
            let (outcome, findings) = try once(program, isInMemory, seed)
            count += 1
            steps += outcome.steps
            switches += outcome.switches
            strays += outcome.strays
            traces.insert(outcome.trace)
            guard findings.isEmpty else {
                show(program, isInMemory, seed, (outcome, findings))
                let time = Double(clock() - start) / Double(CLOCKS_PER_SEC)
                print("  found after \(count) orders and \((time * 10).rounded() / 10) s of processor time")
                // The threads of a deadlock stay.
                if outcome.deadlock != nil { exit(guarding == nil ? 1 : 0) }
                if program.isDrawn { try shorten(program, isInMemory, seed) }
                return true
            }
            guard beside != nil || strays <= count / 2 + Self.mostStrays else {
                print("\(program.name) seed \(seed): \(strays) strays in \(count) orders, FAILED")
                print("  threads wait for something that the scheduler does not know")
                // A lane that looks for a fault has not found it.
                return guarding == nil
            }
        }
        print(
            "\(program.name) \(isInMemory ? "memory" : "sqlite"): \(count) orders, \(traces.count) different, "
                + "\(steps / max(count, 1)) steps and \(switches / max(count, 1)) switches each, \(strays) strays, ok"
        )
        return false
    }

    /// The processor time of a search through drawn programs, in seconds; a list of programs is searched completely.
    private static let longestSearch = 12.0

    /// Tries all orders with at most one change of threads that nothing enforces: for one seed after the other.
    private func search(_ program: any Program.Type, _ isInMemory: Bool) throws -> Bool {
        let start = clock()
        var (programs, count) = (0, 0)
        // Neighbouring seeds have the same second call, so they are taken in large steps.
        var number = seed
        let limit = program.variants < .max ? seconds : min(seconds, Self.longestSearch)
        while programs < program.variants, Double(clock() - start) / Double(CLOCKS_PER_SEC) < limit {
            let (outcome, findings) = try once(program, isInMemory, number, changes: [:])
            var orders: [[Int: Int]] = []
            for (step, others) in outcome.alternatives.enumerated() {
                for other in 0..<others { orders.append([step + 1: other]) }
            }
            if try isFailed(program, isInMemory, number, [:], (outcome, findings)) { return true }
            for changes in orders {
                let run = try once(program, isInMemory, number, changes: changes)
                count += 1
                if try isFailed(program, isInMemory, number, changes, run) { return true }
            }
            programs += 1
            number += program.variants < .max ? 1 : 37
        }
        print("\(program.name) \(isInMemory ? "memory" : "sqlite"): all \(count) orders of \(programs) programs, ok")
        return false
    }

    private func isFailed(
        _ program: any Program.Type,
        _ isInMemory: Bool,
        _ seed: UInt64,
        _ changes: [Int: Int],
        _ run: (outcome: ScheduleRun.Outcome, findings: [String])
    ) throws -> Bool {
        guard !run.findings.isEmpty else { return false }
        show(program, isInMemory, seed, run)
        let place = try Place(isInMemory: isInMemory, seed: seed)
        defer { place.remove() }
        for line in try program.init(place).listing { print("  \(line)") }
        print("  the change: \(changes)")
        if run.outcome.deadlock != nil { exit(guarding == nil ? 1 : 0) }
        return true
    }

    /// How often a shorter program is tried in another order before it counts as one that holds.
    private static let mostOrders: UInt64 = 20

    /// Leaves out calls of a drawn program as long as some order of the rest still fails, and prints what is left.
    ///
    /// With another program the same seed makes other choices, so each is tried in several orders.
    private func shorten(_ program: any Program.Type, _ isInMemory: Bool, _ seed: UInt64) throws {
        let whole = try Place(isInMemory: isInMemory, seed: seed)
        defer { whole.remove() }
        let all = try program.init(whole).callNumbers
        var without = leftOut
        var order = seed
        for call in all where !without.contains(call) {
            let candidate = without.union([call])
            for other in [order] + (seed..<seed + Self.mostOrders) {
                let (outcome, findings) = try once(program, isInMemory, other, drawnFrom: seed, without: candidate)
                if outcome.deadlock != nil { return }
                guard !findings.isEmpty else { continue }
                (without, order) = (candidate, other)
                break
            }
        }
        let place = try Place(isInMemory: isInMemory, seed: seed, leftOut: without)
        defer { place.remove() }
        for line in try program.init(place).listing { print("  \(line)") }
        let (_, findings) = try once(program, isInMemory, order, drawnFrom: seed, without: without)
        for finding in findings.prefix(3) { print("  \(finding)") }
        let numbers = without.sorted().map(String.init).joined(separator: ",")
        print("  order \(order); --only \(seed) --without \(numbers) draws the same calls")
    }

    private func once(
        _ program: any Program.Type,
        _ isInMemory: Bool,
        _ seed: UInt64,
        drawnFrom source: UInt64? = nil,
        without: Set<Int>? = nil,
        changes: [Int: Int]? = nil
    ) throws -> (outcome: ScheduleRun.Outcome, findings: [String]) {
        let place = try Place(isInMemory: isInMemory, seed: source ?? seed, leftOut: without ?? leftOut)
        defer { place.remove() }
        let kind = changes.map { .changes($0) } ?? kind(of: seed)
        let made = try program.init(place)
        let bodies = made.bodies.enumerated().map { number, body in
            { @Sendable in do { try body() } catch { place.find("thread \(number): \(error)") } }
        }
        let patience = beside ?? ScheduleRun.usualPatience
        let outcome = ScheduleRun.run(SchedulingStrategy(kind, seed: seed), patience: patience, bodies)
        if let deadlock = outcome.deadlock { place.find("none can go on: \(deadlock)") } else { try made.judge() }
        if outcome.expirations > 0, !made.mayExpire {
            place.find("\(outcome.expirations) waits ended by their deadline only, as nothing has woken them")
        }
        return (outcome, place.findings)
    }

    /// The strategy of a seed.
    ///
    /// Half of the seeds concentrate on a few shared objects. A quarter orders the threads with one to three changes among 100
    /// to 3200 steps, and a quarter walks at random, in short strides or in long ones.
    private func kind(of seed: UInt64) -> SchedulingStrategy.Kind {
        switch seed % 8 {
        case 0: .randomWalk
        case 4: .longStrides(steps: 4 << Int(seed / 8 % 4))
        case 2, 6: .priorities(depth: 2 + Int(seed / 4 % 3), steps: steps ?? 100 << Int(seed / 12 % 6))
        default: .focus
        }
    }

    private func show(
        _ program: any Program.Type,
        _ isInMemory: Bool,
        _ seed: UInt64,
        _ run: (outcome: ScheduleRun.Outcome, findings: [String])
    ) {
        let verdict = run.findings.isEmpty ? "ok" : "FAILED"
        print(
            "\(program.name) \(isInMemory ? "memory" : "sqlite") seed \(seed): \(run.outcome.steps) steps, \(verdict)"
        )
        for finding in run.findings.prefix(5) { print("  \(finding)") }
    }
}
#endif
