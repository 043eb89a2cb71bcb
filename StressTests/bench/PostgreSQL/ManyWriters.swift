#if canImport(CoreDataPostgreSQL)
import CoreData
import CoreDataPostgreSQL
import Foundation
import Synchronization

/// The writers of one process, which shares nothing but a database with the other processes.
struct ManyWriters {
    /// The number that distinguishes this process from the others.
    let number: Int
    let threads: Int
    let seconds: Double
    let place: String

    init(number: Int, threads: Int, seconds: Double, place: String) {
        self.number = number
        self.threads = threads
        self.seconds = seconds
        self.place = place
    }

    /// Parses what ``text`` returns.
    init(_ text: String) throws {
        let parts = text.split(separator: " ", maxSplits: 3).map(String.init)
        guard parts.count == 4, let number = Int(parts[0]), let threads = Int(parts[1]), let seconds = Double(parts[2])
        else { throw BenchError("“\(text)” describes no writers") }
        self.init(number: number, threads: threads, seconds: seconds, place: parts[3])
    }

    var text: String { "\(number) \(threads) \(seconds) \(place)" }

    static var options: [AnyHashable: Any] { [NSPersistentHistoryTrackingKey: true] }

    /// In the process that was started for it: saves when it is asked to, and prints how often it saved.
    func work(isRaw: Bool) throws {
        let count: Int
        if isRaw {
            try BenchChild.isReady()
            guard try BenchChild.isAsked() else { return }
            count = try RawPostgreSQLSide.writers(
                place,
                PostgreSQLBench.rawSchema,
                threads,
                seconds: seconds,
                firstKey: Int64(number) << 40
            )
        } else {
            guard let url = URL(string: place) else { throw BenchError("The URL is not valid") }
            var options = Self.options
            options[NSPersistentStoreConnectionPoolMaxSizeKey] = threads + 2
            let stack = try FrameworkSide.Stack(.postgreSQL, url, FrameworkSide.model, options: options)
            defer { stack.close() }
            try BenchChild.isReady()
            guard try BenchChild.isAsked() else { return }
            count = try PostgreSQLBench.write(stack, threads: threads, seconds: seconds)
        }
        print(count)
    }
}

extension PostgreSQLBench {
    private static let processes = 4
    private static let threads = 8

    /// Compares many writers with a single one and with raw ones, and checks that a follower of the history misses no
    /// save.
    func manyWriters(_ goal: Double) throws -> String {
        var raw: [Double] = []
        var many: [Double] = []
        var one: [Double] = []
        for _ in 0..<options.runs {
            try RawPostgreSQLSide.create(try RawPostgreSQL(url, schema: Self.rawSchema))
            raw.append(try saves(.rawPostgreSQL, url, Self.processes, Self.threads))
            many.append(try withStore { try followed($0, Self.processes, Self.threads) })
            one.append(try withStore { try followed($0, 1, 1) })
        }
        let values = [raw, many, one].map(Self.median)
        let (share, times) = (values[1] / values[0], values[1] / values[2])
        func text(_ value: Double) -> String { String(format: value < 10 ? "%.2f" : "%.0f", value) }
        return
            "raw \(text(values[0])) saves a second, coredata \(text(values[1])), share \(text(share)), goal ≥ \(text(goal))\(share < goal ? " missed" : ""); one writer \(text(values[2])), so \(text(times)) times one, goal ≥ 10\(times < 10 ? " missed" : ""); the history's follower has missed none"
    }

    private func saves(_ part: ChildPart, _ place: String, _ processes: Int, _ threads: Int) throws -> Double {
        let children = try (0..<processes).map { number in
            let writers = ManyWriters(number: number, threads: threads, seconds: options.seconds, place: place)
            return try BenchChild(part, in: writers.text)
        }
        for child in children { try child.ask() }
        let counts = try children.map { child in
            guard let count = Int(try child.told().trimmingCharacters(in: .whitespacesAndNewlines)) else {
                throw BenchError("A process of writers has printed no number")
            }
            return count
        }
        return Double(counts.reduce(0, +)) / options.seconds
    }

    /// The saves a second of processes whose history is read while they write.
    ///
    /// - Throws: ``BenchError`` if a save is missing in what was read, or comes twice.
    private func followed(_ place: URL, _ processes: Int, _ threads: Int) throws -> Double {
        let stack = try FrameworkSide.Stack(.postgreSQL, place, FrameworkSide.model, options: ManyWriters.options)
        defer { stack.close() }
        let isOver = Atomic(false)
        let outcome = Mutex<Result<Int, any Error>>(.success(0))
        let group = DispatchGroup()
        group.enter()
        Thread {
            defer { group.leave() }
            outcome.withLock { $0 = Result { try Self.follow(stack, until: { isOver.load(ordering: .acquiring) }) } }
        }.start()
        let saves = try saves(.frameworkPostgreSQL, place.absoluteString, processes, threads)
        isOver.store(true, ordering: .releasing)
        group.wait()
        let followed = try outcome.withLock { try $0.get() }
        let made = Int((saves * options.seconds).rounded())
        guard followed == made else { throw BenchError("\(made) saves were made, and \(followed) were followed") }
        return saves
    }

    /// The number of transactions in the history, which is read again and again until the end.
    private static func follow(_ stack: FrameworkSide.Stack, until isOver: () -> Bool) throws -> Int {
        try stack.context.performAndWait {
            var token: NSPersistentHistoryToken?
            var count = 0
            while true {
                let isLast = isOver()
                let result =
                    try stack.context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
                    as? NSPersistentHistoryResult
                let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
                count += transactions.count
                token = transactions.last?.token ?? token
                if isLast { return count }
                if transactions.isEmpty { usleep(20_000) }
            }
        }
    }
}
#endif
