import Foundation

/// The options of the command line.
struct Options: Equatable {
    /// The index to read; `nil` for the indexes of this machine.
    var index: String?
    var store = "debian-index.sqlite"
    var contexts = ProcessInfo.processInfo.activeProcessorCount
    /// The number of rows in an answer, with which all answers fit on a small terminal.
    var limit = 3
    var search: String?
    var showsHelp = false
    /// Whether to show a migration instead, with a store that is made for it.
    var demonstratesMigration = false
    /// The number of packages in that store.
    var packages = 40_000
    /// Whether to only open the store and print the progress of its migration.
    ///
    /// The demonstration starts and kills such a process.
    var onlyMigrates = false

    static let help = """
        Imports a Debian package index into a Core Data store, on several contexts at once, and answers
        questions about it.

        Usage: debian-index [options]

          --index FILE     the index to read, plain or compressed
                           (default: apt's package lists, or /var/lib/dpkg/status when there are none)
          --store FILE     the SQLite store (default: debian-index.sqlite in the current folder)
          --contexts N     how many contexts import in parallel (default: the number of cores)
          --limit N        rows in each answer (default: 3)
          --search TEXT    also list the packages that have TEXT in their name or summary
          --demo-migration makes a store of version 1 of the model, opens it with the present one, kills that
                           half-way, and opens it again
          --packages N     how many packages that store has (default: 40000)
          --help           this text

        Running it again imports what is new and leaves the rest alone, and completes an import that was
        stopped half-way.
        """

    /// Reads the arguments that follow the program's name.
    ///
    /// An option and its value are two arguments, or one with `=` between them.
    ///
    /// - Throws: ``UsageError``.
    static func parse(_ arguments: some Sequence<String>) throws -> Options {
        var options = Options()
        var rest = Array(arguments)[...]
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0]
            func value() throws -> String {
                if parts.count == 2 { return parts[1] }
                guard let value = rest.popFirst() else { throw UsageError("\(name) needs a value") }
                return value
            }
            func number(in range: ClosedRange<Int>) throws -> Int {
                let text = try value()
                guard let number = Int(text), range.contains(number) else {
                    throw UsageError(
                        "\(name) takes a number from \(range.lowerBound) to \(range.upperBound), not “\(text)”"
                    )
                }
                return number
            }
            switch name {
            case "--index": options.index = try value()
            case "--store": options.store = try value()
            case "--contexts": options.contexts = try number(in: 1...256)
            case "--limit": options.limit = try number(in: 1...1000)
            case "--search": options.search = try value()
            case "--demo-migration": options.demonstratesMigration = true
            case "--packages": options.packages = try number(in: 1...10_000_000)
            case "--migrate": options.onlyMigrates = true
            case "--help", "-h": options.showsHelp = true
            // This is for the framework, which reads the arguments itself. An example is -com.apple.CoreData.SQLDebug
            // 1.
            case _ where name.hasPrefix("-com.apple.CoreData."): _ = try value()
            default: throw UsageError("“\(argument)” is not an option")
            }
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
