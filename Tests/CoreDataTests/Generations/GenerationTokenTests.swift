import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataSQLite

/// Tokens: the versions that they name, and the contexts that they can pin.
@Suite("Query generation tokens")
struct GenerationTokenTests {
    @Test func `a token pins another context to the same version (CS-180)`() throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        let first = try stack.pinnedContext("first")
        _ = try stack.storeCity("B")
        let second = stack.context("second")
        try second.inside { () throws in try expectEqual(second.storedCityNames(), ["A", "B"]) }
        let token = first.performAndWait { first.queryGenerationToken }
        try second.inside { () throws in
            try second.setQueryGenerationFrom(token)
            try expectEqual(second.storedCityNames(), ["A"])
            expectEqual(second.queryGenerationToken, token)
        }
        guard stack.kind == .sqlite else { return }
        // One connection serves both contexts.
        try expectEqual(stack.pool.snapshotCount.value, 1)
    }

    @Test func `a token taken before anything was read names the version that is read first`() throws {
        let stack = try Stack(.database)
        let (first, second) = (stack.context("first"), stack.context("second"))
        let token = try first.inside { () throws in
            try first.setQueryGenerationFrom(.current)
            return first.queryGenerationToken
        }
        try second.inside { () throws in try second.setQueryGenerationFrom(token) }
        _ = try stack.storeCity("A")
        try second.inside { () throws in try expectEqual(second.storedCityNames(), ["A"]) }
        _ = try stack.storeCity("B")
        try first.inside { () throws in try expectEqual(first.storedCityNames(), ["A"]) }
    }

    @Test func `a token keeps its version when its context has gone`() throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        var context: NSManagedObjectContext? = try stack.pinnedContext()
        let token = context?.performAndWait { context?.queryGenerationToken }
        context = nil
        _ = try stack.storeCity("B")
        let other = stack.context("other")
        try other.inside { () throws in
            try other.setQueryGenerationFrom(token)
            try expectEqual(other.storedCityNames(), ["A"])
        }
    }

    @Test func `nil reads the newest again`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A")
        let context = try stack.pinnedContext()
        try stack.change(id, City.self) { city, _ in city.name = "B" }
        try context.inside { () throws in
            let fault = try context.get(id, City.self)
            try expectEqual(context.storedCityNames(), ["A"])
            expectEqual(fault.name, "A")
            try context.setQueryGenerationFrom(nil)
            expectEqual(context.queryGenerationToken, nil)
            // Realised objects do not change.
            expectEqual(fault.name, "A")
            context.refresh(fault, mergeChanges: true)
            expectEqual(fault.name, "B")
        }
    }

    @Test func `faults that a fetch has filled beforehand show the version that is pinned afterwards`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("old")
        let pinned = try stack.pinnedContext()
        try stack.change(id, City.self) { city, _ in city.name = "new" }
        let context = stack.context("other")
        try context.inside { () throws in
            let city = try require(try context.fetch(citiesByName()).first)
            let partial = citiesByName()
            partial.propertiesToFetch = ["name"]
            _ = try context.fetch(partial)
            expect(city.isFault)
            try context.setQueryGenerationFrom(pinned.performAndWait { pinned.queryGenerationToken })
            expectEqual(city.name, "old")
        }
    }

    @Test func `tokens are equal if they name one version`() throws {
        let stack = try Stack(.database)
        let (first, second) = (try stack.pinnedContext("first"), try stack.pinnedContext("second"))
        let tokens = [first, first, second].compactMap { context in
            context.performAndWait { context.queryGenerationToken }
        }
        try require(tokens.count == 3)
        expect(tokens[0] == tokens[1] && tokens[0].hash == tokens[1].hash)
        expect(tokens[0] != tokens[2])
        expectEqual(NSQueryGenerationToken.current, NSQueryGenerationToken.current)
        expect(NSQueryGenerationToken.current != tokens[0])
        expectEqual(tokens[0].copy() as? NSQueryGenerationToken, tokens[0])
    }

    @Test func `archived tokens are understood as long as their version is held`() throws {
        func archived(_ token: NSQueryGenerationToken) throws -> NSQueryGenerationToken {
            let data = try NSKeyedArchiver.archivedData(withRootObject: token, requiringSecureCoding: true)
            return try require(
                try NSKeyedUnarchiver.unarchivedObject(ofClass: NSQueryGenerationToken.self, from: data)
            )
        }
        try expectEqual(archived(.current), .current)
        let stack = try Stack(.database)
        let context = try stack.pinnedContext()
        var token = context.performAndWait { context.queryGenerationToken }
        let living = try archived(try require(token))
        expectEqual(living, token)
        token = nil
        try context.inside { () throws in try context.setQueryGenerationFrom(nil) }
        // Only `living` still holds the version.
        try expectEqual(archived(living), living)
        let other = stack.context("other")
        try other.inside { () throws in
            try other.setQueryGenerationFrom(living)
            expectEqual(other.queryGenerationToken, living)
        }
    }

    @Test func `an archived token of a version that has gone pins no context`() throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        let context = try stack.pinnedContext()
        let data = try context.inside { () throws in
            let token = try require(context.queryGenerationToken)
            return try NSKeyedArchiver.archivedData(withRootObject: token, requiringSecureCoding: true)
        }
        try context.inside { () throws in try context.setQueryGenerationFrom(nil) }
        let gone = try require(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: NSQueryGenerationToken.self, from: data)
        )
        try context.inside { () throws in
            expectThrows(CocoaError.self) { try context.setQueryGenerationFrom(gone) }
            expectEqual(context.queryGenerationToken, nil)
            try expectEqual(context.storedCityNames(), ["A"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child has no token and cannot be pinned (CS-55)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let parent = stack.context("parent")
        try parent.inside { () throws in try parent.setQueryGenerationFrom(.current) }
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        try child.inside { () throws in
            expectEqual(child.queryGenerationToken, nil)
            let error = expectThrows(CocoaError.self) { try child.setQueryGenerationFrom(.current) }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(child.queryGenerationToken, nil)
        }
    }

    @Test func `tokens of other coordinators, and contexts without one, are refused`() throws {
        let stack = try Stack(.database)
        let context = try stack.pinnedContext()
        let elsewhere = NSManagedObjectContext(.privateQueue)
        try elsewhere.inside { () throws in
            let error = expectThrows(CocoaError.self) { try elsewhere.setQueryGenerationFrom(.current) }
            expectEqual(error?.code, .persistentStoreOperation)
        }
        elsewhere.persistentStoreCoordinator = try stack.secondCoordinator()
        let token = context.performAndWait { context.queryGenerationToken }
        try elsewhere.inside { () throws in
            let error = expectThrows(CocoaError.self) { try elsewhere.setQueryGenerationFrom(token) }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(elsewhere.queryGenerationToken, nil)
        }
    }
}
