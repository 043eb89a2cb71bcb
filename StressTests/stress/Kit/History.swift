/// What transactions on lists of unique numbers have done, and what the lists were in the end.
struct History {
    enum Operation {
        /// Appended the second number to the list of the first.
        case append(Int, Int)
        /// Read that list.
        case read(Int, [Int])
    }

    enum Outcome: String {
        case ok
        /// Known not to have happened.
        case failed = "fail"
    }

    struct Transaction {
        var operations: [Operation] = []
        var outcome = Outcome.ok
        /// Whether the save was to fail if anything that was only read has changed since.
        var isChecked: Bool
        /// Whether all that it reads was to be of one version.
        var isPinned: Bool

        /// Its operations, with the lengths of the lists read.
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

    /// The history in the shape that Elle reads, a transaction a line.
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
            lines += #""value": [\#(values.joined(separator: ", "))]}"# + "\n"
        }
        return lines
    }
}
