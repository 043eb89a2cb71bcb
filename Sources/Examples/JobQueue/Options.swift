import Foundation

/// The options of the command line.
struct Options: Equatable {
    /// The role of the process.
    enum Role: String, CaseIterable {
        case demo, produce, work, monitor, check
    }

    var role = Role.demo
    var folder = "job-queue"
    /// The URL of a PostgreSQL store; `nil` for a file in the folder.
    var database: String?
    var name = "worker"
    var contexts = 2
    var workers = 3
    var seconds = 10.0
    var lease = 2.0
    /// Whether the process ends when its input ends.
    ///
    /// So it ends when the process that has started it dies.
    var isSupervised = false
    var showsHelp = false

    static let help = """
        A queue of background jobs in a Core Data store that several processes share.

        Usage: job-queue [demo | produce | work | monitor | check] [options]

          demo      run a producer, workers and a monitor for some seconds, kill a worker on the way,
                    and check that every job was done exactly once (the default)
          produce   put jobs into the queue
          work      do jobs until SIGTERM or SIGINT
          monitor   show how the queue stands
          check     compare the store with the processes' logbooks

          --folder DIR    where store and logbooks are (default: job-queue in the current folder)
          --store URL     a store of PostgreSQL, postgresql://…, instead of a file in the folder
          --seconds S     how long to produce (default: 10)
          --workers N     worker processes of the demo (default: 3)
          --contexts N    jobs that a worker runs at once, each in a context (default: 2)
          --lease S       how long a worker that has died keeps its jobs (default: 2)
          --name NAME     the name of a worker; no two may have the same (default: worker)
          --supervised    end when the standard input does
          --help          this text
        """

    var folderURL: URL { URL(fileURLWithPath: folder, isDirectory: true) }
    var storeURL: URL {
        database.flatMap { URL(string: $0) } ?? folderURL.appendingPathComponent("queue.sqlite")
    }

    /// Reads the arguments that follow the program's name.
    ///
    /// An option and its value are two arguments, or one with `=` between them.
    static func parse(_ arguments: some Sequence<String>) throws -> Options {
        var options = Options()
        var rest = Array(arguments)[...]
        if let first = rest.first, let role = Role(rawValue: first) {
            options.role = role
            rest.removeFirst()
        }
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0]
            func value() throws -> String {
                if parts.count == 2 { return parts[1] }
                guard let value = rest.popFirst() else { throw UsageError("\(name) needs a value") }
                return value
            }
            func number(in range: ClosedRange<Double>) throws -> Double {
                let text = try value()
                guard let number = Double(text), range.contains(number) else {
                    throw UsageError("\(name) takes a number from \(range.lowerBound) to \(range.upperBound)")
                }
                return number
            }
            switch name {
            case "--folder": options.folder = try value()
            case "--store": options.database = try value()
            case "--name": options.name = try value()
            case "--contexts": options.contexts = Int(try number(in: 1...64))
            case "--workers": options.workers = Int(try number(in: 1...64))
            case "--seconds": options.seconds = try number(in: 0.1...86_400)
            case "--lease": options.lease = try number(in: 0.1...3600)
            case "--supervised": options.isSupervised = true
            case "--help", "-h": options.showsHelp = true
            // This is for the framework, which reads the arguments itself. An example is -com.apple.CoreData.SQLDebug
            // 1.
            case _ where name.hasPrefix("-com.apple.CoreData."): _ = try value()
            default: throw UsageError("“\(argument)” is not an option")
            }
        }
        if let database = options.database, !database.hasPrefix("postgresql://") || URL(string: database) == nil {
            throw UsageError("--store takes a URL that begins with postgresql://")
        }
        guard !options.name.contains(where: { $0 == "." || $0 == "/" }) else {
            throw UsageError("--name takes a name without dots and slashes")
        }
        return options
    }
}

/// The error of an invalid command line.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
