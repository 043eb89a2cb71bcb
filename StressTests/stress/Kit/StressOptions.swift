import CoreData

/// The options of the command line.
struct StressOptions {
    /// The scenarios to run, in this order.
    var scenarios: [any Scenario.Type] = []
    var seed: UInt64 = 1
    /// How many seconds each scenario runs on each store; `nil` for the scenario's own time.
    var seconds: Double?
    /// The amount of work after which a run ends, even if there is time left.
    var ops: Int?
    var contexts = 6
    /// The merge policy of all contexts in a program; drawn for each if `nil`.
    var policy: InterleaveOracle.Policy?
    /// Whether every context that can be pinned is pinned.
    var pinned = false
    /// The batch size of fetches; drawn for each if `nil`.
    var batchSize: Int?
    var store: StoreKind?
    var floor: Int?
    var stall = 30.0
    var json = false
    var folder = NSTemporaryDirectory()
    var keepsFolder = false
    var sabotage: String?
    /// The file to which the operations of transactions are written, as lines of JSON.
    var history: String?
    /// Such a file, which is judged again in place of a run.
    var replay: String?
    /// How many seconds it may take to cut one failure down.
    var shrink = 20.0
    /// The one program of stepped scenarios to run, and its calls; `nil` for all.
    var program: Int?
    var script: [Int]?
    /// Whether the script runs in all orders that keep the order within each context.
    var allOrders = false
    /// The longest pause of threads at some of the library's fault points, in microseconds.
    var jitter = 0
    /// The one anomaly to try; `nil` for all.
    var anomaly: String?
    /// The kind of trouble that scenarios are limited to; `nil` for all kinds.
    var only: String?
    var showsHelp = false
    private var knobs: [String: Int] = [:]

    /// The value of a scenario's option on the command line, or its default.
    func knob(_ knob: Knob) -> Int { knobs[knob.name] ?? knob.standard }

    static var help: String {
        let scenarios = allScenarios.map { scenario in
            var lines = ["  " + pad(scenario.name) + scenario.summary]
            lines += scenario.knobs.map { "    " + pad("--\($0.name) N") + $0.help + " (\($0.standard))" }
            if !scenario.parts.isEmpty { lines += ["    " + pad("--only") + scenario.parts.joined(separator: ", ")] }
            if !scenario.sabotages.isEmpty {
                lines += ["    " + pad("--sabotage") + scenario.sabotages.map(\.name).joined(separator: ", ")]
            }
            return lines.joined(separator: "\n")
        }
        return """
            usage: stress SCENARIO|all|red [options]

            Tries to make the framework lose, tear, deadlock, leak or crash, and says whether it did. `all` runs every
            scenario; `red` runs every sabotage and demands that each is caught.

            \(scenarios.joined(separator: "\n"))

              --seed N|random    what the load is drawn from (1); the report prints it
              --seconds S        how long to run on each store
              --ops N            end after so much work, but for that of other processes
              --contexts N       how many contexts work at the same time (6)
              --policy KIND      error, store, object, overwrite or rollback for all contexts (interleave; drawn for each)
              --pinned           pin all that can be pinned (bank, append; about half of it)
              --batch-size N     of fetches (interleave, soak, mixed; drawn or none)
              --store KIND       sqlite, memory or postgresql (the first two on which the scenario makes sense, one after the other)
              --only KIND        make no other trouble (crash, hostile, iofault, society; the kinds are above)
              --sabotage NAME    break something on purpose; the run has to fail
              --floor N          the work below which a run proves nothing (crash goes on for it beyond its time)
              --stall S          how long a single operation may take (30)
              --dir PATH         where stores are made (the temporary folder)
              --keep             leave the stores there
              --history FILE     write what transactions did, as lines of JSON (append)
              --replay FILE      judge such a file, in place of a run (append)
              --program N        run this one of the random programs only (batch, interleave, nested, society)
              --script A,B,…     of that program these calls only, as a failure that was cut down says
              --shrink S         how long to cut a failure of a stepped program down (20); 0 does not
              --all-orders       the script in all orders that keep that of each context (batch, interleave)
              --case NAME        try this anomaly only, and show an order in which it happens (anomalies)
              --jitter U         let threads pause for up to U microseconds at some of the library's fault points
              --json             each report as one JSON object a line

            Exit codes: 0 clean, 1 anomaly, 2 stalled, 3 the harness failed, 4 below the floor.
            """
    }

    private static func pad(_ text: String) -> String {
        text + String(repeating: " ", count: max(19 - text.count, 1))
    }

