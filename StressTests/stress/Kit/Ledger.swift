import CoreData

/// What a process that may be killed has written down: a line before each save, and one after it.
struct Ledger {
    private(set) var begun: Set<Int64> = []
    private(set) var acknowledged: Set<Int64> = []
    private(set) var lastBegun: Int64?

    init(reading path: String) {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") {
            guard let number = Int64(line.dropFirst(2)) else { continue }
            if line.hasPrefix("i") {
                begun.insert(number)
                lastBegun = number
            } else {
                acknowledged.insert(number)
            }
        }
    }

    /// Writes through to the system, which a killed process does not take with it.
    struct Writer {
        private let file: Int32

        init(_ path: String) throws {
            file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            guard file >= 0 else { throw StressError("\(path) cannot be written") }
        }

        func note(_ mark: Character, _ number: Int64) {
            let line = Array("\(mark) \(number)\n".utf8)
            _ = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
    }
}
