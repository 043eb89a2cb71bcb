import CoreData
import TestSupport
import XCTest

/// On the main thread, with a run loop that the test itself runs: tests of the other kind are served by the main actor.
final class RunLoopEventTests: XCTestCase {
    func testARunLoopEndsTheEventsOfContextsOfTheMainQueue() throws {
        let stack = try Stack(.memory)
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let told = expectation(description: "objects-did-change")
        let token = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextObjectsDidChange,
            object: context,
            queue: nil
        ) { _ in told.fulfill() }
        defer { NotificationCenter.default.removeObserver(token) }
        City(context: context).name = "Porto"
        wait(for: [told], timeout: 60)
    }
}
