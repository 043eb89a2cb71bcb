import CoreData

/// The operations of transactions on lists of unique numbers, and the lists at the end.
struct History {
    enum Operation {
        /// Has appended the second number to the list with the first number.
        case append(Int, Int)
        /// Has read the list with that number.
        case read(Int, [Int])
    }

    enum Outcome: String {
        case ok
        /// The transaction is known not to have happened.
        case failed = "fail"
    }

    struct Transaction {
        var operations: [Operation] = []
        var outcome = Outcome.ok
        /// Whether the save had to fail if anything that was only read had changed since.
        var isChecked: Bool
        /// Whether all its reads had to be of one version.
        var isPinned: Bool

        /// Its operations; of a list that was read, only the length.
        var summary: String {
            operations.map { operation in
                switch operation {
                case .append(let key, let element): "append \(element) to \(key)"
                case .read(let key, let list): "read \(key): \(list.count)"
                }
            }.joined(separator: ", ") + ", " + outcome.rawValue
                + (isChecked ? ", checked" : "") + (isPinned ? ", pinned" : "")
        }

        var isReadOnly: Bool {
            operations.allSatisfy { if case .read = $0 { true } else { false } }
        }
    }

    var transactions: [Transaction] = []
    var final: [Int: [Int]] = [:]

    init() {}

    /// Parses what `jsonLines` returns.
    ///
    /// - Parameter data: The lines.
    /// - Throws: `StressError` that names the line that is not valid.
    init(jsonLines data: Data) throws {
        for (number, line) in data.split(separator: UInt8(ascii: "\n")).enumerated() {
            guard let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any],
                let outcome = (object["type"] as? String).flatMap(Outcome.init),
                let values = object["value"] as? [[Any]]
            else { throw StressError("line \(number + 1) of the history is none") }
            var transaction = Transaction(
                outcome: outcome,
                isChecked: object["checked"] as? Bool ?? false,
                isPinned: object["pinned"] as? Bool ?? false
            )
            for value in values {
                guard value.count == 3, let key = value[1] as? Int else {
                    throw StressError("line \(number + 1) of the history has an operation that is none")
                }
                switch (value[0] as? String, value[2]) {
                case ("append", let element as Int): transaction.operations.append(.append(key, element))
                case ("r", let list as [Int]): transaction.operations.append(.read(key, list))
                default: throw StressError("line \(number + 1) of the history has an operation that is none")
                }
            }
            guard object["final"] == nil else {
                for case .read(let key, let list) in transaction.operations { final[key] = list }
                continue
            }
            transactions.append(transaction)
        }
    }

    /// The history in the format that Elle reads, one transaction a line.
    var jsonLines: String {
        var lines = ""
        for (number, transaction) in transactions.enumerated() {
            let values = transaction.operations.map { operation in
                switch operation {
                case .append(let key, let element): "[\"append\", \(key), \(element)]"
                case .read(let key, let list): "[\"r\", \(key), \(list)]"
                }
            }
            lines += #"{"index": \#(number), "type": "\#(transaction.outcome.rawValue)", "#
            lines += #""checked": \#(transaction.isChecked), "pinned": \#(transaction.isPinned), "#
            lines += #""value": [\#(values.joined(separator: ", "))]}"# + "\n"
        }
        let lists = final.sorted { $0.key < $1.key }.map { "[\"r\", \($0), \($1)]" }
        lines += #"{"index": \#(transactions.count), "type": "ok", "final": true, "#
        return lines + #""value": [\#(lists.joined(separator: ", "))]}"# + "\n"
    }
}
