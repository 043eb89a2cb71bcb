import CoreData
import Dispatch
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// The properties of an object that any thread may read while its context goes on.
@Suite("IDs and contexts of objects, read by other threads")
struct SharedIdentityTests {
    private struct Objects: @unchecked Sendable {
        // @unchecked Sendable: other threads read only what any thread may read.
        var list: [City]
    }

    /// Runs `body` while another thread reads the objects, until `body` has ended.
    private func reading<Result>(_ objects: Objects, _ body: () throws -> Result) rethrows -> Result {
        let isOver = Shared(false)
        let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            begun.signal()
            while !isOver.current {
                for object in objects.list.reversed() {
                    _ = object.objectID.isTemporaryID
                    _ = object.managedObjectContext?.name
                }
            }
            ended.signal()
        }
        begun.wait()
        defer {
            isOver.update { $0 = true }
            ended.wait()
        }
        return try body()
    }

    @Test(arguments: StoreKind.allCases)
    func `an ID that is read while the object is saved is permanent afterwards (CS-21)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for _ in 0..<20 {
            let context = stack.context()
            try context.performAndWait {
                let cities = (0..<300).map { number in
                    let city = City(context: context)
                    city.name = "\(number)"
                    return city
                }
                try reading(Objects(list: cities)) { try context.save() }
                for city in cities {
                    expect(!city.objectID.isTemporaryID)
                    expect(context.object(with: city.objectID) === city)
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object leads to its context until that goes (CS-21)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeCities((0..<100).map { "\($0)" })
        for round in 0..<20 {
            var context: NSManagedObjectContext? = stack.context()
            let objects = Objects(
                list: try require(context).performAndWait { try require(context).fetch(City.fetchRequest()) }
            )
            expect(objects.list.allSatisfy { $0.managedObjectContext === context })
            reading(objects) {
                if round % 2 == 0 { context?.performAndWait { context?.reset() } }
                context = nil
            }
            expect(objects.list.allSatisfy { $0.managedObjectContext == nil && !$0.objectID.isTemporaryID })
        }
    }
}
