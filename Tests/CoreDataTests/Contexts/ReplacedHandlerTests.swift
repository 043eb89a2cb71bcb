import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// A handler may be the last that holds an object of the program, and the end of that object may use the framework.
///
/// Each test runs in a separate process, which an alarm ends if a thread waits for itself.
@Suite("Handlers that are replaced")
struct ReplacedHandlerTests {
    /// Runs code when it ends.
    private final class Ending: Sendable {
        private let end: @Sendable () -> Void

        init(_ end: @escaping @Sendable () -> Void) { self.end = end }
        deinit { end() }
        func use() {}
    }

    /// Sets a handler that alone holds an object whose end looks at the handler, replaces it, and removes it.
    private static func replace(
        _ setHolding: (Ending) -> Void,
        remove: () -> Void,
        isSet: @escaping @Sendable () -> Bool
    ) {
        alarm(300)
        let found = Shared<[Bool]>([])
        let note: @Sendable () -> Void = {
            let isSet = isSet()
            found.update { $0.append(isSet) }
        }
        setHolding(Ending(note))
        precondition(isSet() && found.current.isEmpty)
        setHolding(Ending(note))
        precondition(found.current == [true])
        remove()
        precondition(!isSet() && found.current == [true, false])
    }

    @Test func `errors that cannot be thrown`() async {
        await #expect(processExitsWith: .success) {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            ReplacedHandlerTests.replace { ending in
                coordinator.unreportableErrorHandler = { _, _ in ending.use() }
            } remove: {
                coordinator.unreportableErrorHandler = nil
            } isSet: {
                coordinator.unreportableErrorHandler != nil
            }
        }
    }

    @Test func `slow operations`() async {
        await #expect(processExitsWith: .success) {
            ReplacedHandlerTests.replace { ending in
                SlowOperationLog.handler = { _ in ending.use() }
            } remove: {
                SlowOperationLog.handler = nil
            } isSet: {
                SlowOperationLog.handler != nil
            }
        }
    }

    @Test func `repeated reads`() async {
        await #expect(processExitsWith: .success) {
            ReplacedHandlerTests.replace { ending in
                RepeatedReadLog.handler = { _ in ending.use() }
            } remove: {
                RepeatedReadLog.handler = nil
            } isSet: {
                RepeatedReadLog.handler != nil
            }
        }
    }

    @Test func `the progress of a migration`() async {
        await #expect(processExitsWith: .success) {
            let model = GuideModel.make()
            let manager = NSMigrationManager(sourceModel: model, destinationModel: model)
            ReplacedHandlerTests.replace { ending in
                manager.progressHandler = { _ in ending.use() }
            } remove: {
                manager.progressHandler = nil
            } isSet: {
                manager.progressHandler != nil
            }
        }
    }
}
