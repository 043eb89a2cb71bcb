import CoreData

/// Imports packages into the store, on several contexts at once.
///
/// Each batch is one save, which the store carries out completely or not at all. A batch first asks the store which of
/// its packages exist already. So if an import is repeated, or goes on after a crash, it adds only the missing
/// packages. Two contexts may still have the same package, if two indexes list it. Then the constraint on the entity
/// lets one of them win. The other starts its batch over and finds the package in the store.
struct Importer: Sendable {
    struct Outcome: Sendable, Equatable {
        var imported = 0
        var present = 0
    }

    let container: NSPersistentContainer
    let tables: LookupTables
    let retrying: Retrying

    static let packagesPerSave = 500

    /// Imports everything in `files` on `contexts` contexts, and reports the number of finished packages to `progress`.
    func run(
        _ files: [IndexFile],
        contexts: Int,
        progress: @escaping @Sendable (Int) -> Void
    ) async throws -> Outcome {
        let queue = BatchQueue(files, size: Self.packagesPerSave)
        return try await withThrowingTaskGroup(of: Outcome.self) { group in
            for number in 1...max(1, contexts) {
                group.addTask { try await work(on: queue, number: number, progress: progress) }
            }
            return try await group.reduce(into: Outcome()) { sum, outcome in
                sum.imported += outcome.imported
                sum.present += outcome.present
            }
        }
    }

    private func work(on queue: BatchQueue, number: Int, progress: @Sendable (Int) -> Void) async throws -> Outcome {
        let context = container.newBackgroundContext()
        context.name = "importer \(number)"
        context.undoManager = nil
        var sum = Outcome()
        while let batch = try await queue.next() {
            let imported = try await retrying {
                try await context.perform { try insert(batch, into: context) }
            }
            sum.imported += imported
            sum.present += batch.records.count - imported
            progress(batch.records.count)
        }
        return sum
    }

    /// Saves the packages of `batch` that the store lacks, and returns their number.
    private func insert(_ batch: Batch, into context: NSManagedObjectContext) throws -> Int {
        // A batch leaves nothing behind, saved or not: the next one finds the context as if it were new.
        defer { context.reset() }

        var present = try presentKeys(batch.records, in: context)
        let importedAt = Date()
        var imported = 0
        for record in batch.records where present.insert(record.key).inserted {
            let package = Package(context: context)
            fill(package, from: record, in: context)
            package.indexedAt = batch.indexedAt
            package.importedAt = importedAt
            imported += 1
        }
        if context.hasChanges { try context.save() }
        return imported
    }

    private func presentKeys(_ records: [PackageRecord], in context: NSManagedObjectContext) throws -> Set<PackageKey> {
        let request = NSFetchRequest<Package>(entityName: "Package")
        request.predicate = NSPredicate(format: "name IN %@", records.map(\.name))
        return Set(
            try context.fetch(request).map {
                PackageKey(name: $0.name, version: $0.version, architecture: $0.architecture)
            }
        )
    }

    private func fill(_ package: Package, from record: PackageRecord, in context: NSManagedObjectContext) {
        package.name = record.name
        package.version = record.version
        (package.upstreamVersion, package.revision) = Package.parts(ofVersion: record.version)
        package.architecture = record.architecture
        package.synopsis = record.summary
        package.homepage = record.homepage.flatMap { URL(string: $0) }
        package.priority = record.priority.flatMap { Priority(rawValue: $0) }
        package.installedSize = record.installedSize
        package.downloadSize = record.downloadSize
        package.fileName = record.fileName
        package.sha256 = record.sha256
        package.status = record.status

        // `object(with:)` does not ask the store: it returns a fault, and a fault is enough for a relationship.
        func object<Object>(_ id: NSManagedObjectID?) -> Object? {
            id.flatMap { context.object(with: $0) as? Object }
        }
        package.section = object(record.section.flatMap { tables.sections[$0] })
        package.maintainer = object(record.maintainer.flatMap { tables.maintainers[$0.email] })
        package.dependencies = Set(record.dependencies.compactMap { object(tables.names[$0]) })
        package.recommendations = Set(record.recommendations.compactMap { object(tables.names[$0]) })
    }
}
