import Foundation

/// The options of the command line.
struct BenchOptions {
    var only: [Workload] = Workload.allCases
    var concurrent: [ConcurrentWorkload] = ConcurrentWorkload.allCases
    var rows = 100_000
    var runs = 7
    /// How many seconds several threads work in one run.
    var seconds = 5.0
    /// The file that results are appended to, one JSON object a line.
    var json: String?
    /// Where the databases go.
    ///
    /// They should lie on the disk that is to be measured.
    var folder = FileManager.default.temporaryDirectory.path
    /// The workload that this process runs once, on the framework's side only, so that it can print how much memory
    /// that takes.
    var child: Workload?
    /// The side whose objects this process weighs, if another process of the benchmark started it for that.
    var weighed: (any Side.Type)?
    /// The part that this process does, if another process of the benchmark started it for that.
    var part: ChildPart?
    /// Whether the framework's coordinators have an instrument.
    var isInstrumented = false
    /// The workloads on PostgreSQL; `nil` for those on SQLite.
    var postgreSQL: [PostgreSQLWorkload]?
    /// The milliseconds by which each round trip to the PostgreSQL server is made longer.
    var roundTrip = 0.0
    /// How many bytes of unused rows each store's row cache keeps; `nil` for the default of the coordinator.
    var rowCacheBytes: Int?
    var showsHelp = false

    static let help = """
        Compares the framework with the raw SQLite C API doing the same work, in alternating runs.

        Usage: bench [--only W1,W2] [--rows N] [--runs N] [--json FILE] [--folder FOLDER]
               bench --store postgresql [--only P1,P2] [--rows N] [--runs N] [--seconds N] [--round-trip MS]

          --store postgresql  compare with raw libpq, on the server that STRATA_TEST_POSTGRESQL names

          --round-trip MS  lets each round trip to that server take so many milliseconds longer, for both sides

          --only LIST      some of \((Workload.allCases.map(\.name) + ConcurrentWorkload.allCases.map(\.name)).joined(separator: ", ")) (default: all)
          --rows N         venues in the store (default: 100000)
          --runs N         runs of each side; the medians are compared (default: 7)
          --seconds N      how long several threads work at a time (default: 5)
          --json FILE      append one JSON object a line and workload
          --instrument     let an instrument count what the framework does, to see what that costs
          --row-cache N    bytes of rows that nobody holds that a store's cache keeps
          --folder FOLDER  where the databases go (default: the temporary folder)

        \(Workload.allCases.map { "\($0.name)  \($0.summary)" }.joined(separator: "\n"))
        \(ConcurrentWorkload.allCases.map { "\($0.name)  \($0.summary)" }.joined(separator: "\n"))
        \(PostgreSQLWorkload.allCases.map { "\($0.rawValue)  \($0.summary)" }.joined(separator: "\n"))

        Only ratios mean something: machines change speed within seconds. Under 15 % is noise. Build with -c release.
        """

    /// Reads the arguments that follow the program's name.
    static func parse(_ arguments: some Sequence<String>) throws -> BenchOptions {
        var options = BenchOptions()
        var rest = Array(arguments)[...]
        func value(of name: String) throws -> String {
            guard let value = rest.popFirst() else { throw BenchError("\(name) needs a value") }
            return value
        }
        func number(of name: String, from least: Int) throws -> Int {
            let text = try value(of: name)
            guard let number = Int(text), number >= least else {
                throw BenchError("\(name) takes a number of at least \(least), not “\(text)”")
            }
            return number
        }
        if let place = rest.firstIndex(of: "--store") {
            guard rest.indices.contains(place + 1), rest[place + 1] == "postgresql" else {
                throw BenchError("--store takes postgresql; without it SQLite is measured")
            }
            rest.removeSubrange(place...(place + 1))
            options.postgreSQL = PostgreSQLWorkload.allCases
        }
        while let name = rest.popFirst() {
            switch name {
            case "--only" where options.postgreSQL != nil:
                options.postgreSQL = try value(of: name).split(separator: ",").map { text in
                    guard
                        let found = PostgreSQLWorkload.allCases.first(where: {
                            $0.rawValue.lowercased() == text.lowercased()
                        })
                    else { throw BenchError("There is no workload “\(text)” on PostgreSQL. --help lists them") }
                    return found
                }
            case "--only":
                let names = try value(of: name).split(separator: ",").map { $0.uppercased() }
                options.concurrent = ConcurrentWorkload.allCases.filter { names.contains($0.name) }
                options.only = try names.filter { ConcurrentWorkload(rawValue: $0) == nil }.map { try workload($0) }
            case "--seconds": options.seconds = Double(try number(of: name, from: 1))
            case "--round-trip":
                let text = try value(of: name)
                guard let number = Double(text), number > 0 else {
                    throw BenchError("\(name) takes milliseconds, not “\(text)”")
                }
                options.roundTrip = number
            case "--rows": options.rows = try number(of: name, from: 100)
            case "--runs": options.runs = try number(of: name, from: 1)
            case "--json": options.json = try value(of: name)
            case "--folder": options.folder = try value(of: name)
            case "--instrument": options.isInstrumented = true
            case "--row-cache": options.rowCacheBytes = try number(of: name, from: 0)
            case "--child": options.child = try workload(try value(of: name))
            case "--weigh": options.weighed = try value(of: name) == "raw" ? RawSide.self : FrameworkSide.self
            case "--part": options.part = ChildPart(rawValue: try value(of: name))
            case "--help", "-h": options.showsHelp = true
            default: throw BenchError("“\(name)” is not an option. --help lists them")
            }
        }
        return options
    }

    private static func workload(_ name: String) throws -> Workload {
        guard let workload = Workload.allCases.first(where: { $0.name.lowercased() == name.lowercased() }) else {
            throw BenchError("There is no workload “\(name)”. --help lists them")
        }
        return workload
    }
}

/// Why nothing could be measured.
struct BenchError: LocalizedError, Equatable {
    let errorDescription: String?

    init(_ description: String) {
        errorDescription = description
    }
}
