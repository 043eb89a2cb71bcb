import CoreData
import Expectations
import Foundation
import StrataLocks
import StrataMemoryStore
import StrataRows
import Synchronization
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("A save in doubt")
struct SaveInDoubtTests {
    @Test(arguments: [true, false])
    func `the changes stay unsaved, the error says so, and what is read then is what is stored`(isCommitted: Bool)
        throws
    {
        let coordinator = try DoubtfulStore.coordinator()
        let engine = try require(coordinator.openStores.first?.rows as? DoubtfulEngine)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let id = try context.performAndWait {
            let city = City(context: context)
            city.name = "Before"
            try context.save()
            city.name = "After"
            return city.objectID
        }
        engine.doubt(afterCommitting: isCommitted)

        let error = context.performAndWait { expectThrows(CocoaError.self) { try context.save() } }

        expectEqual(error?.code, .persistentStoreSave)
        expectEqual(error?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID, DoubtfulEngine.identifier)
        expect(error?.affectedStores?.first as? DoubtfulStore != nil)
        context.performAndWait {
            expect(context.hasChanges)
            expectEqual(context.updatedObjects.map(\.objectID), [id])
        }
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = coordinator
        try reader.performAndWait {
            let stored = try require(try reader.existingObject(with: id) as? City)
            expectEqual(stored.name, isCommitted ? "After" : "Before")
        }
    }

