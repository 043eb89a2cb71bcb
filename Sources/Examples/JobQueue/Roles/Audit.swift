import CoreData
import CoreDataJobs

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
            if entry.states.count != 1 { faults.append("job \(number) is in the queue \(entry.states.count) times") }
            for state in entry.states where state != .done { faults.append("job \(number) is \(state), and not done") }
            if entry.workers.count != 1 {
                faults.append("job \(number) was done \(entry.workers.count) times, by \(entry.workers)")
            }
            if entry.hasWrongResult { faults.append("job \(number) has a wrong result") }
        }
        for name in try Logbook.names(in: logbooks) {
            let numbers = try Logbook.numbers(name, in: logbooks)
            if Set(numbers).count != numbers.count { faults.append("\(name) has noted a job twice") }
            for number in numbers {
                let entry = entries[number] ?? Entry()
                if name == Producer.name, entry.states.isEmpty {
                    faults.append("job \(number), which \(name) has saved, is lost")
                } else if name != Producer.name, !entry.workers.contains(name) {
                    faults.append("the receipt of job \(number), which \(name) has saved, is lost")
                }
            }
        }
    }

    private struct Entry {
        /// The states of the jobs with this number.
        var states: [JobState] = []
        /// The workers that have left a receipt.
        var workers: [String] = []
        var hasWrongResult = false
    }

    private static func entries(_ context: NSManagedObjectContext) throws -> [Int64: Entry] {
        var entries: [Int64: Entry] = [:]
        for job in try context.fetch(QueuedJob.request()) {
            let number = try job.payload(as: Checksum.self).number
            entries[number, default: Entry()].states.append(job.state)
        }
        for receipt in try context.fetch(NSFetchRequest<Receipt>(entityName: "Receipt")) {
            let result = Checksum.result(of: Checksum.document(receipt.number))
            entries[receipt.number, default: Entry()].workers.append(receipt.worker)
            if receipt.result != result { entries[receipt.number]?.hasWrongResult = true }
        }
        return entries
    }
}
