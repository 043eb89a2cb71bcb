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
    private var steps = 400
    private var seconds = 60.0
    private var guarding: String?

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
            case "--seconds": seconds = Double(try number())
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
        var failed = false
        for program in chosen {
            for isInMemory in program.needsFile ? [false] : [false, true] {
                if let only {
                    let runs = try (0..<2).map { _ in try once(program, isInMemory, only) }
                    let isSame = runs[0].outcome.trace == runs[1].outcome.trace
                    show(program, isInMemory, only, runs[0])
                    print("  \(isSame ? "the same choices twice" : "the second run made other choices")")
                    failed = failed || !runs[0].findings.isEmpty || !isSame
                } else {
                    failed = try many(program, isInMemory) || failed
                }
            }
        }
        return guarding == nil ? !failed : failed
    }

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
                return true
            }
        }
        print(
            "\(program.name) \(isInMemory ? "memory" : "sqlite"): \(count) orders, \(traces.count) different, "
                + "\(steps / max(count, 1)) steps and \(switches / max(count, 1)) switches each, \(strays) strays, ok"
        )
        return false
    }

    private func once(_ program: any Program.Type, _ isInMemory: Bool, _ seed: UInt64) throws
        -> (outcome: ScheduleRun.Outcome, findings: [String])
    {
        let place = try Place(isInMemory: isInMemory)
        defer { place.remove() }
        // Half of the seeds walk at random, the others order the threads with one to three changes.
        let kind: SchedulingStrategy.Kind =
            seed % 2 == 0 ? .randomWalk : .priorities(depth: 2 + Int(seed / 2 % 3), steps: steps)
        let made = try program.init(place)
        let bodies = made.bodies.enumerated().map { number, body in
            { @Sendable in do { try body() } catch { place.find("thread \(number): \(error)") } }
        }
        let outcome = ScheduleRun.run(SchedulingStrategy(kind, seed: seed), bodies)
        if let deadlock = outcome.deadlock { place.find("none can go on: \(deadlock)") } else { try made.judge() }
        return (outcome, place.findings)
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
