import CoreData
import CoreDataJobs

/// Puts jobs into the queue, several with each save, unless too many are already waiting.
package struct Producer: Sendable {
    package static let name = "producer"

    package let container: NSPersistentContainer
    package let logbook: Logbook
    /// The number of jobs in a save.
    package var batch = 50
    /// The number of waiting jobs above which the producer pauses.
    package var backlog = 500

    package init(container: NSPersistentContainer, logbook: Logbook) {
        self.container = container
        self.logbook = logbook
    }

    /// Produces until a time, or until its task is cancelled.
    package func run(until end: Date) async throws {
        let context = container.newBackgroundContext()
        context.name = Self.name
        var last = try await context.perform { try Self.lastNumber(context) }
        while !Task.isCancelled, Date() < end {
            let waiting = try await context.perform { try context.count(for: QueuedJob.request(.ready)) }
            if waiting < backlog {
                try await enqueue(last + 1...last + Int64(batch), in: context)
                last += Int64(batch)
            } else {
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    /// Saves jobs with these numbers, and notes them.
    package func enqueue(_ numbers: ClosedRange<Int64>, in context: NSManagedObjectContext) async throws {
        try await context.perform {
            for number in numbers { try context.enqueue(Checksum(number: number)) }
            try context.save()
            // The producer does not need the jobs that it has made any more.
            context.reset()
        }
        logbook.note(numbers)
    }

    private static func lastNumber(_ context: NSManagedObjectContext) throws -> Int64 {
        let request = QueuedJob.request()
        request.sortDescriptors = [NSSortDescriptor(key: "enqueuedAt", ascending: false)]
        request.fetchLimit = 1
        return try context.fetch(request).first?.payload(as: Checksum.self).number ?? 0
    }
}
