import CoreData

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

    /// Produces until `isOver` returns true.
    ///
    /// - Returns: The number of jobs.
    @discardableResult
    package func run(until isOver: @Sendable () -> Bool) async throws -> Int64 {
        let context = container.newBackgroundContext()
        context.name = Self.name
        var last = try await context.perform { try Self.lastNumber(context) }
        let first = last
        let doorbell = Doorbell(container.persistentStoreCoordinator)
        while !isOver() {
            let count = doorbell.count
            let waiting = try await context.perform {
                try context.count(for: Job.request("isDone == NO AND claimedBy == nil"))
            }
            guard waiting < backlog else {
                await doorbell.wait(beyond: count, atMost: 0.25)
                continue
            }
            try await enqueue(last + 1...last + Int64(batch), in: context)
            last += Int64(batch)
        }
        return last - first
    }

    /// Saves jobs with these numbers, and notes them.
    package func enqueue(_ numbers: ClosedRange<Int64>, in context: NSManagedObjectContext) async throws {
        try await context.perform {
            let now = Date()
            for number in numbers {
                let job = Job(context: context)
                job.number = number
                job.payload = Job.payload(number)
                job.enqueuedAt = now
            }
            try context.save()
            // The producer does not need the jobs that it has made any more.
            context.reset()
        }
        logbook.note(numbers)
    }

    private static func lastNumber(_ context: NSManagedObjectContext) throws -> Int64 {
        let request = NSFetchRequest<Job>(entityName: "Job")
        request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: false)]
        request.fetchLimit = 1
        return try context.fetch(request).first?.number ?? 0
    }
}
