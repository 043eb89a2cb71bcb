import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import StrataSQLite
@testable import StrataSQLiteStore

@Suite("Copying, replacing, destroying and moving stores")
struct MovingStoresTests {
    private static func fill(_ coordinator: NSPersistentStoreCoordinator) async throws {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try await context.perform {
            let city = City(context: context)
            city.name = "Porto"
            for number in 0..<20 {
                let venue = number % 5 == 0 ? Bar(context: context) : Venue(context: context)
                venue.name = "venue \(number)"
                venue.city = city
                venue.map = Data(repeating: UInt8(number), count: number)
                for title in ["b", "a", "c"].prefix(number % 4) {
                    let photo = Photo(context: context)
                    photo.title = title + "\(number)"
                    venue.photos.append(photo)
                }
            }
            let tag = Tag(context: context)
            tag.title = "open"
            tag.venues = Set(city.venues.filter { $0.name?.hasSuffix("1") == true })
            let user = User(context: context)
            user.email = "ada@example.org"
            user.favourites = city.venues.sorted { $0.name ?? "" > $1.name ?? "" }
            try context.save()
            // The order of members is neither that of their keys nor its reverse.
            for venue in city.venues where venue.photos.count > 2 { venue.photos.swapAt(0, 1) }
            user.favourites.swapAt(3, 7)
            try context.save()
        }
    }

    /// Saves a change, and with it the metadata.
    private static func save(_ coordinator: NSPersistentStoreCoordinator) async throws {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try await context.perform {
            try context.all(TestSupport.Tag.self).first?.title = "closed"
            try context.save()
        }
    }

