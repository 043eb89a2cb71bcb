/// The effects that a migration of a store in place would have on its rows.
package struct MigrationForecast: Sendable {
    /// The numbers of rows by the name of their entity in the source.
    package let rows: [String: Int]
    /// The problems that would prevent the migration.
    package let problems: [RowFinding]
    /// The rows and values that would be dropped.
    package let losses: [RowFinding]
    /// The entities of the source whose rows would be written again, because their table is copied.
    package let copied: Set<String>

    package init(rows: [String: Int], problems: [RowFinding], losses: [RowFinding], copied: Set<String>) {
        self.rows = rows
        self.problems = problems
        self.losses = losses
        self.copied = copied
    }
}
