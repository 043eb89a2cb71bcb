import CoreData
import CoreDataJobs

/// The program: the server, a worker, or the demonstration that starts both.
package enum StorefrontCommand {
    package static func main() async {
        do {
            let options = try Options.parse(CommandLine.arguments.dropFirst())
            if options.showsHelp { return print(Options.help) }
            exit(try await run(options) ? 0 : 1)
        } catch let error as HTTPError {
            complain(error.text)
            exit(2)
        } catch {
            complain(error.localizedDescription)
            exit(1)
        }
    }

    /// - Returns: False if a check found faults.
    private static func run(_ options: Options) async throws -> Bool {
        switch options.role {
        case .demo: return try await Demo(options).run()
        case .serve:
            let isAsked = TerminationSignal()
            let server = try StorefrontServer(storeURL: options.storeURL, port: options.port)
            if let file = options.portFile {
                try Data("\(server.port)\n".utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
            } else {
                print("http://127.0.0.1:\(server.port)/")
            }
            await isAsked.wait()
            try await server.stop()
        case .work:
            let container = try StorefrontStore.open(at: options.storeURL)
            try await Packer.worker(on: container, name: options.name).run()
            try await container.close(within: .seconds(60))
        }
        return true
    }

    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data("storefront: \(text)\n".utf8))
    }
}

/// Waits for SIGTERM or SIGINT, which no longer end the process themselves.
private final class TerminationSignal: @unchecked Sendable {
    // @unchecked Sendable: `sources` is set in the initialiser only; the rest is immutable.
    private let arrivals: AsyncStream<Void>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (stream, arrive) = AsyncStream<Void>.makeStream()
        arrivals = stream
        sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { arrive.yield() }
            source.resume()
            return source
        }
    }

    func wait() async { for await _ in arrivals { return } }
}