    @Test func `a context that reads anew after the doubt can save again`() throws {
        let coordinator = try DoubtfulStore.coordinator()
        let engine = try require(coordinator.openStores.first?.rows as? DoubtfulEngine)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Before"
            try context.save()
            city.name = "After"
            engine.doubt(afterCommitting: true)
            expectThrows(CocoaError.self) { try context.save() }

            context.refresh(city, mergeChanges: true)
            city.population = 7
            try context.save()

            expectEqual(city.name, "After")
            expect(!context.hasChanges)
        }
    }

    // MARK: - Saving again

    /// A guide that was saved, and its stack.
    fileprivate final class Guide {
        let coordinator: NSPersistentStoreCoordinator
        let engine: DoubtfulEngine
        let context = NSManagedObjectContext(.privateQueue)

        init() throws {
            coordinator = try DoubtfulStore.coordinator()
            engine = try require(coordinator.openStores.first?.rows as? DoubtfulEngine)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                for name in ["Bern", "Rome"] { City(context: context).name = name }
                let venue = Venue(context: context)
                venue.name = "Forum"
                venue.city = try city("Rome")
                for title in ["a", "b", "c"] { TestSupport.Tag(context: context).title = title }
                venue.tags = [try tag("a"), try tag("b")]
                for title in ["1", "2", "3"] { venue.mutableOrderedSetValue(forKey: "photos").add(photo(title)) }
                let user = User(context: context)
                user.email = "old"
                try context.save()
            }
        }

        private func first<T: NSManagedObject>(_ entity: String, _ key: String, _ value: String) throws -> T {
            let request = NSFetchRequest<T>(entityName: entity)
            request.predicate = NSPredicate(format: "%K == %@", key, value)
            return try require(try context.fetch(request).first)
        }

        func city(_ name: String) throws -> City { try first("City", "name", name) }
        func venue(_ name: String) throws -> Venue { try first("Venue", "name", name) }
        func tag(_ title: String) throws -> TestSupport.Tag { try first("Tag", "title", title) }
        func user(_ email: String) throws -> User { try first("User", "email", email) }

        func photo(_ title: String) -> Photo {
            let photo = Photo(context: context)
            photo.title = title
            return photo
        }

        /// Changes of each kind.
        func change() throws {
            let oslo = City(context: context)
            oslo.name = "Oslo"
            let pub = Venue(context: context)
            pub.name = "Pub"
            pub.city = oslo
            pub.tags = [try tag("a")]
            let forum = try venue("Forum")
            forum.price = 5
            forum.tags = [try tag("b"), try tag("c")]
            let photos = forum.mutableOrderedSetValue(forKey: "photos")
            photos.moveObjects(at: IndexSet(integer: 2), to: 0)
            photos.add(photo("4"))
            try city("Rome").population = 3
            context.delete(try user("old"))
        }

        /// All objects that a context sees.
        static func described(_ context: NSManagedObjectContext) throws -> [String] {
            try context.performAndWait {
                let cities = try context.fetch(NSFetchRequest<City>(entityName: "City")).map { city in
                    "\(city.name) \(city.population) \(city.venues.map { $0.name ?? "" }.sorted())"
                }
                let venues = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")).map { venue in
                    let photos = (venue.value(forKey: "photos") as? NSOrderedSet)?.array as? [Photo] ?? []
                    let (tags, titles) = (venue.tags.map { $0.title ?? "" }.sorted(), photos.map { $0.title ?? "" })
                    return "\(venue.name ?? "") \(venue.price) \(venue.city?.name ?? "") \(tags) \(titles)"
                }
                let tags = try context.fetch(NSFetchRequest<TestSupport.Tag>(entityName: "Tag")).map { tag in
                    "\(tag.title ?? "") \(tag.venues.map { $0.name ?? "" }.sorted())"
                }
                let users = try context.fetch(NSFetchRequest<User>(entityName: "User")).map(\.email)
                let photos = try context.count(for: NSFetchRequest<Photo>(entityName: "Photo"))
                return cities.sorted() + venues.sorted() + tags.sorted() + users + ["\(photos)"]
            }
        }

        /// All stored objects.
        var stored: [String] {
            get throws {
                let reader = NSManagedObjectContext(.privateQueue)
                reader.persistentStoreCoordinator = coordinator
                return try Self.described(reader)
            }
        }
    }

    /// The actions of a program between a save in doubt and the next one.
    enum Meanwhile: CaseIterable {
        case nothing, newValues, formerValues, deletions, otherTags, formerTags, newRelations, photos, child, refresh

        fileprivate func run(_ guide: Guide) throws {
            let context = guide.context
            switch self {
            case .nothing: break
            case .newValues:
                try guide.city("Oslo").population = 7
                try guide.venue("Forum").price = 9
                try guide.city("Bern").population = 1
            case .formerValues:
                try guide.venue("Forum").price = 0
                try guide.city("Rome").population = 0
                try guide.city("Oslo").name = "Riga"
            case .deletions:
                context.delete(try guide.city("Oslo"))
                context.delete(try guide.venue("Forum"))
            case .otherTags:
                try guide.venue("Forum").tags = [try guide.tag("a"), try guide.tag("c")]
                try guide.venue("Pub").tags = [try guide.tag("b")]
            case .formerTags: try guide.venue("Forum").tags = [try guide.tag("a"), try guide.tag("b")]
            case .newRelations:
                let bar = Venue(context: context)
                bar.name = "Bar"
                bar.city = try guide.city("Oslo")
                bar.tags = [try guide.tag("a")]
                try guide.venue("Forum").city = try guide.city("Oslo")
                try guide.venue("Pub").city = try guide.city("Rome")
            case .photos:
                let photos = try guide.venue("Forum").mutableOrderedSetValue(forKey: "photos")
                photos.moveObjects(at: IndexSet(integer: 0), to: 2)
                photos.add(guide.photo("5"))
            case .child:
                let child = NSManagedObjectContext(.privateQueue)
                child.parent = context
                let (oslo, forum) = (try guide.city("Oslo").objectID, try guide.venue("Forum").objectID)
                try child.performAndWait {
                    let city = try require(child.existingObject(with: oslo) as? City)
                    city.population = 8
                    let bar = Venue(context: child)
                    bar.name = "Bar"
                    bar.city = city
                    try require(child.existingObject(with: forum) as? Venue).price = 4
                    try child.save()
                }
            case .refresh:
                context.refresh(try guide.venue("Forum"), mergeChanges: true)
                context.refresh(try guide.city("Rome"), mergeChanges: true)
            }
        }
    }

    @Test(arguments: Meanwhile.allCases)
    func `the next save stores what one without a doubt would have stored`(_ meanwhile: Meanwhile) throws {
        func outcome(_ isCommitted: Bool?) throws -> [String] {
            let guide = try Guide()
            return try guide.context.performAndWait {
                try guide.change()
                if let isCommitted {
                    guide.engine.doubt(afterCommitting: isCommitted, mayTell: true)
                    let error = expectThrows(CocoaError.self) { try guide.context.save() }
                    expect(error?.userInfo[NSPersistentStoreSaveInDoubtKey] is UUID)
                    expectEqual(guide.engine.askedCount, 0)
                } else {
                    try guide.context.save()
                }
                try meanwhile.run(guide)
                try guide.context.save()
                expect(!guide.context.hasChanges)
                expectEqual(guide.engine.askedCount, isCommitted == nil ? 0 : 1)
                for object in guide.context.registeredObjects { expect(!object.objectID.isTemporaryID) }
                let stored = try guide.stored
                try expectEqual(Guide.described(guide.context), stored)
                // No change is left that would be stored later.
                try guide.city("Bern").population = 99
                try guide.context.save()
                try expectEqual(guide.stored, stored.map { $0.hasPrefix("Bern ") ? "Bern 99 []" : $0 })
                return stored
            }
        }
        let expected = try outcome(nil)
        try expectEqual(outcome(true), expected, "committed")
        try expectEqual(outcome(false), expected, "lost")
    }

    @Test(arguments: [true, false])
    func `while the outcome is unknown the next save is in doubt too, and nothing is stored`(isCommitted: Bool) throws {
        let guide = try Guide()
        try guide.context.performAndWait {
            City(context: guide.context).name = "Oslo"
            guide.engine.doubt(afterCommitting: isCommitted, mayTell: true)
            let first = expectThrows(CocoaError.self) { try guide.context.save() }
            guide.engine.isSilent = true
            City(context: guide.context).name = "Riga"
            let second = expectThrows(CocoaError.self) { try guide.context.save() }
            expectEqual(second?.userInfo[NSPersistentStoreSaveInDoubtKey] as? UUID, DoubtfulEngine.identifier)
            expectEqual(first?.code, second?.code)
            guide.engine.isSilent = false
            try guide.context.save()
            let names = try guide.context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
            expectEqual(names, ["Bern", "Oslo", "Riga", "Rome"])
            try expectEqual(guide.stored.count { $0.hasPrefix("Oslo") || $0.hasPrefix("Riga") }, 2)
        }
    }

    @Test func `what turns out to be committed is reported as saved, with its permanent IDs`() throws {
        let guide = try Guide()
        let follower = NSManagedObjectContext(.privateQueue)
        follower.persistentStoreCoordinator = guide.coordinator
        follower.automaticallyMergesChangesFromParent = true
        let rome = try follower.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Rome'")
            let city = try require(follower.fetch(request).first)
            expectEqual(city.population, 0)
            return city
        }
        let told = Locked<[String]>([])
        let observer = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextDidSave,
            object: guide.context,
            queue: nil
        ) { note in
            for key in [NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey] {
                let count = (note.userInfo?[key] as? Set<NSManagedObject>)?.count ?? 0
                told.withLock { $0.append("\(key) \(count)") }
            }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try guide.context.performAndWait {
            let oslo = City(context: guide.context)
            oslo.name = "Oslo"
            try guide.city("Rome").population = 3
            guide.engine.doubt(afterCommitting: true, mayTell: true)
            expectThrows(CocoaError.self) { try guide.context.save() }
            expect(oslo.objectID.isTemporaryID)
            try guide.context.save()
            expect(!oslo.objectID.isTemporaryID)
        }
        expectEqual(Array(told.withLock { $0 }.prefix(3)), ["inserted 1", "updated 1", "deleted 0"])
        follower.performAndWait { expectEqual(rome.population, 3) }
    }

    @Test func `new objects that were dropped after a doubt and are made again are not silently stored twice`() throws {
        let guide = try Guide()
        func insert() { City(context: guide.context).name = "Oslo" }
        func count() throws -> Int {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Oslo'")
            return try guide.context.count(for: request)
        }
        try guide.context.performAndWait {
            insert()
            guide.engine.doubt(afterCommitting: true, mayTell: true)
            expectThrows(CocoaError.self) { try guide.context.save() }
            guide.context.rollback()
            insert()
            expectEqual(expectThrows(CocoaError.self) { try guide.context.save() }?.code, .managedObjectMerge)
            expect(guide.context.hasChanges)
            guide.context.rollback()
            try expectEqual(count(), 1)
        }
        // A block that looks for an object before it inserts one is run again.
        guide.engine.doubt(afterCommitting: true, mayTell: true)
        func run() throws {
            try guide.context.performAndWait(retrying: 1) {
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: "name == 'Riga'")
                if try guide.context.count(for: request) == 0 { City(context: guide.context).name = "Riga" }
                City(context: guide.context).name = "Bonn"
            }
        }
        expectThrows(CocoaError.self) { try run() }
        try run()
        try guide.context.performAndWait {
            let names = try guide.context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
            expectEqual(names.count { $0 == "Riga" }, 1)
        }
    }

    @Test func `a context that was reset does not ask any more`() throws {
        let guide = try Guide()
        guide.engine.isSilent = true
        try guide.context.performAndWait {
            City(context: guide.context).name = "Oslo"
            guide.engine.doubt(afterCommitting: false, mayTell: true)
            expectThrows(CocoaError.self) { try guide.context.save() }
            guide.context.reset()
            City(context: guide.context).name = "Riga"
            try guide.context.save()
            expectEqual(guide.engine.askedCount, 0)
        }
    }
}

