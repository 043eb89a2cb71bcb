import CoreData
import CoreDataJobs

/// The work of the queue: a checksum of a document, made with some effort.
package struct Checksum: Job {
    /// The number that the producer gives, from 1 on.
    package var number: Int64
    package var document: String

    package init(number: Int64) {
        (self.number, document) = (number, Self.document(number))
    }

    /// The name of the document with a number.
    package static func document(_ number: Int64) -> String { "document-\(number).pdf" }

    /// The result of the job for a document.
    package static func result(of document: String) -> Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for _ in 0..<200 {
            for byte in document.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        return Int64(truncatingIfNeeded: hash)
    }
}

/// The effect of a job, written in the same save that ends the job.
///
/// Nothing keeps a second receipt for a number out of the store. So a job that was done twice would show.
@ManagedObject(.index("byNumber", on: "number"))
package final class Receipt: NSManagedObject {
    /// The number of the job.
    @Managed(.default(0)) package var number: Int64
    @Managed package var worker: String
    @Managed package var finishedAt: Date
    @Managed(.default(0)) package var result: Int64
}
