import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations

@Suite("The gate before the notification centre", .timeLimit(.minutes(20)))
struct NotificationGateTests {
    @Test
    func `an observer may wait for another thread's post, and may post itself`() {
        var posts = 0
        NotificationGate.pass {
            let isDone = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                NotificationGate.pass {}
                isDone.signal()
            }
            expectEqual(isDone.wait(timeout: .now() + 30), .success)
            NotificationGate.pass { posts += 1 }
            posts += 1
        }
        expectEqual(posts, 2)
    }

    @Test
    func `every post of many threads goes through, once`() {
        let count = Locked(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<1000 { NotificationGate.pass { count.withLock { $0 += 1 } } }
        }
        expectEqual(count.withLock { $0 }, 8000)
    }

    @Test
    func `an observer of all notifications of a context gets its saves`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let names = Locked<[String]>([])
        let observer = NotificationCenter.default.addObserver(forName: nil, object: context, queue: nil) { note in
            names.withLock { $0.append(note.name.rawValue) }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try context.performAndWait {
            City(context: context).name = "Lagos"
            try context.save()
        }
        expect(
            names.withLock { $0 } == [
                "NSObjectsChangedInManagingContextNotification", "NSManagingContextWillSaveChangesNotification",
                "NSManagingContextDidSaveChangesNotification",
                "NSManagedObjectContextDidSaveObjectIDsNotification",
            ]
        )
    }
}
