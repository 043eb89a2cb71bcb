import StrataRows
import StrataSQL
import StrataSQLite
import Synchronization

/// External files of which nobody knows whether a row names them, since a commit failed.
///
/// Any thread may call any member.
final class DoubtfulFiles: Sendable {
    private let names = Mutex<Set<String>>([])

    func add(_ more: Set<String>) { names.withLock { $0.formUnion(more) } }

    func remove(_ settled: [String]) {
        guard !settled.isEmpty else { return }
        names.withLock { $0.subtract(settled) }
    }

    /// Those that no row names in the transaction that is open: once it is committed, for good.
    ///
    /// Looks at each value of the store that is tagged, if there are any such files at all.
    ///
    /// - Throws: Errors of SQLite.
    func settled(_ mapping: SQLMapping, _ connection: Connection) throws -> [String] {
        var settled = names.withLock { $0 }
        guard !settled.isEmpty else { return [] }
        for table in mapping.tables {
            let columns = table.entities.flatMap { $0.columns.filter(\.isTagged).compactMap(\.name) }
            for column in Set(columns.map(\.description)).sorted() {
                // The length is known without the value being read.
                let statement = try connection.statement(
                    SQL("SELECT \(column) FROM \(table.name) WHERE length(\(column)) BETWEEN 37 AND 38")
                )
                while try statement.step() {
                    if case .file(let name) = ExternalData.content(statement[0].bytes) { settled.remove(name) }
                }
            }
        }
        return Array(settled)
    }
}