    /// Everything in a coordinator's stores, as text that does not depend on keys.
    private static func contents(_ coordinator: NSPersistentStoreCoordinator) async throws -> [String] {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try await context.perform {
            let venues = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")).map { venue in
                let kind = venue.entity.name ?? ""
                let photos = venue.photos.map { $0.title ?? "" }.joined()
                let tags = venue.tags.map { $0.title ?? "" }.sorted()
                return
                    "\(kind) \(venue.name ?? "") \(venue.city?.name ?? "") \(venue.map?.count ?? -1) \(photos) \(tags)"
            }
            let users = try context.fetch(NSFetchRequest<User>(entityName: "User")).map { user in
                "\(user.email) \(user.favourites.map { $0.name ?? "" })"
            }
            return venues.sorted() + users
        }
    }

    @Test(arguments: [(StoreKind.sqlite, StoreKind.memory), (.memory, .sqlite), (.sqlite, .sqlite)])
    func `a configuration with a sub-entity alone is migrated like any other`(from: StoreKind, to: StoreKind)
        async throws
    {
        let scratch = try ScratchFolder()
        let model = GuideModel.make()
        let bar = try require(model.entitiesByName["Bar"])
        model.setEntities([bar], forConfigurationName: "Bars")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let old = try coordinator.addPersistentStore(
            type: from.type,
            configuration: "Bars",
            at: scratch.file("old.sqlite")
        )
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try await context.perform {
            for beers in 1...3 { Bar(context: context).beers = Int16(beers) }
            try context.save()
        }

        try coordinator.migratePersistentStore(old, to: scratch.file("new.sqlite"), type: to.type)

        let beers = try await context.perform {
            context.reset()
            return try context.fetch(NSFetchRequest<Bar>(entityName: "Bar")).map(\.beers).sorted()
        }
        expectEqual(beers, [1, 2, 3])
    }

    @Test(arguments: [(StoreKind.sqlite, StoreKind.memory), (.memory, .sqlite), (.sqlite, .sqlite)])
    func `derived times are those of the old store, until an object is saved again`(from: StoreKind, to: StoreKind)
        async throws
    {
        let (team, member) = (StoreModels.entity("Team"), StoreModels.entity("Member"))
        func now() -> NSPropertyDescription { StoreModels.derived("savedAt", .date, NSExpression(format: "now()")) }
        team.properties = [StoreModels.attribute("name", .string), now()]
        member.properties = [
            StoreModels.attribute("name", .string), now(),
            StoreModels.derived("teamSavedAt", .date, NSExpression(forKeyPath: "team.savedAt")),
        ]
        GuideModel.relate(member, "team", .one(.nullifyDeleteRule), team, "members", .ordered(.nullifyDeleteRule))
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StoreModels.model(team, member))
        let old = try coordinator.addPersistentStore(type: from.type, at: scratch.file("old.sqlite"))
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        func times(_ context: NSManagedObjectContext) throws -> [String: [Date?]] {
            context.reset()
            let objects = try ["Team", "Member"].flatMap {
                try context.fetch(NSFetchRequest<NSManagedObject>(entityName: $0))
            }
            return Dictionary(
                uniqueKeysWithValues: objects.map { object in
                    let names = object.entity.name == "Team" ? ["savedAt"] : ["savedAt", "teamSavedAt"]
                    return ("\(object.value(forKey: "name") ?? "")", names.map { object.value(forKey: $0) as? Date })
                }
            )
        }
        let before = try await context.perform {
            for name in ["a", "b"] {
                let team = context.insert("Team", ["name": name])
                for number in 0..<2 { context.insert("Member", ["name": "\(name)\(number)", "team": team]) }
                try context.save()
            }
            return try times(context)
        }

        try coordinator.migratePersistentStore(old, to: scratch.file("new.sqlite"), type: to.type)

        try await context.perform {
            try expectEqual(times(context), before)
            let teams = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Team"))
            teams.first { $0.value(forKey: "name") as? String == "a" }?.setValue("A", forKey: "name")
            try context.save()
            let after = try times(context)
            let (was, now) = (try require(before["a"]?.first ?? nil), try require(after["A"]?.first ?? nil))
            expect(now >= was)
            expectEqual(after["a0"], [before["a0"]?.first ?? nil, now])
            for name in ["b", "b0", "b1"] { expectEqual(after[name], before[name]) }
        }
    }

    @Test func `a place where a store has objects is refused, and one without is taken`() async throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let old = try coordinator.addPersistentStore(type: .sqlite, at: scratch.file("old.sqlite"))
        try await Self.fill(coordinator)
        let before = try await Self.contents(coordinator)
        for name in ["full.sqlite", "empty.sqlite"] {
            let other = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            let store = try other.addPersistentStore(type: .sqlite, at: scratch.file(name))
            if name == "full.sqlite" { try await Self.fill(other) }
            try other.remove(store)
        }

        let error = try #require(throws: CocoaError.self) {
            try coordinator.migratePersistentStore(old, to: scratch.file("full.sqlite"), type: .sqlite)
        }
        expectEqual(error.code, .persistentStoreOperation)
        expectEqual(coordinator.persistentStores, [old])
        try await expectEqual(Self.contents(coordinator), before)

        try coordinator.migratePersistentStore(old, to: scratch.file("empty.sqlite"), type: .sqlite)
        try await expectEqual(Self.contents(coordinator), before)
    }

    @Test(.timeLimit(.minutes(20)), arguments: [true, false])
    func `a store that is being read is replaced or destroyed at once, with its external files`(
        _ isReplaced: Bool
    ) async throws {
        let scratch = try ScratchFolder()
        let (old, new) = (scratch.file("old.sqlite"), scratch.file("new.sqlite"))
        for (url, size) in [(old, 200_000), (new, 300_000)] {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try await context.perform {
                let venue = Venue(context: context)
                venue.name = url.lastPathComponent
                venue.map = Data(repeating: 7, count: size)
                try context.save()
            }
            try coordinator.remove(store)
        }
        let reader = try Connection(path: old.path, access: .readOnly)
        defer { reader.close() }
        try reader.execute("BEGIN")
        try expectEqual(reader.firstString("SELECT ZNAME FROM ZVENUE"), "old.sqlite")

        let start = ContinuousClock.now
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        if isReplaced {
            try coordinator.replacePersistentStore(at: old, withPersistentStoreFrom: new, type: .sqlite)
        } else {
            try coordinator.destroyPersistentStore(at: old, type: .sqlite)
        }

        // A store waits 240 seconds for others.
        expect(.now - start < .seconds(120))
        try expectEqual(reader.firstString("SELECT ZNAME FROM ZVENUE"), "old.sqlite")
        try reader.execute("ROLLBACK")
        try coordinator.addPersistentStore(type: .sqlite, at: old)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let maps = try await context.perform {
            try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")).map { $0.map?.count }
        }
        expectEqual(maps, isReplaced ? [300_000] : [])
    }

    @Test func `a migration that fails leaves nothing behind`() async throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let old = try coordinator.addPersistentStore(type: .sqlite, at: scratch.file("old.sqlite"))
        try await Self.fill(coordinator)
        let before = try await Self.contents(coordinator)
        // A property list cannot hold this value, so the metadata cannot be written.
        var metadata = coordinator.metadata(for: old)
        metadata["mine"] = NSNull()
        coordinator.setMetadata(metadata, for: old)

        expectThrows(CocoaError.self) {
            try coordinator.migratePersistentStore(old, to: scratch.file("new.sqlite"), type: .sqlite)
        }

        expectEqual(coordinator.persistentStores, [old])
        try await expectEqual(Self.contents(coordinator), before)
        let files = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
        expect(!files.contains { $0.contains("new") }, "\(files)")
    }

    @Test(arguments: StoreKind.allCases)
    func `observers of a migration see each object once, and contexts save to the new store`(
        _ kind: StoreKind
    )
        async throws
    {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let old = try coordinator.addPersistentStore(type: kind.type, at: scratch.file("old.sqlite"))
        try await Self.fill(coordinator)
        let held = NSManagedObjectContext(.privateQueue)
        held.persistentStoreCoordinator = coordinator
        let user = try await held.perform {
            try UncheckedSendable(require(held.fetch(NSFetchRequest<User>(entityName: "User")).first))
        }
        await held.perform { user.value.email = "kept" }
        let counts = Shared<[Int]>([])
        let changed = Shared<[[NSPersistentStore]]>([])
        let migrated = Shared<Set<NSManagedObjectID>>([])
        let names: [Notification.Name] = [
            .NSPersistentStoreCoordinatorStoresWillChange, .NSPersistentStoreCoordinatorStoresDidChange,
        ]
        let observers = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: coordinator, queue: nil) { notification in
                let context = NSManagedObjectContext(.privateQueue)
                context.persistentStoreCoordinator = coordinator
                let count = context.performAndWait { try? context.count(for: Venue.fetchRequest()) }
                counts.update { $0.append(count ?? -1) }
                let change = notification.userInfo?[NSUUIDChangedPersistentStoresKey] as? [Any]
                changed.update { $0.append(change?.compactMap { $0 as? NSPersistentStore } ?? []) }
                migrated.update { $0 = Set(change?.last as? [NSManagedObjectID] ?? []) }
            }
        }
        defer { observers.forEach(NotificationCenter.default.removeObserver) }

        let new = try coordinator.migratePersistentStore(old, to: scratch.file("new.sqlite"), type: .sqlite)

        expectEqual(counts.current, [20])
        expectEqual(changed.current, [[old, new]])
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let ids = try await context.perform {
            var ids: Set<NSManagedObjectID> = []
            for name in coordinator.managedObjectModel.entitiesByName.keys {
                let request = NSFetchRequest<NSManagedObjectID>(entityName: name)
                request.resultType = .managedObjectIDResultType
                ids.formUnion(try context.fetch(request))
            }
            return ids
        }
        expect(migrated.current == ids && !ids.isEmpty)
        try await held.perform { try held.save() }
        let emails = try await context.perform {
            try context.fetch(NSFetchRequest<User>(entityName: "User")).map(\.email)
        }
        expectEqual(emails, ["kept"])
    }

    @Test(arguments: [(StoreKind.sqlite, StoreKind.memory), (.memory, .sqlite), (.sqlite, .sqlite)])
    func `a migrated store holds the same objects and takes the old one's place`(
        from: StoreKind,
        to: StoreKind
    ) async throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let old = try coordinator.addPersistentStore(type: from.type, at: scratch.file("old.sqlite"))
        try await Self.fill(coordinator)
        var metadata = coordinator.metadata(for: old)
        metadata["mine"] = "kept"
        coordinator.setMetadata(metadata, for: old)
        try await Self.save(coordinator)
        let before = try await Self.contents(coordinator)
        expectEqual(before.count, 21)
        let state = try coordinator.state()

        let new = try coordinator.migratePersistentStore(old, to: scratch.file("new.sqlite"), type: to.type)

        expectEqual(coordinator.persistentStores, [new])
        expectEqual(new.type, to == .sqlite ? NSSQLiteStoreType : NSInMemoryStoreType)
        expect(new.identifier != old.identifier)
        expectEqual(coordinator.metadata(for: new)["mine"] as? String, "kept")
        try await expectEqual(Self.contents(coordinator), before)
        try expectEqual(coordinator.state().differences(from: state, ignoring: StoreState.identity), [])
        if from == .sqlite {
            let again = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            try again.addPersistentStore(type: .sqlite, at: scratch.file("old.sqlite"))
            try await expectEqual(Self.contents(again), before)
        }
    }

    @Test func `a migration to a place that cannot be leaves the store where it was`() async throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: scratch.file("old.sqlite"))
        try await Self.fill(coordinator)
        let before = try await Self.contents(coordinator)

        expectThrows(CocoaError.self) {
            try coordinator.migratePersistentStore(
                store,
                to: scratch.file("no/such/folder/new.sqlite"),
                type: .sqlite
            )
        }

        expectEqual(coordinator.persistentStores, [store])
        try await expectEqual(Self.contents(coordinator), before)
    }

    @Test func `another file replaces that of an open store, and the coordinator opens it`() async throws {
        let scratch = try ScratchFolder()
        let place = scratch.file("target.sqlite")
        let source = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try source.addPersistentStore(type: .sqlite, at: scratch.file("source.sqlite"))
        try await Self.fill(source)
        let wanted = try await Self.contents(source)
        let target = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let former = try target.addPersistentStore(
            type: .sqlite,
            at: place,
            options: [NSPersistentHistoryTrackingKey: true]
        )
        try target.replacePersistentStore(
            at: place,
            withPersistentStoreFrom: scratch.file("source.sqlite"),
            type: .sqlite
        )

        try await expectEqual(Self.contents(target), wanted)
        let opened = try #require(target.persistentStores.first)
        expectEqual(target.persistentStores.count, 1)
        #expect(opened !== former)
        expectEqual(opened.identifier, source.persistentStores.first?.identifier)
        expectEqual(opened.options?[NSPersistentHistoryTrackingKey] as? Bool, true)
    }

    @Test func `a database in memory is not replaced by a file`() async throws {
        let scratch = try ScratchFolder()
        let place = URL(fileURLWithPath: "/dev/null")
        let source = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try source.remove(source.addPersistentStore(type: .sqlite, at: scratch.file("source.sqlite")))
        let target = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try target.addPersistentStore(type: .sqlite, at: place)
        try await Self.fill(target)
        let before = try await Self.contents(target)

        let error = expectThrows(CocoaError.self) {
            try target.replacePersistentStore(
                at: place,
                withPersistentStoreFrom: scratch.file("source.sqlite"),
                type: .sqlite
            )
        }

        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(target.persistentStores, [store])
        try await expectEqual(Self.contents(target), before)
    }

    @Test func `an open store stays open if what would replace it cannot be opened here`() async throws {
        let scratch = try ScratchFolder()
        let place = scratch.file("target.sqlite")
        let target = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try target.addPersistentStore(type: .sqlite, at: place)
        let second = try target.addPersistentStore(type: .sqlite, at: scratch.file("second.sqlite"))
        try await Self.fill(target)
        let before = try await Self.contents(target)
        let entity = NSEntityDescription()
        entity.name = "Parcel"
        let strange = NSManagedObjectModel()
        strange.entities = [entity]
        let others = NSPersistentStoreCoordinator(managedObjectModel: strange)
        try others.remove(others.addPersistentStore(type: .sqlite, at: scratch.file("strange.sqlite")))
        func replace(by name: String, _ type: NSPersistentStore.StoreType = .sqlite) -> CocoaError.Code? {
            expectThrows(CocoaError.self) {
                try target.replacePersistentStore(at: place, withPersistentStoreFrom: scratch.file(name), type: type)
            }?.code
        }

        expectEqual(replace(by: "strange.sqlite"), .persistentStoreIncompatibleVersionHash)
        expectEqual(replace(by: "second.sqlite"), .persistentStoreOpen)
        expectEqual(replace(by: "strange.sqlite", .binary), .persistentStoreOperation)
        #expect(replace(by: "none.sqlite") != nil)
        expectEqual(replace(by: "strange.sqlite", .inMemory), .persistentStoreInvalidType)
        let readOnly = expectThrows(CocoaError.self) {
            try target.replacePersistentStore(
                at: place,
                destinationOptions: [NSReadOnlyPersistentStoreOption: true],
                withPersistentStoreFrom: scratch.file("strange.sqlite"),
                type: .sqlite
            )
        }
        expectEqual(readOnly?.code, .persistentStoreOperation)
        try target.replacePersistentStore(at: place, withPersistentStoreFrom: place, type: .sqlite)

        expectEqual(target.persistentStores, [store, second])
        try await expectEqual(Self.contents(target), before)
    }

    @Test(arguments: StoreKind.allCases)
    func `a store that is open is removed before it is destroyed`(kind: StoreKind) async throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("guide.sqlite")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: kind.type, at: url)
        let other = try coordinator.addPersistentStore(type: kind.type, at: scratch.file("other.sqlite"))
        try await Self.fill(coordinator)
        let removals = Locked<[[NSPersistentStore]]>([])
        let observer = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreCoordinatorStoresDidChange,
            object: coordinator,
            queue: nil
        ) { note in
            let removed = note.userInfo?[NSRemovedPersistentStoresKey] as? [NSPersistentStore]
            removals.withLock { $0.append(removed ?? []) }
        }
        defer { NotificationCenter.default.removeObserver(observer) }

        try coordinator.destroyPersistentStore(at: url, type: kind.type)
        expect(coordinator.persistentStores == [other] && store.persistentStoreCoordinator == nil)
        expectEqual(removals.withLock { $0 }, [[store]])

        // A store that is not open, or does not exist, is not removed from the coordinator.
        try coordinator.destroyPersistentStore(at: url, type: kind.type)
        try coordinator.addPersistentStore(type: kind.type, at: url)
        try coordinator.remove(other)
        try await expect(Self.contents(coordinator).isEmpty)
    }

    @Test func `a store that is open with another type is not destroyed`() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("guide.sqlite")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)

        let error = expectThrows(CocoaError.self) { try coordinator.destroyPersistentStore(at: url, type: .binary) }
        expectEqual(error?.code, .persistentStoreOperation)
        let unknown = expectThrows(CocoaError.self) { try coordinator.destroyPersistentStore(at: url, type: .xml) }
        expectEqual(unknown?.code, .persistentStoreInvalidType)
        expectEqual(coordinator.persistentStores, [store])
    }

    @Test func `a store follows its file to a new URL`() async throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: scratch.file("old.sqlite"))
        try await Self.fill(coordinator)
        let before = try await Self.contents(coordinator)
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path) {
            let moved = name.replacingOccurrences(of: "old", with: "new")
            try FileManager.default.moveItem(at: scratch.file(name), to: scratch.file(moved))
        }

        expect(coordinator.setURL(scratch.file("new.sqlite"), for: store))

        expectEqual(store.url, scratch.file("new.sqlite"))
        try await expectEqual(Self.contents(coordinator), before)
        expect(!coordinator.setURL(scratch.file("nowhere.sqlite"), for: store))
        expectEqual(store.url, scratch.file("new.sqlite"))
    }
}