    /// Parses a command line.
    ///
    /// - Parameter arguments: The arguments after the program's name.
    /// - Returns: The options.
    /// - Throws: `StressError` that names the wrong option.
    static func parse(_ arguments: some Sequence<String>) throws -> StressOptions {
        var options = StressOptions()
        var words = Array(arguments)[...]
        if words.isEmpty { throw StressError("name a scenario; --help says which") }
        while let word = words.popFirst() {
            if word.hasPrefix("-") { try options.take(word, &words) } else { try options.name(word) }
        }
        // A run that looks closely at one thing proves nothing by its amount of work.
        if options.program != nil || options.anomaly != nil || options.replay != nil {
            options.floor = options.floor ?? 0
        }
        guard options.showsHelp || !options.scenarios.isEmpty else { throw StressError("name a scenario") }
        if let only = options.only, let other = options.scenarios.first(where: { !$0.parts.contains(only) }) {
            let kinds = other.parts.isEmpty ? "no kinds" : other.parts.joined(separator: ", ")
            throw StressError("\(other.name) has no \(only), but \(kinds)")
        }
        // A user who names scenarios wants to see each of them run; `all` means all that run on the store.
        if let store = options.store, options.scenarios.count < allScenarios.count,
            let other = options.scenarios.first(where: { !$0.runs(on: store) })
        {
            throw StressError("\(other.name) does not run on --store \(store.rawValue)")
        }
        return options
    }

    private mutating func name(_ word: String) throws {
        if word == "all" { return scenarios = allScenarios }
        guard let scenario = allScenarios.first(where: { $0.name == word }) else {
            throw StressError("“\(word)” is no scenario; --help lists them")
        }
        scenarios.append(scenario)
    }

    private mutating func take(_ word: String, _ words: inout ArraySlice<String>) throws {
        func value() throws -> String {
            guard let text = words.popFirst() else { throw StressError("\(word) needs a value") }
            return text
        }
        func number(from least: Int) throws -> Int {
            let text = try value()
            guard let number = Int(text), number >= least else {
                throw StressError("\(word) needs a whole number from \(least) on, not \(text)")
            }
            return number
        }
        func duration() throws -> Double {
            let text = try value()
            guard let number = Double(text), number > 0, number < 1e9 else {
                throw StressError("\(word) needs a number of seconds, not \(text)")
            }
            return number
        }
        switch word {
        case "--help", "-h": showsHelp = true
        case "--seed":
            let text = try value()
            guard let number = text == "random" ? UInt64.random(in: 1 ... .max) : UInt64(text) else {
                throw StressError("--seed needs a number or the word random, not \(text)")
            }
            seed = number
        case "--seconds": seconds = try duration()
        case "--ops": ops = try number(from: 1)
        case "--contexts": contexts = try number(from: 1)
        case "--policy":
            let text = try value()
            guard let kind = InterleaveOracle.Policy(rawValue: text) else {
                let names = InterleaveOracle.Policy.allCases.map(\.rawValue).joined(separator: ", ")
                throw StressError("there is no policy \(text); there are \(names)")
            }
            policy = kind
        case "--pinned": pinned = true
        case "--batch-size": batchSize = try number(from: 0)
        case "--store":
            let text = try value()
            guard let kind = StoreKind(rawValue: text) else { throw StressError("\(text) is no kind of store") }
            store = kind
        case "--sabotage": sabotage = try value()
        case "--only": only = try value()
        case "--floor": floor = try number(from: 0)
        case "--stall": stall = try duration()
        case "--dir": folder = try value()
        case "--keep": keepsFolder = true
        case "--history": history = try value()
        case "--replay": replay = try value()
        case "--shrink":
            let text = try value()
            guard let number = Double(text), (0..<1e9).contains(number) else {
                throw StressError("--shrink needs a number of seconds, not \(text)")
            }
            shrink = number
        case "--program": program = try number(from: 1)
        case "--script":
            let text = try value()
            let calls = text.split(separator: ",").map { Int($0) }
            guard !calls.contains(where: { ($0 ?? -1) < 0 }) else {
                throw StressError("--script needs numbers of calls such as 3,7,12, not \(text)")
            }
            script = calls.compactMap { $0 }
        case "--jitter":
            jitter = try number(from: 0)
            guard FaultPoints.areBuiltIn else {
                throw StressError("--jitter needs fault points: swift build --traits FaultPoints")
            }
        case "--all-orders": allOrders = true
        case "--case":
            let name = try value()
            guard AnomalyCase.all.contains(where: { $0.name == name }) else {
                throw StressError(
                    "there is no anomaly \(name); there are \(AnomalyCase.all.map(\.name).joined(separator: ", "))"
                )
            }
            anomaly = name
        case "--json": json = true
        default:
            let name = String(word.drop { $0 == "-" })
            guard allScenarios.contains(where: { $0.knobs.contains { $0.name == name } }) else {
                throw StressError("“\(word)” is no option; --help lists them")
            }
            knobs[name] = try number(from: 0)
        }
    }
}
