import Foundation

/// The options of the command line.
struct BenchOptions {
    var only: [Workload] = Workload.allCases
    var concurrent: [ConcurrentWorkload] = ConcurrentWorkload.allCases
    var models: [ModelWorkload] = ModelWorkload.allCases
    var rows = 100_000
    var runs: Int { namedRuns ?? (readsNorthwind ? 100 : 7) }
    private var namedRuns: Int?
    /// How many seconds several threads work in one run.
    var seconds = 5.0
    /// The file that results are appended to, one JSON object a line.
    var json: String?
    /// Where the databases go.
    ///
    /// They should lie on the disk that is to be measured.
    var folder = FileManager.default.temporaryDirectory.path
    /// The contents of the caches when the time of a run begins.
    var caches = CacheState.reopened
    /// The number of properties of the rows.
    var width = RowWidth.narrow
    /// Whether the raw side is measured with SQLite's own settings as well.
    var measuresDefaults = true
    /// The workload that this process runs once, on one side only, so that it can print how long that takes and how much
    /// memory.
    var once: Workload?
    /// The same for work with SwiftData's models, which makes their database first if it is missing.
    var onceModels: ModelWorkload?
    /// The side that ``once`` and ``prepares`` are about.
    var side: any Side.Type = FrameworkSide.self
    /// Whether the orders of Northwind are read, and nothing else.
    var readsNorthwind = false
    /// The forms in which they are read; all others are compared with the first.
    var forms = NorthwindForm.allCases
    /// Whether this process only makes the database with which a run of ``once`` begins.
    var prepares = false
    /// The side whose objects this process weighs, if another process of the benchmark started it for that.
    var weighed: (any Side.Type)?
    /// The same for SwiftData's models.
    var weighedModels: WeighedModels?

    /// What was done with models before they are weighed.
    enum WeighedModels { case fetched, read }
    /// The part that this process does, if another process of the benchmark started it for that.
    var part: ChildPart?
    /// Whether the framework's coordinators have an instrument.
    var isInstrumented = false
    /// The workloads on PostgreSQL; `nil` for those on SQLite.
    var postgreSQL: [PostgreSQLWorkload]?
    /// The milliseconds by which each round trip to the PostgreSQL server is made longer.
    var roundTrip = 0.0
    /// The number of tenants to which requests are measured, each with a schema; `nil` for none.
    var tenants: Int?
    /// The most connections of all tenants together, and the number of requests to them.
    var (connections, requests) = (8, 16_000)
    /// Whether the stores of the tenants share no sessions.
    var isApart = false
    /// How many bytes of unused rows each store's row cache keeps; `nil` for the default of the coordinator.
    var rowCacheBytes: Int?
    var showsHelp = false

    /// The amounts of everything in the work.
    var scale: Scale { Scale(venues: rows) }

