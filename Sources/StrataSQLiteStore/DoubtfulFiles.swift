import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// External files of failed commits.
///
/// It is not known whether a row names them.
///
/// Any thread may call any member.
final class DoubtfulFiles: Sendable {
    private let names = Locked<Set<String>>([])

    func add(_ more: Set<String>) { names.withLock { $0.formUnion(more) } }

    func remove(_ unnamed: [String]) {
        guard !unnamed.isEmpty else { return }
        names.withLock { $0.subtract(unnamed) }
    }

    /// The files that no row names in the open transaction.
    ///
    /// Once it is committed, no row ever will. If there are files in doubt, this reads each tagged value of the store.
    ///
    /// - Throws: Errors of SQLite.
    func filesWithoutRow(_ mapping: SQLMapping, _ connection: Connection) throws -> [String] {
        var unnamed = names.withLock { $0 }
        guard !unnamed.isEmpty else { return [] }
        for table in mapping.tables {
            let columns = table.entities.flatMap { $0.columns.filter(\.isTagged).compactMap(\.name) }
            for column in Set(columns.map(\.description)).sorted() {
                // SQLite knows the length without reading the value.
                let statement = try connection.statement(
                    SQL("SELECT \(column) FROM \(table.name) WHERE length(\(column)) BETWEEN 37 AND 38")
                )
                while try statement.step() {
                    if case .file(let name) = ExternalData.content(statement[0].bytes) { unnamed.remove(name) }
                }
            }
        }
        return Array(unnamed)
    }
}
