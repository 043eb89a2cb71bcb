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
    /// The steps in their order, with who has to wait for them; empty if the engine does not tell.
    package let steps: [MigrationStep]

    package init(
        rows: [String: Int],
        problems: [RowFinding],
        losses: [RowFinding],
        copied: Set<String>,
        steps: [MigrationStep] = []
    ) {
        self.rows = rows
        self.problems = problems
        self.losses = losses
        self.copied = copied
        self.steps = steps
    }
}

/// A step of a migration, and who has to wait for it.
package struct MigrationStep: Sendable, Hashable {
    /// The sessions that have to wait until the step is done.
    package enum Waiting: Sendable {
        case nobody
        /// Those that save.
        case writers
        /// Those that read or save.
        case everybody
    }

    /// The work, as part of a sentence.
    package let work: String
    package let waiting: Waiting
    /// The lock, by the name that the database has for it.
    package let lock: String
    /// Whether it takes longer the more rows there are.
    package let growsWithRows: Bool
    /// Whether others wait for so long that they notice it: the step grows with the rows, and there are many.
    package let isHazard: Bool

    package init(_ work: String, waiting: Waiting, lock: String, growsWithRows: Bool, isHazard: Bool) {
        self.work = work
        self.waiting = waiting
        self.lock = lock
        self.growsWithRows = growsWithRows
        self.isHazard = isHazard
    }
}
