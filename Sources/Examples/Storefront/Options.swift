import Foundation

/// The options of the command line.
struct Options: Equatable {
    /// The role of the process.
    enum Role: String, CaseIterable {
        case demo, serve, work
    }

    var role = Role.demo
    var store = "storefront.sqlite"
    /// The database of the store, in place of a file.
    var postgreSQL: URL?
    var port = 8080
    var portFile: String?
    var name = "worker"
    var connections = 8
    var seconds = 20.0
    var showsHelp = false

    static let help = """
        A shop behind an HTTP server, with a worker in a process of its own that ships its orders.

        Usage: storefront-server [demo | serve | work] [options]

          demo      start server and worker, order for some seconds, kill the worker on the way, and check
                    that everything adds up (the default); the store is made anew, and a picture of the
                    latency is drawn beside it
          serve     answer requests until SIGTERM or SIGINT
          work      ship orders until SIGTERM or SIGINT

          --store FILE      the SQLite store (default: storefront.sqlite)
          --postgresql URL  a store in this database, such as postgresql:///shop?host=/run/postgresql
          --port N          where to listen on 127.0.0.1; 0 for any port that is free (default: 8080)
          --port-file FILE  where to write the port
          --name NAME       the name of a worker; no two may have the same (default: worker)
          --connections N   connections of the demo (default: 8)
          --seconds S       how long the demo orders (default: 20)
          --help            this text
        """

    var storeURL: URL { postgreSQL ?? URL(fileURLWithPath: store) }

    /// The file for the demo's picture of the latency, beside that of the store.
    var pictureURL: URL {
        URL(fileURLWithPath: store).deletingPathExtension().appendingPathExtension("latency.svg").absoluteURL
    }

    /// The arguments for another process that uses the same store.
    var storeArguments: [String] { postgreSQL.map { ["--postgresql", $0.absoluteString] } ?? ["--store", store] }

    /// Reads the arguments that follow the program's name.
    ///
    /// - Throws: `HTTPError` 400 with the problem.
    static func parse(_ arguments: some Sequence<String>) throws -> Options {
        var options = Options()
        var rest = Array(arguments)[...]
        if let role = rest.first.flatMap(Role.init) {
            options.role = role
            rest.removeFirst()
        }
        while let argument = rest.popFirst() {
            if argument == "--help" || argument == "-h" {
                options.showsHelp = true
                continue
            }
            if argument.hasPrefix("-com.apple.CoreData.") {
                _ = rest.popFirst()
                continue
            }
            guard let value = rest.popFirst() else { throw HTTPError(400, "\(argument) is unknown, or needs a value") }
            switch argument {
            case "--store": options.store = value
            case "--postgresql":
                guard let url = URL(string: value), url.scheme?.hasPrefix("postgres") == true else {
                    throw HTTPError(400, "\(argument) takes a URL that begins with postgresql://")
                }
                options.postgreSQL = url
            case "--port": options.port = try number(value, of: argument, in: 0...65_535)
            case "--port-file": options.portFile = value
            case "--name": options.name = value
            case "--connections": options.connections = try number(value, of: argument, in: 1...200)
            case "--seconds":
                guard let seconds = Double(value), seconds > 0 else {
                    throw HTTPError(400, "\(argument) takes seconds")
                }
                options.seconds = seconds
            default: throw HTTPError(400, "\(argument) is unknown")
            }
        }
        return options
    }

    private static func number(_ text: String, of option: String, in range: ClosedRange<Int>) throws -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw HTTPError(400, "\(option) takes a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
