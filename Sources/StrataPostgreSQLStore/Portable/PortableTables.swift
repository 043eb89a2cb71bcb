/// The tables that only portable stores have, and the statements that make such a store.
///
/// A portable store takes nothing for granted but rows, unique keys and sequences. Other stores leave two things to
/// sessions of the server that are rows here:
///
/// - `strata_lease`: who makes the store, and who has it open;
/// - `strata_receipt`: which transactions were committed.
enum PortableTables {
    static let lease = "strata_lease"
    static let receipt = "strata_receipt"

    /// Their names.
    static let names = [lease, receipt]

    /// The table of leases, which is made first.
    ///
    /// `name` is ``ShapeLease/name``, or the identifier of a store object (``StoreLease``). The times are those of the server's clock.
    static let leases = """
        CREATE TABLE IF NOT EXISTS \(lease) (name text PRIMARY KEY, holder uuid NOT NULL, process text, seen double precision NOT NULL)
        """

    private static let receipts = """
        CREATE TABLE IF NOT EXISTS \(receipt) (id uuid PRIMARY KEY, lease text NOT NULL, void boolean NOT NULL, time double precision NOT NULL)
        """

    /// The statements that make a store, each of which may be run again.
    static func statements(_ schema: PostgreSQLSchema) -> [String] { [receipts] + schema.statements.map(repeatable) }

    /// A statement that makes nothing if it was run before.
    static func repeatable(_ sql: String) -> String {
        for kind in ["CREATE TABLE ", "CREATE SEQUENCE ", "CREATE UNIQUE INDEX ", "CREATE INDEX "]
        where sql.hasPrefix(kind) {
            return "\(kind)IF NOT EXISTS \(sql.dropFirst(kind.count))"
        }
        return sql
    }
}
