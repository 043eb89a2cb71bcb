import CoreData

/// The program: it surveys the indexes, imports them, and answers questions.
package enum DebianIndexCommand {
    package static func main() async {
        do {
            try await run(try Options.parse(CommandLine.arguments.dropFirst()))
        } catch let error as UsageError {
            report("\(error). --help lists the options.")
            exit(2)
        } catch let error as IndexError {
            report("\(error)")
            exit(1)
        } catch {
            report(error.localizedDescription)
            exit(1)
        }
    }

    static func run(_ options: Options) async throws {
        guard !options.showsHelp else {
            print(Options.help)
            return
        }
        if options.demonstratesMigration { return try MigrationDemo(options).run() }
        if options.onlyMigrates { return try MigrationDemo.migrate(URL(fileURLWithPath: options.store)) }
        let clock = ContinuousClock()
        let start = clock.now
        let files = try options.index.map { [try IndexFile(path: $0)] } ?? IndexFile.onThisMachine()
        let survey = try Survey(of: files)
        describe(survey, files)

        let container = try PackageStore.open(at: URL(fileURLWithPath: options.store))
        let retrying = Retrying()
        let tables = try await LookupTables.complete(
            for: survey,
            in: container.newBackgroundContext(),
            retrying: retrying
        )

        let bar = ProgressBar("Importing", total: survey.packages)
        let importer = Importer(container: container, tables: tables, retrying: retrying)
        let outcome = try await importer.run(files, contexts: options.contexts) { bar.advance(by: $0) }
        bar.finish()
        report(summary(of: outcome, retries: retrying.count, contexts: options.contexts, took: clock.now - start))

        for line in try await answers(options, container) { print(line) }
        fflush(nil)
        report("")
        for line in advice(searched: options.search != nil) { report(line) }
    }

    /// The answers as lines.
    ///
    /// With the default limit, they and the ``advice(searched:)`` fit on a small terminal.
    static func answers(_ options: Options, _ container: NSPersistentContainer) async throws -> [String] {
        let answers = Answers(container: container, limit: options.limit)
        let totals = try await answers.totals()
        var lines = [
            "\(totals.packages.grouped) packages in \(totals.sections.grouped) sections, by "
                + "\(totals.maintainers.grouped) maintainers, depending on \(totals.names.grouped) names"
        ]
        for table in [
            try await answers.largestSections(), try await answers.mostDependedUpon(contexts: options.contexts),
            try await answers.biggestPackages(),
        ] { lines += [""] + table.lines() }
        if let text = options.search {
            let (table, total) = try await answers.search(text)
            lines += ["", "\(total.grouped) packages match “\(text)”", ""] + table.lines()
        }
        return lines
    }

    /// Two lines with what to try next.
    static func advice(searched: Bool) -> [String] {
        let first =
            searched
            ? "make demo-migration opens an index of an older model, and is killed half-way."
            : "make demo DEMO_ARGS=\"--search sqlite --limit 10\" also lists the packages about SQLite."
        return [
            "Next: " + first,
            "      make demo-server takes orders, kills the worker, and draws how long the answers took.",
        ]
    }

    // MARK: - Output

    private static func describe(_ survey: Survey, _ files: [IndexFile]) {
        for file in files { report("Reading \(file.path)") }
        for complaint in survey.complaints { report("Skipping \(complaint)") }
        let unnamed = survey.malformed - survey.complaints.count
        if unnamed > 0 { report("Skipping \(unnamed.grouped) more malformed stanzas") }
        if survey.packages == 0 { report("There is no package in it: is this a package index?") }
    }

    /// One line about the results of an import, and its speed.
    static func summary(of outcome: Importer.Outcome, retries: Int, contexts: Int, took: Duration) -> String {
        let seconds = max(0.001, Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18)
        let rate = Int(Double(outcome.imported + outcome.present) / seconds)
        return "\(outcome.imported.grouped) imported, \(outcome.present.grouped) already there, "
            + "\(retries.grouped) retries after a conflict; "
            + String(format: "%.2f s on \(contexts) context\(contexts == 1 ? "" : "s"), ", seconds)
            + "\(rate.grouped) packages/s"
    }

    /// Writes to standard error, so that standard output contains only the answers.
    private static func report(_ message: String) {
        FileHandle.standardError.write(Data((message + "\n").utf8))
    }
}
