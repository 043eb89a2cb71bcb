import CoreData

/// The questions that the program asks of its store.
///
/// Each question runs on a separate background context and returns values: managed objects stay with their context.
struct Answers: Sendable {
    let container: NSPersistentContainer
    /// The number of rows in each answer.
    let limit: Int

    struct Totals: Sendable, Equatable {
        let packages: Int
        let names: Int
        let sections: Int
        let maintainers: Int
    }

    func totals() async throws -> Totals {
        try await onContext { context in
            Totals(
                packages: try context.count(for: NSFetchRequest<Package>(entityName: "Package")),
                names: try context.count(for: NSFetchRequest<PackageName>(entityName: "PackageName")),
                sections: try context.count(for: NSFetchRequest<Section>(entityName: "Section")),
                maintainers: try context.count(for: NSFetchRequest<Maintainer>(entityName: "Maintainer"))
            )
        }
    }

    /// The sections whose packages take the most space.
    func largestSections() async throws -> TextTable {
        try await onContext { context in
            let sections = try context.fetch(NSFetchRequest<Section>(entityName: "Section"))
            var sums: [NSManagedObjectID: (packages: Int, size: Int64)] = [:]
            for package in try context.fetch(NSFetchRequest<Package>(entityName: "Package")) {
                // The ID of the section is known without reading the section.
                guard let id = package.section?.objectID else { continue }
                sums[id, default: (0, 0)].packages += 1
                sums[id, default: (0, 0)].size += package.installedSize
            }

            let rows = sections.map { (name: $0.name ?? "", sum: sums[$0.objectID] ?? (0, 0)) }
                .sorted { ($1.sum.size, $0.name) < ($0.sum.size, $1.name) }
            var table = TextTable(.left("Largest sections"), .right("Packages"), .right("Installed"))
            for row in rows.prefix(limit) {
                table.append(row.name, row.sum.packages.grouped, row.sum.size.asByteCount)
            }
            return table
        }
    }

    /// The packages that take the most space.
    func biggestPackages() async throws -> TextTable {
        try await onContext { context in
            let request = NSFetchRequest<Package>(entityName: "Package")
            request.sortDescriptors = [
                NSSortDescriptor(key: "installedSize", ascending: false),
                NSSortDescriptor(key: "name", ascending: true),
            ]
            request.fetchLimit = limit
            request.relationshipKeyPathsForPrefetching = ["section"]

            var table = TextTable(
                .left("Biggest packages"),
                .left("Version"),
                .left("Section"),
                .right("Installed"),
                .right("Download")
            )
            for package in try context.fetch(request) {
                table.append(
                    package.name,
                    package.version,
                    package.section?.name ?? "",
                    package.installedSize.asByteCount,
                    package.downloadSize == 0 ? "" : package.downloadSize.asByteCount
                )
            }
            return table
        }
    }

    /// The packages that match `text` in their name or synopsis, and their total number.
    func search(_ text: String) async throws -> (table: TextTable, total: Int) {
        try await onContext { context in
            let request = NSFetchRequest<Package>(entityName: "Package")
            request.predicate = NSPredicate(format: "name CONTAINS[cd] %@ OR synopsis CONTAINS[cd] %@", text, text)
            let total = try context.count(for: request)

            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.fetchLimit = limit
            request.relationshipKeyPathsForPrefetching = ["section", "maintainer"]
            var table = TextTable(.left("Package"), .left("Section"), .left("Maintainer"), .left("Summary"))
            for package in try context.fetch(request) {
                table.append(
                    package.name,
                    package.section?.name ?? "",
                    package.maintainer?.name ?? "",
                    package.synopsis
                )
            }
            return (table, total)
        }
    }

    // MARK: - Dependencies

    private struct Demand: Sendable {
        let id: NSManagedObjectID
        let name: String
        let dependents: Int
    }

    private static let namesPerTurn = 1000

    /// The names that most packages depend on, found on `contexts` contexts at once.
    func mostDependedUpon(contexts: Int) async throws -> TextTable {
        let names = try await onContext { try $0.count(for: NSFetchRequest<PackageName>(entityName: "PackageName")) }
        let turns = stride(from: 0, to: names, by: Self.namesPerTurn)

        var best: [Demand] = []
        try await withThrowingTaskGroup(of: [Demand].self) { group in
            var waiting = turns.makeIterator()
            for _ in 0..<max(1, contexts) {
                guard let offset = waiting.next() else { break }
                group.addTask { try await demand(from: offset) }
            }
            while let found = try await group.next() {
                best = Array((best + found).sorted(by: Self.isMoreWanted).prefix(limit))
                if let offset = waiting.next() {
                    group.addTask { try await demand(from: offset) }
                }
            }
        }
        return try await table(of: best)
    }

    /// A part of the most wanted names, beginning at `offset`.
    private func demand(from offset: Int) async throws -> [Demand] {
        try await onContext { context in
            let request = NSFetchRequest<PackageName>(entityName: "PackageName")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.fetchOffset = offset
            request.fetchLimit = Self.namesPerTurn
            request.relationshipKeyPathsForPrefetching = ["dependents"]
            let demands = try context.fetch(request).map {
                Demand(id: $0.objectID, name: $0.name, dependents: $0.dependents.count)
            }
            return Array(demands.sorted(by: Self.isMoreWanted).prefix(limit))
        }
    }

    private static func isMoreWanted(_ first: Demand, _ second: Demand) -> Bool {
        (second.dependents, first.name) < (first.dependents, second.name)
    }

    private func table(of demands: [Demand]) async throws -> TextTable {
        try await onContext { context in
            var table = TextTable(
                .left("Most depended-upon"),
                .right("Dependents"),
                .right("Recommenders"),
                .left("In the index")
            )
            let wanted = demands.filter { $0.dependents > 0 }
            let packages = NSFetchRequest<Package>(entityName: "Package")
            packages.predicate = NSPredicate(format: "name IN %@", wanted.map(\.name))
            packages.sortDescriptors = [NSSortDescriptor(key: "version", ascending: false)]
            let newest = Dictionary(try context.fetch(packages).map { ($0.name, $0) }) { first, _ in first }
            let names = NSFetchRequest<PackageName>(entityName: "PackageName")
            names.predicate = NSPredicate(format: "SELF IN %@", wanted.map(\.id))
            names.relationshipKeyPathsForPrefetching = ["recommenders"]
            let recommenders = Dictionary(
                uniqueKeysWithValues: try context.fetch(names).map { ($0.objectID, $0.recommenders.count) }
            )
            for demand in wanted {
                table.append(
                    demand.name,
                    demand.dependents.grouped,
                    (recommenders[demand.id] ?? 0).grouped,
                    newest[demand.name].map { "version \($0.version)" } ?? "virtual"
                )
            }
            return table
        }
    }

    private func onContext<Result: Sendable>(
        _ question: @escaping @Sendable (NSManagedObjectContext) throws -> Result
    ) async throws -> Result {
        let context = container.newBackgroundContext()
        context.name = "answers"
        return try await context.perform { try question(context) }
    }
}
