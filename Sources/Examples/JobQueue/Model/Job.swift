import CoreData

/// A piece of work.
///
/// A job is waiting, claimed or done. A worker that claims one has a lease: until ``claimedUntil`` no other worker gets
/// the job. If a worker dies, its leases run out.
@ManagedObject(.index("byProgress", on: "isDone", "number"))
package final class Job: NSManagedObject {
    /// The number that the producer gives, from 1 on.
    @Managed(.unique, .default(0)) package var number: Int64
    @Managed package var payload: String
    @Managed package var enqueuedAt: Date
    @Managed(.default(false)) package var isDone: Bool
    /// The worker that has claimed the job; nil if it is waiting or done.
    @Managed package var claimedBy: String?
    @Managed package var claimedUntil: Date?
    /// The receipts of the workers that have done the job: one, if the queue is sound.
    @Managed(.inverse(\Receipt.job), .deleteRule(.cascade)) package var receipts: Set<Receipt>
}

/// The record that a job was done, written in the same save that ends the job.
@ManagedObject
package final class Receipt: NSManagedObject {
    @Managed package var worker: String
    @Managed package var finishedAt: Date
    @Managed(.default(0)) package var result: Int64
    @Managed(.required) package var job: Job?
}

extension Job {
    /// The jobs that satisfy a condition, the oldest one first.
    package static func request(_ condition: String) -> NSFetchRequest<Job> {
        let request = NSFetchRequest<Job>(entityName: "Job")
        request.predicate = NSPredicate(format: condition)
        request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
        return request
    }

    /// The result of a job: a checksum of its payload, made with some effort.
    package static func result(of payload: String) -> Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for _ in 0..<200 {
            for byte in payload.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        return Int64(truncatingIfNeeded: hash)
    }

    /// The payload that the producer gives to the job with a number.
    package static func payload(_ number: Int64) -> String { "document-\(number).pdf" }
}
