import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension OpenPostgreSQLStore {
    /// The keys of new rows: their own, or new ones for temporary keys.
    func keys(for rows: [Row], _ connection: Connection) throws -> [Int64] {
        var result = rows.map(\.key)
        // The positions of new rows by the number of their root entity; rows usually come in runs of one hierarchy.
        var positions: [(root: Int, new: [Int])] = []
        var current = 0
        for (position, row) in rows.enumerated() where row.key < 0 {
            let root = row.layout.rootNumber
            if positions.isEmpty || positions[current].root != root {
                if let known = positions.firstIndex(where: { $0.root == root }) {
                    current = known
                } else {
                    current = positions.count
                    positions.append((root, []))
                }
            }
            positions[current].new.append(position)
        }
        for (root, new) in positions {
            var unused = new[...]
            for range in try keys.reserve(new.count, root: root, connection) {
                for (key, position) in zip(range, unused) { result[position] = key }
                unused = unused.dropFirst(range.count)
            }
            if let position = unused.first {
                throw CocoaError.described(
                    .persistentStoreSave,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            "The store \(place) does not hold entity \(rows[position].layout.name)."
                    ]
                )
            }
        }
        return result
    }

    /// Whether a new row was refused because another row has its key.
    ///
    /// A crash, or a failover, can set a sequence back, so that it gives a block to two processes.
    func isKeyTaken(_ error: PostgreSQLError) -> Bool {
        guard error.isUniqueViolation, let constraint = error.constraint, let table = error.table else { return false }
        return PostgreSQLSchema.isPrimaryKey(constraint) && mapping.tables.contains { $0.name.raw == table }
    }
}
