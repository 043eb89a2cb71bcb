import CoreData
import Expectations
import Foundation
import StrataSQLite
import TestSupport
import Testing

/// Backups that are put back into the file of a store that is open.
@Suite("Stores that are set back while they are open")
struct RestorationTests {
    private let stack: Stack
    private let backup: URL
    private let bonn: NSManagedObjectID
    private let ulm: NSManagedObjectID
    private let bar: NSManagedObjectID

    /// The city of Bonn and a bar with version 3, and a backup in which both have version 2.
    init() throws {
        stack = try Stack(.sqlite)
        backup = stack.folder.appendingPathComponent("backup.sqlite")
        bonn = try stack.storeCity("Bonn", population: 1)
        ulm = try stack.storeCity("Ulm", population: 1)
        bar = try stack.store(Venue.self) { venue, _ in venue.seats = 1 }
        try write(2)
        try NSPersistentStoreCoordinator.backUpPersistentStore(at: stack.storeURL, type: .sqlite, to: backup)
        try write(3)
    }

    private func write(_ number: Int32) throws {
        try stack.change(bonn, City.self) { city, _ in city.population = Int64(number) }
        try stack.change(bar, Venue.self) { venue, _ in venue.seats = number }
    }

    private func restore(from source: URL? = nil) throws {
        // Opens no stores, as another program.
        try NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make()).replacePersistentStore(
            at: stack.storeURL,
            withPersistentStoreFrom: source ?? backup,
            type: .sqlite
        )
    }

    /// Changes the store through another coordinator, as another process does.
    private func elsewhere(_ body: (NSManagedObjectContext) throws -> Void) throws {
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()
        try other.performAndWait {
            try body(other)
            try other.save()
        }
    }

    private func population() throws -> Int64 { try stack.read(bonn, City.self) { $0.population } }

    // MARK: - Lost updates

    @Test(arguments: Policy.allCases)
    func `a change of a row whose version has come again is a conflict`(_ policy: Policy) throws {
        let context = stack.context(policy)
        try context.performAndWait {
            let city = try context.get(bonn, City.self)
            expectEqual(city.population, 3)
            try restore()
            try elsewhere { try $0.city().population = 30 }
            city.population = 300
            guard policy == .error else { return try context.save() }
            let conflicts = try context.versionConflictsOfSave()
            expectEqual(conflicts.map(\.sourceObject), [city])
            expectEqual(conflicts.map { [$0.oldVersionNumber, $0.newVersionNumber] }, [[3, 3]])
        }
        try expectEqual(population(), policy.memoryWins ? 300 : 30)
        guard policy != .error else { return }
        // The context knows what is stored now.
        try context.performAndWait {
            try context.get(bonn, City.self).population += 1
            try context.save()
        }
        try expectEqual(population(), policy.memoryWins ? 301 : 31)
    }

    @Test(arguments: Policy.allCases)
    func `a deletion of a row whose version has come again is a conflict`(_ policy: Policy) throws {
        let context = stack.context(policy)
        try context.performAndWait {
            let venue = try context.get(bar, Venue.self)
            expectEqual(venue.seats, 3)
            try restore()
            try elsewhere { try $0.all(Venue.self).first?.seats = 30 }
            context.delete(venue)
            guard policy == .error else { return try context.save() }
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [venue])
        }
        try expectEqual(stack.count("Venue"), policy.memoryWins ? 0 : 1)
    }

    @Test(arguments: Policy.allCases)
    func `a relationship that is set in a row whose version has come again is a conflict`(_ policy: Policy) throws {
        let context = stack.context(policy)
        try context.performAndWait {
            let venue = try context.get(bar, Venue.self)
            expect(venue.seats == 3 && venue.city == nil)
            try restore()
            try elsewhere { try $0.all(Venue.self).first?.city = $0.city() }
            venue.city = try context.get(ulm, City.self)
            guard policy == .error else { return try context.save() }
            try expect(context.versionConflictsOfSave().contains { $0.sourceObject === venue })
        }
        let name = try stack.read(bar, Venue.self) { $0.city?.name }
        expectEqual(name, policy.memoryWins ? "Ulm" : "Bonn")
    }

    @Test func `after a second restoration what was read after the first is a conflict, too`() throws {
        let context = stack.context()
        try context.performAndWait {
            try restore()
            let city = try context.get(bonn, City.self)
            expectEqual(city.population, 2)
            city.population = 20
            try context.save()
            try restore()
            try elsewhere { try $0.city().population = 30 }
            city.population = 300
            try expectEqual(context.versionConflictsOfSave().count, 1)
        }
        try expectEqual(population(), 30)
    }

    @Test func `an object whose row is gone, or whose key another has got, is a conflict`() throws {
        let id = try stack.storeCity("Trier")
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.name, "Trier")
            try restore()
            city.population = 7
            try expectEqual(context.versionConflictsOfSave().map(\.newVersionNumber), [0])
            try elsewhere { $0.makeCity("Xanten") }
            try expectEqual(context.versionConflictsOfSave().map(\.newVersionNumber), [1])
        }
        try expectEqual(stack.all(City.self) { "\($0.name) \($0.population)" }, ["Bonn 2", "Ulm 1", "Xanten 0"])
    }

    @Test func `work that is tried again begins with what was put back`() throws {
        let context = stack.context()
        var attempts = 0
        try context.performAndWait(retrying: 3) {
            attempts += 1
            let city = try context.city()
            let population = city.population
            if attempts == 1 {
                try restore()
                try elsewhere { try $0.city().population = 30 }
            }
            city.population = population + 1
        }
        expectEqual(attempts, 2)
        try expectEqual(population(), 31)
    }

    // MARK: - What goes on

    @Test func `faults read what was put back, and no cached row answers`() throws {
        let (context, other) = (stack.context(), stack.context())
        try context.performAndWait {
            let city = try context.get(bonn, City.self)
            expectEqual(city.population, 3)
            try restore()
            try expectEqual(other.performAndWait { try other.get(bonn, City.self).population }, 2)
            context.refresh(city, mergeChanges: false)
            expectEqual(city.population, 2)
            // An object that is read again is saved, and saved once more.
            for population in [20, 21] as [Int64] {
                city.population = population
                try context.save()
            }
        }
        try expectEqual(population(), 21)
    }

    @Test func `new objects are saved, changed and deleted as ever, and the file has plain versions`() throws {
        let context = stack.context()
        try context.performAndWait {
            _ = try context.city().population
            try restore()
            context.makeCity("Aachen", population: 1)
            try context.save()
            let city = try context.city()
            expectEqual(city.name, "Aachen")
            city.population = 2
            try context.save()
            context.delete(city)
            try context.save()
            context.makeCity("Aalen")
            try context.save()
        }
        let connection = try Connection(path: stack.storeURL.path, access: .readOnly)
        defer { connection.close() }
        try expectEqual(connection.strings("SELECT Z_OPT FROM ZCITY ORDER BY ZNAME"), ["1", "2", "1"])
    }

    @Test func `a program that opens the store afterwards is not affected, and saved metadata keep the mark`() throws {
        try restore()
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = try stack.secondCoordinator()
        try context.performAndWait {
            let city = try context.city()
            for population in [20, 21] as [Int64] {
                city.population = population
                try context.save()
            }
        }
        func mark() throws -> String? {
            let key = "StrataRestoration"
            return try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: stack.storeURL)[key]
                as? String
        }
        let before = try require(try mark())
        let store = try require(stack.coordinator.persistentStores.first)
        stack.coordinator.setMetadata(["colour": "red"], for: store)
        try stack.change(bonn, City.self) { city, _ in city.population += 1 }
        try expectEqual(mark(), before)
        try expectEqual(population(), 22)
    }

    @Test func `a pinned context goes on reading what it is pinned to`() throws {
        let context = stack.context()
        try context.performAndWait {
            try context.setQueryGenerationFrom(.current)
            let city = try context.city()
            expectEqual(city.population, 3)
            try restore()
            context.refresh(city, mergeChanges: false)
            expectEqual(city.population, 3)
            try context.setQueryGenerationFrom(nil)
            context.refresh(city, mergeChanges: false)
            expectEqual(city.population, 2)
        }
    }

    @Test func `objects of a store that was set back go on after its migration to another file`() throws {
        let context = stack.context()
        let url = stack.folder.appendingPathComponent("new.sqlite")
        try context.performAndWait {
            context.retainsRegisteredObjects = true
            try restore()
            try expectEqual(context.city().population, 2)
        }
        let store = try require(stack.coordinator.persistentStores.first)
        try stack.coordinator.migratePersistentStore(store, to: url, type: .sqlite)
        try context.performAndWait {
            let city = try context.city()
            for population in [20, 21] as [Int64] {
                city.population = population
                try context.save()
            }
        }
        let connection = try Connection(path: url.path, access: .readOnly)
        defer { connection.close() }
        try expectEqual(connection.strings("SELECT Z_OPT FROM ZCITY ORDER BY ZNAME"), ["4", "1"])
    }

    @Test func `a coordinator puts a backup back into a store that it has open itself`() throws {
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(bonn, City.self)
            expectEqual(city.population, 3)
            try stack.coordinator.replacePersistentStore(
                at: stack.storeURL,
                withPersistentStoreFrom: backup,
                type: .sqlite
            )
            city.population = 300
            try expectEqual(context.versionConflictsOfSave().count, 1)
            context.rollback()
            context.refresh(city, mergeChanges: false)
            city.population += 1
            try context.save()
        }
        try expectEqual(population(), 3)
    }

    // MARK: - Other stores

    @Test func `the contents of another store are refused`() throws {
        let other = try Stack(.sqlite)
        _ = try other.storeCity("Porto", population: 9)
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(bonn, City.self)
            expectEqual(city.population, 3)
            try restore(from: other.storeURL)
            city.population = 4
            let saving = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(saving?.code, .persistentStoreOperation)
            let reading = expectThrows(CocoaError.self) { try context.all(City.self) }
            expectEqual(reading?.code, .persistentStoreOperation)
            expectEqual(reading?.localizedDescription.contains("another store"), true)
        }
        try elsewhere { try expectEqual($0.all(City.self).map(\.population), [9]) }
    }

    @Test func `a store that has got another UUID here is no other store`() throws {
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()
        try expectEqual(other.performAndWait { try other.city().population }, 3)
        let store = try require(stack.coordinator.persistentStores.first)
        store.identifier = UUID().uuidString
        try stack.change(bonn, City.self) { city, _ in city.population = 4 }
        let connection = try Connection(path: stack.storeURL.path, access: .readWrite)
        try connection.execute("CREATE TABLE extra (x)")
        connection.close()
        try other.performAndWait {
            let city = try other.city()
            other.refresh(city, mergeChanges: false)
            expectEqual(city.population, 4)
            city.population = 5
            try other.save()
        }
        try expectEqual(population(), 5)
    }
}
