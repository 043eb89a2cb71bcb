import CoreData

/// A random program that one thread runs call by call, so that its seed replays it exactly, and it can be cut down.
protocol SteppedProgram: AnyObject {
    /// Makes one call, drawn from `stream`, and compares what can be seen with what must be there.
    ///
    /// - Returns: The fault; `nil` if there is none.
    func call(_ stream: inout SeededStream) throws -> String?

    /// The calls so far, one line each.
    var script: [String] { get }
    /// How often each thing happened.
    var branches: [String: Int] { get }
    /// The number of the context of each call.
    var places: [Int] { get }
    /// Whether nothing is promised for further calls.
    var isOver: Bool { get }
}

/// Runs programs of a scenario one after the other, and cuts those down that fail.
struct SteppedPrograms {
    private let run: Run
    /// The number of calls in a program.
    private let length: Int
    private let make: (inout SeededStream) throws -> any SteppedProgram

    /// Prepares the programs.
    ///
    /// - Parameters:
    ///   - run: The run that they are part of.
    ///   - length: The number of calls in a program.
    ///   - make: Makes a program on an empty store; from the same stream it makes the same program.
    init(_ run: Run, length: Int, make: @escaping (inout SeededStream) throws -> any SteppedProgram) {
        (self.run, self.length, self.make) = (run, length, make)
    }

    /// Runs programs until `end`, or `limit` of them if that is not 0; or only the one that the command line names.
    func run(_ limit: Int, until end: ContinuousClock.Instant) throws {
        if let number = run.options.program {
            let kept = run.options.script ?? Array(0..<length)
            if run.options.allOrders { return try runAllOrders(number, kept) }
            return try judge(number, kept, isReplay: run.options.script != nil)
        }
        var number = 0
        while limit > 0 ? number < limit : .now < end && !run.hasDoneEnough {
            number += 1
            try judge(number, Array(0..<length), isReplay: false)
        }
    }

    private func judge(_ number: Int, _ calls: [Int], isReplay: Bool) throws {
        run.watchdog.beat(0, "a program")
        let (trouble, program) = try play(number, calls)
        run.count("programs")
        run.count("calls", program.script.count)
        for (name, count) in program.branches { run.count(name, count) }
        guard let trouble else { return }
        if isReplay { return run.find("program \(number): \(trouble)\n" + listing(calls, program)) }
        // It takes many runs to cut a failure down, so only the first ones are.
        let isCutDown = run.options.shrink > 0 && run.figure("anomalies-cut-down") < 3
        guard isCutDown else { return run.find("program \(number): \(trouble)") }
        run.count("anomalies-cut-down")
        var shrinker = Shrinker(seconds: run.options.shrink) { kept in
            run.watchdog.beat(0, "a program that is cut down")
            return try play(number, kept).trouble != nil
        }
        let least = try shrinker.shrink(Array(calls.prefix(program.script.count)))
        let (last, short) = try play(number, least)
        let sign = last ?? "not again, so something besides the seed decides: \(trouble)"
        let replay = run.options.replay(
            run,
            ["--program", "\(number)", "--script", least.map(String.init).joined(separator: ",")]
        )
        run.find(
            "program \(number), \(least.count) calls after \(shrinker.attempts) attempts: \(sign)\n"
                + listing(least, short) + "\n    \(replay)"
        )
    }

    /// Runs a short script in all orders of its calls that keep the order within each context.
    private func runAllOrders(_ number: Int, _ calls: [Int]) throws {
        let (_, program) = try play(number, calls)
        guard program.places.count == calls.count else {
            throw StressError("the script fails before its end; cut it there")
        }
        let scripts = Dictionary(grouping: zip(program.places, calls)) { $0.0 }.sorted { $0.key < $1.key }
            .map { $1.map(\.1) }
        let orders = Interleavings(scripts.map(\.count))
        guard orders.count <= 20_000 else {
            throw StressError("there are \(orders.count) orders; name fewer calls with --script")
        }
        for order in orders.all {
            run.watchdog.beat(0, "an order of a script")
            var next = scripts.map { _ in 0 }
            let script = order.map { turn in
                defer { next[turn] += 1 }
                return scripts[turn][next[turn]]
            }
            run.count("orders")
            guard let trouble = try play(number, script).trouble else { continue }
            run.find("program \(number), calls \(script.map(String.init).joined(separator: ",")): \(trouble)")
        }
    }

    /// Runs some calls of a program.
    ///
    /// Each draws from its own stream, so that leaving one out changes no other.
    private func play(_ number: Int, _ calls: [Int]) throws -> (trouble: String?, program: any SteppedProgram) {
        let seed = SeededStream(seed: run.options.seed, stream: UInt64(number)).seed
        var stream = SeededStream(seed: seed, stream: 0)
        let program = try make(&stream)
        for call in calls where !program.isOver {
            var stream = SeededStream(seed: seed, stream: UInt64(call) + 1)
            do {
                if let trouble = try program.call(&stream) { return (trouble, program) }
            } catch { return ("a call gave \(describe(error))", program) }
        }
        return (nil, program)
    }

    private func listing(_ calls: [Int], _ program: any SteppedProgram) -> String {
        zip(calls, program.script).map { "    \($0). \($1)" }.joined(separator: "\n")
    }
}
