import CoreData

/// Compares the store with the facts that the processes know to be saved.
package struct Audit: Sendable, Equatable {
    /// The number of jobs in the store.
    package var jobs = 0
    /// The problems, a sentence each.
    package var faults: [String] = []

    package var isSound: Bool { faults.isEmpty }

    package init() {}

    /// Checks the store.
    ///
    /// Each job must be in it once and done once, with the right result. The store must contain all facts of the
    /// logbooks.
    package init(_ container: NSPersistentContainer, logbooks: URL) async throws {
        let context = container.newBackgroundContext()
        let entries = try await context.perform { try Self.entries(context) }
        jobs = entries.count
        for (number, entry) in entries.sorted(by: { $0.key < $1.key }) {
            if entry.copies > 1 { faults.append("job \(number) is in the queue \(entry.copies) times") }
            switch (entry.isDone, entry.receipts.count) {
            case (true, 1): break
            case (true, 0): faults.append("job \(number) is done, but nobody has done it")
            case (false, 0): faults.append("job \(number) was never done")
            case (false, _): faults.append("job \(number) has a receipt, but is not done")
            default: faults.append("job \(number) was done \(entry.receipts.count) times, by \(entry.receipts)")
            }
            if entry.hasWrongResult { faults.append("job \(number) has a wrong result") }
        }
        for name in try Logbook.names(in: logbooks) {
            let numbers = try Logbook.numbers(name, in: logbooks)
            if Set(numbers).count != numbers.count { faults.append("\(name) has noted a job twice") }
            for number in numbers {
                guard let entry = entries[number] else {
                    faults.append("job \(number), which \(name) has saved, is lost")
                    continue
                }
                if name != Producer.name, !entry.receipts.contains(where: { $0.hasPrefix(name + ".") }) {
                    faults.append("the receipt of job \(number), which \(name) has saved, is lost")
                }
            }
        }
    }

    private struct Entry {
        var copies = 0
        var isDone = true
        /// The workers that have left a receipt.
        var receipts: [String] = []
        var hasWrongResult = false
    }

    private static func entries(_ context: NSManagedObjectContext) throws -> [Int64: Entry] {
        let request = NSFetchRequest<Job>(entityName: "Job")
        request.relationshipKeyPathsForPrefetching = ["receipts"]
        var entries: [Int64: Entry] = [:]
        for job in try context.fetch(request) {
            var entry = entries[job.number] ?? Entry()
            entry.copies += 1
            entry.isDone = entry.isDone && job.isDone
            entry.receipts += job.receipts.map(\.worker)
            let result = Job.result(of: Job.payload(job.number))
            if job.receipts.contains(where: { $0.result != result }) { entry.hasWrongResult = true }
            entries[job.number] = entry
        }
        return entries
    }
}
