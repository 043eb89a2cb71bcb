import CoreData

/// Lists and purges a store's history, and manages its consumers.
enum HistoryCommand: Command {
    static let name = "history"
    static let summary =
        "list: the transactions and what each has changed. consumers: who reads them. purge: removes what all consumers have read, or what is older than --before."
    static let options: [Option] = [
        Option(
            "--store",
            "STORE",
            required: true,
            help: "the SQLite file, or the URL of a PostgreSQL store; only purge modifies it"
        ),
        .model,
        Option("--after", "N", help: "list: only transactions with higher numbers"),
        Option("--limit", "N", help: "list: how many at most (default: 100)"),
        Option("--before", "DAYS", help: "purge: transactions that are older than so many days, read or not"),
        Option("--forget", "DAYS", help: "purge: gives up consumers that were not seen for so many days"),
    ]
    static let operand: String? = "list|purge|consumers"

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        switch arguments.operands[0] {
        case "list": try list(arguments, print)
        case "consumers": try consumers(arguments, print)
        case "purge": try purge(arguments, print)
        case let other: throw UsageError("“\(other)” is none of list, purge and consumers")
        }
        return .success
    }

    private static func list(_ arguments: Arguments, _ print: (String) -> Void) throws {
        let limit = try arguments.number("--limit") ?? 100
        let store = try Store(arguments, access: .reading)
        let uuid = store.metadata[NSStoreUUIDKey] as? String ?? ""
        let after = try arguments.number("--after").map {
            NSPersistentHistoryToken(transactionNumbers: [uuid: Int64($0)])
        }
        try store.context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: after)
            let result = try store.context.execute(request) as? NSPersistentHistoryResult
            let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
            for transaction in transactions.prefix(limit) { lines(of: transaction).forEach(print) }
            if transactions.count > limit {
                print("… and \(transactions.count - limit) more; see --after and --limit.")
            }
        }
    }

    private static func lines(of transaction: NSPersistentHistoryTransaction) -> [String] {
        var words = ["\(transaction.transactionNumber)", transaction.timestamp.ISO8601Format()]
        if let author = transaction.author { words.append("by \(author)") }
        if let context = transaction.contextName { words.append("in \(context)") }
        var counts: [String: [Int]] = [:]
        for change in transaction.changes ?? [] {
            counts[change.changedObjectID.entity.name ?? "", default: [0, 0, 0]][change.changeType.rawValue] += 1
        }
        return [words.joined(separator: " ")]
            + counts.sorted { $0.key < $1.key }.map { entity, counts in
                let kinds = zip(["inserted", "updated", "deleted"], counts).filter { $0.1 > 0 }
                return "  \(entity): " + kinds.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
            }
    }

    private static func consumers(_ arguments: Arguments, _ print: (String) -> Void) throws {
        let store = try Store(arguments, access: .reading)
        let consumers = try store.coordinator.persistentHistoryConsumers()
        let lags = store.coordinator.statistics().stores.first?.historyLag ?? []
        guard !consumers.isEmpty else { return print("No consumer has registered.") }
        columns(
            [["Consumer", "Behind", "Last seen"]]
                + lags.map { [$0.consumer, "\($0.transactions)", $0.lastSeen.ISO8601Format()] },
            rightAligned: [1],
            indent: 0
        ).forEach(print)
    }

    private static func purge(_ arguments: Arguments, _ print: (String) -> Void) throws {
        func date(_ option: String) throws -> Date? {
            try arguments.number(option).map { Date(timeIntervalSinceNow: -86_400 * Double($0)) }
        }
        let (before, forget) = (try date("--before"), try date("--forget"))
        let store = try Store(arguments, access: .writing([:]))
        if let before {
            try store.context.performAndWait {
                let request = NSPersistentHistoryChangeRequest.deleteHistory(before: before)
                _ = try store.context.execute(request)
            }
            print("What is older than \(before.ISO8601Format()) is purged.")
        } else {
            let count = try store.coordinator.purgePersistentHistory(consumersLiveSince: forget ?? .distantPast)
            print("\(count) transactions are purged, which all consumers have read.")
        }
        try store.coordinator.close()
    }
}