/// A store whose engine may lose the answer to a save.
private final class DoubtfulStore: NSPersistentStore, EngineStore, @unchecked Sendable {
    // @unchecked Sendable: a mutex guards `opened`.
    private let opened = Locked<DoubtfulEngine?>(nil)

    var engine: any RowStore { get throws { try require(opened.withLock { $0 }) } }

    override func loadMetadata() throws {
        let model = try require(persistentStoreCoordinator?.managedObjectModel)
        opened.withLock { $0 = DoubtfulEngine(model.frozen.schema) }
        metadata = [NSStoreTypeKey: "Doubtful", NSStoreUUIDKey: identifier ?? ""]
    }

    static func coordinator() throws -> NSPersistentStoreCoordinator {
        NSPersistentStoreCoordinator.registerStoreClass(DoubtfulStore.self, forStoreType: "Doubtful")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.addPersistentStore(type: .init(rawValue: "Doubtful"), at: URL(fileURLWithPath: "/dev/null"))
        return coordinator
    }
}

/// Rows in memory, with saves that end in doubt if a test asks for it.
private final class DoubtfulEngine: InMemoryRows {
    static let identifier = UUID()

    private struct LostAnswer: Error {}

    /// The outcome of the next save.
    private struct Doubt {
        let isCommitted: Bool
        /// Whether the store knows the outcome later.
        let mayTell: Bool
    }

