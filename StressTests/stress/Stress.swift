import CoreData
import StrataRows

/// The program: runs scenarios from a seed, judges what they recorded, and reports it in lines and with an exit code.
@main
enum Stress {
    static func main() {
        var arguments = CommandLine.arguments.dropFirst()
        // The framework reads this variable once. To measure what the checks cost, set it to 0.
        setenv(ConcurrencyDebug.name, "1", 0)
        do {
            if arguments.first == "red" {
                arguments.removeFirst()
                exit(try RedLane.run(Array(arguments)).rawValue)
            }
            if arguments.first == "child" { try ChildRoles.run(Array(arguments.dropFirst())) }
            let options = try StressOptions.parse(arguments)
            if options.showsHelp {
                say(StressOptions.help)
                exit(StressExit.clean.rawValue)
            }
            exit(try run(options).rawValue)
        } catch {
            FileHandle.standardError.write(Data("stress: \(describe(error))\n".utf8))
            exit(StressExit.harnessError.rawValue)
        }
    }

    private static func run(_ options: StressOptions) throws -> StressExit {
        if !options.json {
            say(
                "stress: seed \(options.seed), SQLite \(Report.sqliteVersion), \(Report.build) build of \(Report.commit)"
            )
        }
        var worst = StressExit.clean
        for scenario in options.scenarios {
            let asked = options.store.map { [$0] } ?? scenario.stores
            for kind in asked where scenario.runs(on: kind) {
                if kind == .postgresql { try DatabasePlace.requireServer() }
                if options.jitter > 0 { FaultPoints.jitter(options.seed, most: options.jitter) }
                let report = try Run(scenario, options, kind).report()
                say(options.json ? report.json : report.line)
                if !options.json { for finding in report.findings { say("  \(finding)") } }
                worst = max(worst, report.exit)
            }
        }
        return worst
    }
}

/// The result of a run.
enum StressExit: Int32, Comparable {
    case clean = 0
    /// A promise was broken.
    case anomaly = 1
    /// An operation did not come to an end.
    case stalled = 2
    /// The harness itself failed, which says nothing about the framework.
    case harnessError = 3
    /// Too little was done for a meaningful result.
    case belowFloor = 4

    static func < (one: StressExit, other: StressExit) -> Bool { one.severity < other.severity }

    private var severity: Int {
        switch self {
        case .clean: 0
        case .belowFloor: 1
        case .harnessError: 2
        case .stalled: 3
        case .anomaly: 4
        }
    }
}

/// Writes a line to standard output at once, so that a waiting reader sees it.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
