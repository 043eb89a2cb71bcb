import CoreData

/// What the command line asks for.
struct StressOptions: Equatable {
    /// The stores that a scenario can run on.
    enum StoreKind: String, CaseIterable {
        case sqlite
        case memory
    }

    /// The merge policies that the writers can have.
    enum Policy: String {
        case error
        /// Lets the last writer win, which loses updates: the checker has to notice.
        case overwrite
    }

    var seed: UInt64 = 1
    var seconds = 20.0
    var contexts = 8
    var accounts = 20
    var retries = 1_000
    var stores = StoreKind.allCases
    var policy = Policy.error
    var floor = 100
    var stall = 30.0
    var json = false
    var folder = NSTemporaryDirectory()
    var showsHelp = false

    static let help = """
        usage: stress bank [options]

        Contexts move money between accounts of one store, at once, and retry after conflicts. Nothing may be lost: each
        balance must equal the sum of the transfers that were acknowledged, and whoever reads all accounts in one fetch
        must see the total.

          --seed N|random    what the load is drawn from (1); the report prints it
          --seconds S        how long to run on each store (20)
          --contexts N       writers, each with a context of its own; half as many readers run beside them (8)
          --accounts N       fewer accounts mean more conflicts (20)
          --retries N        how often a transfer is tried again (1000)
          --store KIND       sqlite or memory (both, one after the other)
          --policy error|overwrite
                             the writers' merge policy (error); with overwrite updates get lost, and the run has to fail
          --floor N          the transfers below which a run proves nothing (100)
          --stall S          how long a single transfer may take (30)
          --dir PATH         where the store is made (the temporary folder)
          --json             the report as one object a line

        Exit codes: 0 clean, 1 anomaly, 2 stalled, 3 the harness failed, 4 below the floor.
        """

    /// Reads a command line.
    ///
    /// - Throws: `StressError` that names the option.
    static func parse(_ arguments: some Sequence<String>) throws -> StressOptions {
        var options = StressOptions()
        var words = Array(arguments)[...]
        func value(of name: String) throws -> String {
            guard let text = words.popFirst() else { throw StressError("\(name) needs a value") }
            return text
        }
        func number(of name: String, from least: Int) throws -> Int {
            let text = try value(of: name)
            guard let number = Int(text), number >= least else {
                throw StressError("\(name) needs a whole number from \(least) on, not \(text)")
            }
            return number
        }
        func seconds(of name: String) throws -> Double {
            let text = try value(of: name)
            guard let number = Double(text), number > 0, number < 1e9 else {
                throw StressError("\(name) needs a number of seconds, not \(text)")
            }
            return number
        }
        if words.isEmpty { throw StressError("name a scenario; --help says which") }
        while let word = words.popFirst() {
            switch word {
            case "bank": break
            case "--help", "-h": options.showsHelp = true
            case "--seed":
                let text = try value(of: word)
                guard let seed = text == "random" ? UInt64.random(in: 1 ... .max) : UInt64(text) else {
                    throw StressError("--seed needs a number or the word random, not \(text)")
                }
                options.seed = seed
            case "--seconds": options.seconds = try seconds(of: word)
            case "--contexts": options.contexts = try number(of: word, from: 1)
            case "--accounts": options.accounts = try number(of: word, from: 2)
            case "--retries": options.retries = try number(of: word, from: 0)
            case "--store":
                let text = try value(of: word)
                guard let kind = StoreKind(rawValue: text) else { throw StressError("\(text) is no kind of store") }
                options.stores = [kind]
            case "--policy":
                let text = try value(of: word)
                guard let policy = Policy(rawValue: text) else { throw StressError("\(text) is no policy") }
                options.policy = policy
            case "--floor": options.floor = try number(of: word, from: 0)
            case "--stall": options.stall = try seconds(of: word)
            case "--dir": options.folder = try value(of: word)
            case "--json": options.json = true
            default: throw StressError("“\(word)” is neither a scenario nor an option; --help lists them")
            }
        }
        return options
    }
}

/// Why the harness cannot go on.
struct StressError: LocalizedError, Equatable {
    let errorDescription: String?

    init(_ text: String) { errorDescription = text }
}
