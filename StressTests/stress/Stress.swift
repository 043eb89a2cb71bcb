import CoreData

/// The program: runs a scenario from a seed, judges what it recorded, and says so in a line and an exit code.
@main
enum Stress {
    static func main() {
        let options: StressOptions
        do {
            options = try StressOptions.parse(CommandLine.arguments.dropFirst())
        } catch {
            finish("stress: \(error.localizedDescription)", .harnessError)
        }
        guard !options.showsHelp else { finish(StressOptions.help, .clean, to: .standardOutput) }

        var worst = StressExit.clean
        for kind in options.stores {
            let report: Report
            do {
                report = try Bank(options: options, kind: kind).run()
            } catch {
                finish("stress: \(error.localizedDescription)", .harnessError)
            }
            print(options.json ? report.json : report.line)
            for finding in report.findings.prefix(20) { print("  \(finding)") }
            worst = max(worst, report.exit)
        }
        exit(worst.rawValue)
    }

    private static func finish(_ text: String, _ code: StressExit, to file: FileHandle = .standardError) -> Never {
        file.write(Data((text + "\n").utf8))
        exit(code.rawValue)
    }
}

/// How a run ends.
enum StressExit: Int32, Comparable {
    case clean = 0
    /// A promise was broken.
    case anomaly = 1
    /// Something did not come to an end.
    case stalled = 2
    /// The harness itself could not work, which says nothing about the framework.
    case harnessError = 3
    /// Too little was done for the result to mean anything.
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
