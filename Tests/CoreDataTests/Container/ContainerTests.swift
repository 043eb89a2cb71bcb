import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataSQLiteStore

@Suite("Containers")
struct ContainerTests {
    private static func container(_ kind: StoreKind, in scratch: ScratchFolder) -> NSPersistentContainer {
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        let description = NSPersistentStoreDescription(url: scratch.file("guide.sqlite"))
        description.type = kind.type.rawValue
        container.persistentStoreDescriptions = [description]
        return container
    }

    @Test func `a new container has a main-queue context and one SQLite store to load, named like it`() throws {
        let container = NSPersistentContainer(name: "Strata test guide", managedObjectModel: GuideModel.make())

        expectEqual(container.name, "Strata test guide")
        expectEqual(container.viewContext.concurrencyType, .mainQueueConcurrencyType)
        expect(container.viewContext.persistentStoreCoordinator === container.persistentStoreCoordinator)
        expect(container.persistentStoreCoordinator.managedObjectModel === container.managedObjectModel)
        let description = try require(container.persistentStoreDescriptions.first)
        expectEqual(container.persistentStoreDescriptions.count, 1)
        expectEqual(description.type, NSSQLiteStoreType)
        expectEqual(description.url?.lastPathComponent, "Strata test guide.sqlite")
        expectEqual(description.url?.deletingLastPathComponent().path, NSPersistentContainer.defaultDirectoryURL().path)
        expect(container.persistentStoreCoordinator.persistentStores.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a description without a URL of its own is of a store that lies nowhere, and loads`(kind: StoreKind) throws {
        let description = NSPersistentStoreDescription()
        expect(description.url == URL(fileURLWithPath: "/dev/null") && description.type == NSSQLiteStoreType)
        expectEqual((description.copy() as? NSPersistentStoreDescription)?.url, description.url)
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        description.type = kind.type.rawValue
        container.persistentStoreDescriptions = [description]
        container.loadPersistentStores { _, error in expect(error == nil) }
        expectEqual(container.persistentStoreCoordinator.persistentStores.map(\.url), [description.url])
        let context = container.newBackgroundContext()
        try context.performAndWait {
            City(context: context).name = "Porto"
            try context.save()
            try expectEqual(context.all(City.self).count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `stores are loaded before the call returns, and contexts share them`(kind: StoreKind) async throws {
        let scratch = try ScratchFolder()
        let container = Self.container(kind, in: scratch)
        var answers: [(String?, (any Error)?)] = []
        container.loadPersistentStores { answers.append(($0.url?.lastPathComponent, $1)) }
        expectEqual(answers.count, 1)
        expectEqual(answers.first?.0, "guide.sqlite")
        expect(answers.first?.1 == nil)

        let id = try await container.performBackgroundTask { context in
            let city = City(context: context)
            city.name = "Lund"
            try context.save()
            return city.objectID
        }
        let background = container.newBackgroundContext()
        expectEqual(background.concurrencyType, .privateQueueConcurrencyType)
        let name = try await background.perform { (try background.existingObject(with: id) as? City)?.name }
        expectEqual(name, "Lund")
        let seen = try await MainActor.run {
            try container.viewContext.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name)
        }
        expectEqual(seen, ["Lund"])
    }

    @Test(arguments: [NSInMemoryStoreType, NSSQLiteStoreType])
    func `several stores in memory are all loaded, once`(type: String) throws {
        let model = GuideModel.make()
        let names = model.entitiesByName
        model.setEntities([try require(names["City"]), try require(names["Venue"])], forConfigurationName: "Places")
        model.setEntities([try require(names["User"])], forConfigurationName: "People")
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: model)
        container.persistentStoreDescriptions = ["Places", "People"].map { configuration in
            let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
            description.type = type
            description.configuration = configuration
            return description
        }
        var loaded: [String?] = []
        container.loadPersistentStores { description, error in
            expect(error == nil)
            loaded.append(description.configuration)
        }
        expectEqual(loaded, ["Places", "People"])
        expectEqual(
            container.persistentStoreCoordinator.persistentStores.map(\.configurationName),
            ["Places", "People"]
        )
        container.loadPersistentStores { description, _ in loaded.append(description.configuration) }
        expectEqual(loaded.count, 2)
    }

    @Test func `a file that two descriptions name is opened once`() throws {
        let scratch = try ScratchFolder()
        let container = Self.container(.sqlite, in: scratch)
        let url = try require(container.persistentStoreDescriptions.first?.url)
        container.persistentStoreDescriptions.append(NSPersistentStoreDescription(url: url))

        var errors: [(any Error)?] = []
        container.loadPersistentStores { errors.append($1) }

        expectEqual(errors.count, 1)
        expect(errors.allSatisfy { $0 == nil })
        expectEqual(container.persistentStoreCoordinator.persistentStores.count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `stores are loaded in the background where the description says so`(kind: StoreKind) async throws {
        let scratch = try ScratchFolder()
        let container = Self.container(kind, in: scratch)
        container.persistentStoreDescriptions[0].shouldAddStoreAsynchronously = true

        let error = await withCheckedContinuation { continuation in
            container.loadPersistentStores { _, error in continuation.resume(returning: error.map { "\($0)" }) }
        }

        expectEqual(error, nil)
        expectEqual(container.persistentStoreCoordinator.persistentStores.count, 1)
    }

    @Test func `each description is answered, with its error if it has one`() throws {
        let scratch = try ScratchFolder()
        let container = Self.container(.sqlite, in: scratch)
        let bad = NSPersistentStoreDescription(url: scratch.file("no/such/folder/store.sqlite"))
        container.persistentStoreDescriptions.append(bad)
        var answers: [(NSPersistentStoreDescription, (any Error)?)] = []

        container.loadPersistentStores { answers.append(($0, $1)) }

        expectEqual(answers.count, 2)
        expect(answers[0].1 == nil)
        expect(answers[1].0 === bad)
        expect(answers[1].1 is CocoaError)
        expectEqual(container.persistentStoreCoordinator.persistentStores.count, 1)
    }

    @Test func `loading again opens only what is not open yet`() throws {
        let scratch = try ScratchFolder()
        let container = Self.container(.sqlite, in: scratch)
        container.loadPersistentStores { expect($1 == nil) }
        container.persistentStoreDescriptions.append(NSPersistentStoreDescription(url: scratch.file("more.sqlite")))
        var answered: [String] = []

        container.loadPersistentStores { description, error in
            expect(error == nil)
            answered.append(description.url?.lastPathComponent ?? "")
        }

        expectEqual(container.persistentStoreCoordinator.persistentStores.count, 2)
        expectEqual(answered, ["more.sqlite"])
    }

    @Test func `a description's settings are options of the store`() throws {
        let scratch = try ScratchFolder()
        let container = Self.container(.sqlite, in: scratch)
        let description = container.persistentStoreDescriptions[0]
        expect(!description.isReadOnly)
        expectEqual(description.timeout, 240)
        expect(description.shouldMigrateStoreAutomatically && description.shouldInferMappingModelAutomatically)
        description.timeout = 7
        description.setValue("FULL" as NSString, forPragmaNamed: "synchronous")
        description.setOption("x" as NSString, forKey: "own")

        container.loadPersistentStores { expect($1 == nil) }

        let options = try require(container.persistentStoreCoordinator.persistentStores.first?.options)
        expectEqual((options[NSPersistentStoreTimeoutOption] as? NSNumber)?.doubleValue, 7)
        expectEqual((options["own"] as? NSString), "x")
        expectEqual((options[NSSQLitePragmasOption] as? [String: NSObject])?["synchronous"], "FULL" as NSString)
        let copy = try require(description.copy() as? NSPersistentStoreDescription)
        copy.isReadOnly = true
        copy.setOption(nil, forKey: "own")
        expect(!description.isReadOnly)
        expect(description.options["own"] != nil)
        expectEqual(copy.timeout, 7)
    }

    @Test func `copies of a description are equal until one of them is changed`() throws {
        let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/tmp/a.sqlite"))
        description.configuration = "main"
        description.setOption(NSNumber(value: true), forKey: "own")
        description.setValue("FULL" as NSString, forPragmaNamed: "synchronous")
        let changes: [(NSPersistentStoreDescription) -> Void] = [
            { $0.type = NSInMemoryStoreType }, { $0.configuration = nil }, { $0.url = URL(fileURLWithPath: "/tmp/b") },
            { $0.setOption(nil, forKey: "own") }, { $0.isReadOnly = true }, { $0.shouldAddStoreAsynchronously = true },
            { $0.setValue("OFF" as NSString, forPragmaNamed: "synchronous") },
        ]
        for change in changes {
            let copy = try require(description.copy() as? NSPersistentStoreDescription)
            expect(copy == description && copy !== description && copy.hash == description.hash)
            expectEqual(Set([copy, description]).count, 1)
            change(copy)
            expect(copy != description)
        }
        expect(!description.isEqual("a") && !description.isEqual(nil))
    }

    @Test func `pragmas set one by one and as an option are one set of pragmas`() throws {
        let scratch = try ScratchFolder()
        let container = Self.container(.sqlite, in: scratch)
        let description = container.persistentStoreDescriptions[0]
        expect(description.sqlitePragmas.isEmpty)
        description.setValue("FULL" as NSString, forPragmaNamed: "synchronous")
        description.setValue("MEMORY" as NSString, forPragmaNamed: "temp_store")
        let option = ["journal_mode": "DELETE", "temp_store": "FILE"]
        description.setOption(option as NSDictionary, forKey: NSSQLitePragmasOption)
        description.setValue(77 as NSNumber, forPragmaNamed: "cache_size")
        description.setValue("1" as NSString, forPragmaNamed: "fullfsync")
        description.setValue(nil, forPragmaNamed: "fullfsync")
        let expected = ["synchronous": "FULL", "journal_mode": "DELETE", "temp_store": "FILE", "cache_size": "77"]
        expectEqual(description.sqlitePragmas.mapValues { "\($0)" }, expected)
        let copy = try require(description.copy() as? NSPersistentStoreDescription)
        copy.setOption(nil, forKey: NSSQLitePragmasOption)
        expect(copy.sqlitePragmas.isEmpty && copy.options[NSSQLitePragmasOption] == nil)

        container.loadPersistentStores { expect($1 == nil) }

        let store = try require(container.persistentStoreCoordinator.openStores.first?.store as? SQLiteStore)
        let pool = try store.openFile().pool
        expect(!pool.isWriteAheadLogged)
        let names = ["synchronous", "cache_size", "temp_store"]
        let values = try names.map { name in try pool.writeWithoutTransaction { try $0.pragma(name) } }
        expectEqual(values, ["2", "77", "1"])
    }

    @Test func `pragmas that are no dictionary keep the store from opening`() throws {
        let scratch = try ScratchFolder()
        let container = Self.container(.sqlite, in: scratch)
        container.persistentStoreDescriptions[0].setOption("WAL" as NSString, forKey: NSSQLitePragmasOption)
        container.loadPersistentStores { expectEqual(($1 as? CocoaError)?.code, .persistentStoreOpen) }
        expect(container.persistentStoreCoordinator.persistentStores.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a background task's error comes back, and its context goes`(kind: StoreKind) async throws {
        let scratch = try ScratchFolder()
        let container = Self.container(kind, in: scratch)
        container.loadPersistentStores { expect($1 == nil) }
        struct Stop: Error {}
        await expectThrows(Stop.self) {
            try await container.performBackgroundTask { context in
                City(context: context).name = "nowhere"
                throw Stop()
            }
        }
        let count = try await container.performBackgroundTask {
            try $0.count(for: NSFetchRequest<City>(entityName: "City"))
        }
        expectEqual(count, 0)
    }
}