    private let inner: MemoryEngine
    private let doubts = Locked<Doubt?>(nil)
    private let silent = Atomic(false)
    private let asked = Atomic(0)

    /// Whether the store does not know the outcome of a save for now.
    var isSilent: Bool {
        get { silent.load(ordering: .acquiring) }
        set { silent.store(newValue, ordering: .releasing) }
    }

    /// The number of times that the store was asked.
    var askedCount: Int { asked.load(ordering: .acquiring) }

    init(_ schema: Schema) { inner = MemoryEngine(schema, timeout: 10) }

    func doubt(afterCommitting isCommitted: Bool, mayTell: Bool = false) {
        doubts.withLock { $0 = Doubt(isCommitted: isCommitted, mayTell: mayTell) }
    }

    let place = "far away"
    let takesBatches = false

    func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T { inner.withContents(body) }

    func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] { try inner.reserveKeys(counts) }

    func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        let doubt = doubts.withLock { doubts in
            defer { doubts = nil }
            return doubts
        }
        guard let doubt else { return try inner.save(changes, willCommit: willCommit, didCommit: didCommit) }
        var result = StoreSaveResult()
        if doubt.isCommitted {
            // The rows of the change set stay with the context.
            var copy = changes
            copy.inserted = changes.inserted.map { $0.copy() }
            copy.updated = changes.updated.map {
                RowUpdate(row: $0.row.copy(), baseVersion: $0.baseVersion, changed: $0.changed)
            }
            let conflicts = try inner.save(copy) {
                result = $0
                copy.settle($0)
            }
            guard conflicts.isEmpty else { return conflicts }
        }
        guard doubt.mayTell else { throw SaveInDoubt(identifier: Self.identifier, reason: LostAnswer()) }
        var told = SaveInDoubt(identifier: Self.identifier, reason: LostAnswer()) { [self] in
            asked.add(1, ordering: .releasing)
            if isSilent { throw SaveInDoubt(identifier: Self.identifier, reason: LostAnswer()) }
            return doubt.isCommitted
        }
        told.result = result
        throw told
    }

    func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {}

    func close() { inner.close() }
}
