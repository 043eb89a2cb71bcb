import CoreData

/// Brings packages into the store, on several contexts at once.
///
/// Each batch is one save, which the store does wholly or not at all. A batch asks the store first which of its packages
/// are there already, so that importing again, or going on after a crash, adds only what is missing. Two contexts may
/// still meet over one package, which two indexes both list: the constraint on the entity lets one of them win, and the
/// other starts its batch over and finds the package there.
struct Importer: Sendable {
    struct Outcome: Sendable, Equatable {
        var imported = 0
        var present = 0
    }

    let container: NSPersistentContainer
    let tables: LookupTables
    let retrying: Retrying

    static let packagesPerSave = 500

    /// Imports everything in `files` on `contexts` contexts, and tells `progress` how many packages are done.
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

    /// Saves the packages of `batch` that the store lacks, and returns how many those were.
    private func insert(_ batch: Batch, into context: NSManagedObjectContext) throws -> Int {
        // A batch leaves nothing behind, saved or not: the context is as good as new for the next.
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

        // `object(with:)` asks the store nothing: it returns a fault, and a fault is enough to point at.
        func object<Object>(_ id: NSManagedObjectID?) -> Object? {
            id.flatMap { context.object(with: $0) as? Object }
        }
        package.section = object(record.section.flatMap { tables.sections[$0] })
        package.maintainer = object(record.maintainer.flatMap { tables.maintainers[$0.email] })
        package.dependencies = Set(record.dependencies.compactMap { object(tables.names[$0]) })
        package.recommendations = Set(record.recommendations.compactMap { object(tables.names[$0]) })
    }
}
