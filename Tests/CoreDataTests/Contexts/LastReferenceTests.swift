import CoreData
import Dispatch
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

/// Another thread looks for a context while its last reference goes.
///
/// Then the look may hold the context last, so that the context ends on the thread that looks. Each test runs in a
/// separate process, which an alarm ends if a thread waits for itself.
@Suite("Contexts that end while other threads look for them")
struct LastReferenceTests {
    /// Runs `body` while another thread calls `look` all the time.
    ///
    /// - Parameters:
    ///   - look: The call.
    ///   - body: It gets a function that waits until `look` has begun anew, or for some microseconds.
    private static func looking(
        _ look: @escaping @Sendable () -> Void,
        during body: (_ waitForLook: () -> Void) throws -> Void
    ) rethrows {
        alarm(300)
        let (looks, isOver, ended) = (Shared(0), Shared(false), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            while !isOver.current {
                looks.update { $0 += 1 }
                look()
            }
            ended.signal()
        }
        try body {
            let count = looks.current
            var tries = 0
            while looks.current == count, tries < 1_000 { tries += 1 }
        }
        isOver.update { $0 = true }
        ended.wait()
    }

    @Test(arguments: StoreKind.allCases)
    func `an object is asked for its context`(_ kind: StoreKind) async {
        await #expect(processExitsWith: .success) { [kind] in
            let stack = try Stack(kind)
            let current = Shared(UncheckedBox<City?>(nil))
            LastReferenceTests.looking {
                guard let city = current.current.value else { return }
                for _ in 0..<20 { _ = city.managedObjectContext }
            } during: { waitForLook in
                for _ in 0..<2_000 {
                    var context: NSManagedObjectContext? = stack.context()
                    let city = context.map { context in context.performAndWait { City(context: context) } }
                    current.update { $0 = UncheckedBox(city) }
                    waitForLook()
                    context = nil
                }
            }
        }
    }

    /// Each change of whether a context merges looks at the contexts that do.
    @Test(arguments: StoreKind.allCases)
    func `another context begins and ceases to merge`(_ kind: StoreKind) async {
        await #expect(processExitsWith: .success) { [kind] in
            let stack = try Stack(kind)
            _ = try stack.storeCity("Porto")
            let other = stack.context()
            try LastReferenceTests.looking {
                other.performAndWait {
                    other.automaticallyMergesChangesFromParent = true
                    other.automaticallyMergesChangesFromParent = false
                }
            } during: { waitForLook in
                for _ in 0..<200 {
                    var contexts = (0..<40).map { _ in stack.context() }
                    let cities = try contexts.map { context in
                        context.automaticallyMergesChangesFromParent = true
                        return try context.performAndWait { try context.all(City.self) }
                    }
                    waitForLook()
                    while !contexts.isEmpty { contexts.removeLast() }
                    precondition(cities.allSatisfy { $0.count == 1 })
                }
            }
        }
    }
}