    static let help = """
        Compares the framework with the raw SQLite C API doing the same work, in alternating runs. The raw side has the
        page cache and the pragmas of the framework's connections; “defaults” is the raw side with those of SQLite.

        Usage: bench [--only W1,W2] [--rows N] [--runs N] [--caches STATE] [--json FILE] [--folder FOLDER]
               bench --prepare | --once W2 [--side SIDE] [--rows N] [--caches STATE] --folder FOLDER
               bench --northwind [--forms rows,typedRows] [--runs N] [--json FILE] [--folder FOLDER]
               bench --store postgresql [--only P1,P2] [--rows N] [--runs N] [--seconds N] [--round-trip MS]
               bench --tenants N [--connections N] [--requests N] [--apart]

          --store postgresql  compare with raw libpq, on the server that STRATA_TEST_POSTGRESQL names

          --round-trip MS  lets each round trip to that server take so many milliseconds longer, for both sides

          --tenants N      send requests to so many tenants of one process at random, each with a schema on that server,
                           by way of --connections (default: 8), until there were --requests (default: 16000);
                           with --apart no session serves two of them

          --northwind      read all orders of Northwind in several forms, each --runs times (default: 100)
          --forms LIST     some of \(NorthwindForm.allCases.map(\.name).joined(separator: ", "))

          --only LIST      some of them, as in W2,W10 (default: all); their names and what they do are below
          --rows N         venues in the store (default: 100000)
          --runs N         runs of each side; the medians are compared (default: 7)
          --seconds N      how long several threads work at a time (default: 5)
          --caches STATE   what the caches hold when a run begins (default: reopened)
                           \(CacheState.allCases.map { "\($0.rawValue): \($0.summary)" }.joined(separator: "; "))
          --width WIDTH    \(RowWidth.allCases.map { "\($0.rawValue): \($0.properties) properties" }.joined(separator: "; "));
                           others than narrow with W2 to W6 only (default: narrow)
          --no-defaults    leave out the raw side with SQLite's own settings
          --json FILE      append one JSON object a line and workload
          --prepare        only make the database of one side in FOLDER, and leave it there
          --once NAME      run a workload once on it; print nanoseconds, a checksum, and the peak of memory in bytes;
                           of those with SwiftData's models M1 to M3
          --side SIDE      \(OneRun.sides.map(\.name).joined(separator: ", ")) (default: coredata)
          --instrument     let an instrument count what the framework does, to see what that costs
          --row-cache N    bytes of rows that nobody holds that a store's cache keeps
          --folder FOLDER  where the databases go (default: the temporary folder)

        \(Workload.allCases.map { "\($0.name)  \($0.summary)" }.joined(separator: "\n"))
        \(ConcurrentWorkload.allCases.map { "\($0.name)  \($0.summary)" }.joined(separator: "\n"))
        \(ModelWorkload.allCases.map { "\($0.name)  \($0.summary)" }.joined(separator: "\n"))
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
                options.models = ModelWorkload.allCases.filter { names.contains($0.name) }
                let others = names.filter {
                    ConcurrentWorkload(rawValue: $0) == nil && ModelWorkload(rawValue: $0) == nil
                }
                options.only = try others.map { try workload($0) }
            case "--seconds": options.seconds = Double(try number(of: name, from: 1))
            case "--round-trip":
                let text = try value(of: name)
                guard let number = Double(text), number > 0 else {
                    throw BenchError("\(name) takes milliseconds, not “\(text)”")
                }
                options.roundTrip = number
            case "--tenants": options.tenants = try number(of: name, from: 1)
            case "--connections": options.connections = try number(of: name, from: 1)
            case "--apart": options.isApart = true
            case "--requests": options.requests = try number(of: name, from: 1)
            case "--rows": options.rows = try number(of: name, from: 100)
            case "--runs": options.namedRuns = try number(of: name, from: 1)
            case "--json": options.json = try value(of: name)
            case "--folder": options.folder = try value(of: name)
            case "--instrument": options.isInstrumented = true
            case "--row-cache": options.rowCacheBytes = try number(of: name, from: 0)
            case "--caches":
                let text = try value(of: name)
                guard let state = CacheState(rawValue: text) else {
                    throw BenchError("\(name) takes cold, reopened or warm, not “\(text)”")
                }
                options.caches = state
            case "--northwind": options.readsNorthwind = true
            case "--forms":
                options.forms = try value(of: name).split(separator: ",").map { text in
                    guard let form = NorthwindForm.allCases.first(where: { $0.name == text }) else {
                        throw BenchError("There is no form “\(text)”. --help lists them")
                    }
                    return form
                }
            case "--width":
                let text = try value(of: name)
                guard let width = RowWidth(rawValue: text) else {
                    throw BenchError("\(name) takes narrow, medium or wide, not “\(text)”")
                }
                options.width = width
            case "--no-defaults": options.measuresDefaults = false
            case "--prepare": options.prepares = true
            case "--once":
                let text = try value(of: name)
                options.onceModels = ModelWorkload.allCases.first {
                    $0.isDoneOnce && $0.name.lowercased() == text.lowercased()
                }
                if options.onceModels == nil { options.once = try workload(text) }
            case "--side":
                let text = try value(of: name)
                guard let named = OneRun.sides.first(where: { $0.name == text }) else {
                    throw BenchError("There is no side “\(text)”")
                }
                options.side = named.side
            case "--weigh":
                switch try value(of: name) {
                case "raw": options.weighed = RawSide.self
                case "models": options.weighedModels = .read
                case "unread-models": options.weighedModels = .fetched
                default: options.weighed = FrameworkSide.self
                }
            case "--part": options.part = ChildPart(rawValue: try value(of: name))
            case "--help", "-h": options.showsHelp = true
            default: throw BenchError("“\(name)” is not an option. --help lists them")
            }
        }
        if options.width != .narrow { try options.leaveOutOtherWorkloads() }
        return options
    }

    /// Leaves out what knows narrow rows only, if all was to be measured.
    private mutating func leaveOutOtherWorkloads() throws {
        if only.count == Workload.allCases.count, concurrent.count == ConcurrentWorkload.allCases.count {
            (only, concurrent, models) = (RowWidth.workloads, [], [])
        }
        let others =
            only.filter { !RowWidth.workloads.contains($0) }.map(\.name) + concurrent.map(\.name)
            + models.map(\.name)
        guard others.isEmpty, postgreSQL == nil, !readsNorthwind else {
            throw BenchError(
                "--width \(width.rawValue) is for \(RowWidth.workloads.map(\.name).joined(separator: ", ")) only"
            )
        }
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
