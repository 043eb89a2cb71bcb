import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import StrataSQLiteStore

@Suite("Adding and removing stores")
struct StoreListTests {
    @Test(arguments: StoreKind.allCases)
    func `a store is found by its URL, with type, configuration, options and coordinator`(kind: StoreKind) throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let url = scratch.file("guide.sqlite")
        expect(coordinator.persistentStores.isEmpty)

        let store = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: url,
            options: [NSPersistentStoreTimeoutOption: 5]
        )

        expectEqual(coordinator.persistentStores, [store])
        expect(coordinator.persistentStore(for: url) === store)
        expectEqual(coordinator.url(for: store), url)
        expectEqual(store.type, kind.type.rawValue)
        expectEqual(store.options?[NSPersistentStoreTimeoutOption] as? Int, 5)
        expect(store.persistentStoreCoordinator === coordinator)
        expectEqual(store.configurationName, "PF_DEFAULT_CONFIGURATION_NAME")
        expect(!store.isReadOnly)
        expect(UUID(uuidString: store.identifier) != nil)

        try coordinator.remove(store)
        expect(coordinator.persistentStores.isEmpty)
        expectEqual(store.persistentStoreCoordinator, nil)
        expectEqual(coordinator.persistentStore(for: url), nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a time-out that has no end is a long one`(kind: StoreKind) throws {
        for seconds in [Double.infinity, .greatestFiniteMagnitude, .nan, -1] {
            let stack = try Stack(kind, model: GuideModel.make(), options: [NSPersistentStoreTimeoutOption: seconds])
            let context = stack.context()
            try context.performAndWait {
                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                city.setValue("Rome", forKey: "name")
                try context.save()
                try expectEqual(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "City")), 1)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `adding and removing are announced with the store`(kind: StoreKind) throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let seen = Locked<[String]>([])
        let names: [Notification.Name] = [
            .NSPersistentStoreCoordinatorStoresWillChange, .NSPersistentStoreCoordinatorStoresDidChange,
            .NSPersistentStoreCoordinatorWillRemoveStore,
        ]
        let observers = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: coordinator, queue: nil) { note in
                let added = (note.userInfo?[NSAddedPersistentStoresKey] as? [NSPersistentStore])?.count
                let removed = (note.userInfo?[NSRemovedPersistentStoresKey] as? [NSPersistentStore])?.count
                // A handler may ask the coordinator: no lock is held.
                let stores = coordinator.persistentStores.count
                seen.withLock { seen in
                    let word =
                        name == .NSPersistentStoreCoordinatorStoresWillChange
                        ? "will" : name == .NSPersistentStoreCoordinatorStoresDidChange ? "did" : "remove"
                    seen.append("\(word) +\(added ?? 0) -\(removed ?? 0) of \(stores)")
                }
            }
        }
        defer { observers.forEach(NotificationCenter.default.removeObserver) }

        let store = try coordinator.addPersistentStore(type: kind.type, at: scratch.file("guide.sqlite"))
        try coordinator.remove(store)

        expect(
            seen.withLock { $0 } == [
                "did +1 -0 of 1", "did +0 -1 of 0",
            ]
        )
    }

    @Test(arguments: StoreKind.allCases)
    func `will-remove is posted for the store, however it leaves`(kind: StoreKind) throws {
        let scratch = try ScratchFolder()
        // Held, so that no store of another test is ever mistaken for one of these.
        let folder = scratch.folder.path
        let left = Locked<[UncheckedSendable<NSPersistentStore>]>([])
        let observer = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreCoordinatorWillRemoveStore,
            object: nil,
            queue: nil
        ) { note in
            guard let store = note.object as? NSPersistentStore, store.url?.path.hasPrefix(folder) == true else {
                return
            }
            left.withLock { $0.append(UncheckedSendable(store)) }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        func count(_ store: NSPersistentStore) -> Int { left.withLock { $0.count { $0.value === store } } }
        var coordinator: NSPersistentStoreCoordinator? = NSPersistentStoreCoordinator(
            managedObjectModel: GuideModel.make()
        )
        let removed = try require(try coordinator?.addPersistentStore(type: kind.type, at: scratch.file("a.sqlite")))
        try coordinator?.remove(removed)
        expectEqual(count(removed), 1)
        let moved = try require(try coordinator?.addPersistentStore(type: kind.type, at: scratch.file("b.sqlite")))
        let kept = try require(
            try coordinator?.migratePersistentStore(moved, to: scratch.file("c.sqlite"), type: kind.type)
        )
        expectEqual(count(moved), 1)
        expectEqual(count(kept), 0)
        coordinator = nil
        expectEqual(count(kept), 1)
    }

    @Test func `what cannot be added says why`() throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let url = scratch.file("guide.sqlite")
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)

        func failure(_ body: () throws -> Void) -> CocoaError? {
            #expect(throws: CocoaError.self, performing: body)
        }
        let twice = failure { try coordinator.addPersistentStore(type: .sqlite, at: url) }
        expectEqual(twice?.code, .persistentStoreOpen)
        expectEqual(twice?.localizedDescription.contains("open in this coordinator already"), true)
        let type = failure { try coordinator.addPersistentStore(type: .init(rawValue: "Paper"), at: scratch.file("b")) }
        expectEqual(type?.code, .persistentStoreInvalidType)
        expectEqual(type?.localizedDescription.contains("Paper"), true)
        let configuration = failure {
            try coordinator.addPersistentStore(type: .sqlite, configuration: "None", at: scratch.file("c"))
        }
        expectEqual(configuration?.code, .persistentStoreOpen)
        expectEqual(configuration?.localizedDescription.contains("None"), true)
        let place = failure {
            try coordinator.addPersistentStore(ofType: NSSQLiteStoreType, configurationName: nil, at: nil)
        }
        expectEqual(place?.code, .persistentStoreOpen)
        expectEqual(coordinator.persistentStores, [store])

        try coordinator.remove(store)
        let again = failure { try coordinator.remove(store) }
        expectEqual(again?.code, .persistentStoreOperation)
    }

    @Test func `SQLite stores can be opened for reading only`() async throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("guide.sqlite")
        let writer = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try writer.addPersistentStore(type: .sqlite, at: url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = writer
        try await context.perform {
            City(context: context).name = "Oslo"
            try context.save()
        }

        let reader = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try reader.addPersistentStore(
            type: .sqlite,
            at: url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        expect(store.isReadOnly)
        let reading = NSManagedObjectContext(.privateQueue)
        reading.persistentStoreCoordinator = reader
        try await reading.perform {
            let city = try require(try reading.fetch(NSFetchRequest<City>(entityName: "City")).first)
            expectEqual(city.name, "Oslo")
            city.name = "Bergen"
            let error = expectThrows(CocoaError.self) { try reading.save() }
            expectEqual(error?.code, .fileWriteNoPermission)
            expectEqual(error.flatMap { CoreDataFailure($0) }, .environment)
            expectEqual(error?.localizedDescription.contains("read-only"), true)
            expect(city.name == "Bergen" && city.isUpdated)
            reading.rollback()
            City(context: reading).name = "Narvik"
            expectThrows(CocoaError.self) { try reading.save() }
        }
    }

    @Test func `the known types of stores can be listed`() {
        let types = NSPersistentStoreCoordinator.registeredStoreTypes
        expect(types[NSSQLiteStoreType] != nil)
        expect(types[NSInMemoryStoreType] != nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `the coordinator may go before its contexts, which then say so`(kind: StoreKind) async throws {
        let scratch = try ScratchFolder()
        let context = NSManagedObjectContext(.privateQueue)
        var coordinator: NSPersistentStoreCoordinator? = NSPersistentStoreCoordinator(
            managedObjectModel: GuideModel.make()
        )
        let store = try require(try coordinator?.addPersistentStore(type: kind.type, at: scratch.file("guide.sqlite")))
        context.persistentStoreCoordinator = coordinator
        try coordinator?.remove(store)
        coordinator = nil
        await context.perform {
            let error = expectThrows(CocoaError.self) {
                try context.fetch(NSFetchRequest<City>(entityName: "City"))
            }
            expectEqual(error?.code, .persistentStoreOperation)
        }
    }

    @Test func `a file is one store, however its URL is written`() throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let url = scratch.file("a.sqlite")
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        let folder = scratch.folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: folder, withDestinationURL: scratch.folder)
        let link = scratch.file("link.sqlite")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url)
        let others = [
            scratch.folder.appendingPathComponent("x/../a.sqlite"), folder.appendingPathComponent("a.sqlite"), link,
            URL(fileURLWithPath: "a.sqlite", relativeTo: URL(fileURLWithPath: scratch.folder.path, isDirectory: true)),
        ]

        for other in others {
            expect(coordinator.persistentStore(for: other) === store, "\(other)")
            let adding = expectThrows(CocoaError.self) {
                try coordinator.addPersistentStore(type: .sqlite, at: other)
            }
            expectEqual(adding?.code, .persistentStoreOpen)
        }
        expectEqual(coordinator.persistentStores, [store])
        let destroyed = try require(others.last)
        try coordinator.destroyPersistentStore(at: destroyed, type: .sqlite)
        expectEqual(coordinator.persistentStores, [])
    }

    @Test func `a copy of a store is refused beside it`() throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: scratch.file("a.sqlite"))
        let copy = scratch.file("b.sqlite")
        try coordinator.replacePersistentStore(
            at: copy,
            withPersistentStoreFrom: scratch.file("a.sqlite"),
            type: .sqlite
        )

        let error = expectThrows(CocoaError.self) { try coordinator.addPersistentStore(type: .sqlite, at: copy) }

        expectEqual(error?.code, .persistentStoreOpen)
        expectEqual(coordinator.persistentStores, [store])
        try coordinator.remove(store)
        try coordinator.addPersistentStore(type: .sqlite, at: copy)
    }
}
