import CoreData

/// The notes of a process that may be killed: a line before each save, and one after it.
struct Ledger {
    /// A save that was begun.
    struct Entry {
        let save: Int64
        /// Further notes about the save, in words.
        let words: [String]
    }

    /// The saves in the order in which they were begun.
    private(set) var entries: [Entry] = []
    private(set) var begun: Set<Int64> = []
    private(set) var acknowledged: Set<Int64> = []

    /// The save that was begun last.
    var lastBegun: Int64? { entries.last?.save }

    init(reading path: String) {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            guard words.count > 1, let number = Int64(words[1]) else { continue }
            if words[0] == "i" {
                begun.insert(number)
                entries.append(Entry(save: number, words: Array(words.dropFirst(2))))
            } else {
                acknowledged.insert(number)
            }
        }
    }

    /// Writes each line through to the system, so that it survives the death of the process.
    struct Writer {
        private let file: Int32

        init(_ path: String) throws {
            file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            guard file >= 0 else { throw StressError("\(path) cannot be written") }
        }

        /// Writes a line.
        ///
        /// - Parameters:
        ///   - mark: `i` before a save, `a` once it is acknowledged.
        ///   - number: The save.
        ///   - words: The steps that the save will do.
        func note(_ mark: Character, _ number: Int64, _ words: [String] = []) {
            let line = Array((["\(mark)", "\(number)"] + words).joined(separator: " ").utf8) + [UInt8(ascii: "\n")]
            _ = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
    }
}
