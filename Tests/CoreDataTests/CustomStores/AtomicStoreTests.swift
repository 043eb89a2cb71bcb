import CoreData
import Expectations
import StrataLocks
import Synchronization
import TestSupport
import Testing

@Suite("Atomic stores")
struct AtomicStoreTests {
    private let folder: StoreFolder
    private var url: URL { folder.file("store.json") }

    init() throws { folder = try StoreFolder() }

    private func fault(_ fault: JSONStore.Fault?) { JSONStore.faults.withLock { $0[url] = fault } }

    private func names(_ stack: CustomStack) throws -> [String?] {
        try stack.inContext { context throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            return try context.fetch(request).map(\.name)
        }
    }

    @Test
    func `predicates are evaluated by the framework, over relationships too`() throws {
        let stack = try CustomStack.json(url)
        try stack.inContext { context throws in
            for (index, name) in ["Porto", "Rome"].enumerated() {
                let city = City(context: context)
                city.name = name
                for number in 0...index {
                    let venue = Venue(context: context)
                    venue.name = "\(name) \(number)"
                    venue.city = city
                }
            }
            try context.save()
        }
        for stack in [stack, try .json(url)] {
            try stack.inContext { context throws in
                let venues = NSFetchRequest<Venue>(entityName: "Venue")
                venues.predicate = NSPredicate(format: "city.name BEGINSWITH[c] 'r' AND name ENDSWITH '1'")
                try expectEqual(context.fetch(venues).map(\.name), ["Rome 1"])
                let cities = NSFetchRequest<City>(entityName: "City")
                cities.predicate = NSPredicate(format: "venues.@count > 1 AND ANY venues.name CONTAINS '0'")
                try expectEqual(context.fetch(cities).map(\.name), ["Rome"])
            }
        }
    }

    @Test
    func `a save that cannot be written leaves file, nodes and context as they were`() throws {
        let stack = try CustomStack.json(url)
        let ids = try stack.storeVenues(["a", "b", "c"])
        let before = try Data(contentsOf: url)
        let context = stack.context()
        try context.performAndWait {
            try context.get(ids[0], Venue.self).name = "changed"
            context.delete(try context.get(ids[1], Venue.self))
            let new = Venue(context: context)
            new.name = "new"
            fault(.saveThrows)
            expectThrows(JSONStore.DiskFull.self) { try context.save() }
            expect(context.insertedObjects == [new] && context.deletedObjects.count == 1)
            expect(context.updatedObjects.count == 1 && new.isInserted)
            try expectEqual(Data(contentsOf: url), before)
            try expectEqual(names(stack), ["a", "b", "c"])
            fault(nil)
            // Another context's save meanwhile contains nothing of the failed save.
            try stack.inContext { other throws in
                try other.get(ids[2], Venue.self).price = 9
                try other.save()
            }
            try expectEqual(names(.json(url)), ["a", "b", "c"])
            try context.save()
        }
        for stack in [stack, try .json(url)] { try expectEqual(names(stack), ["c", "changed", "new"]) }
        let store = try require(stack.coordinator.persistentStores[0] as? JSONStore)
        expectEqual(store.removedNodes, 2)
        expectEqual(store.cacheNodes().count, 3)
        expectEqual(store.cacheNode(for: ids[1]), nil)
        expectEqual(store.cacheNode(for: ids[0])?.value(forKey: "name") as? String, "changed")
    }

    @Test
    func `a store that cannot load is not added`() throws {
        fault(.loadThrows)
        precondition(JSONStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        expectThrows(JSONStore.DiskFull.self) {
            try coordinator.addPersistentStore(type: JSONStore.storeType, at: url)
        }
        expect(coordinator.persistentStores.isEmpty)
        fault(nil)
        try coordinator.addPersistentStore(type: JSONStore.storeType, at: url)
        expectEqual(coordinator.persistentStores.count, 1)
    }

    @Test(arguments: [JSONStore.Fault.otherNode, .sameReference, .unusableReference])
    func `a store that names new objects wrongly makes the save throw, and nothing has changed`(
        _ fault: JSONStore.Fault
    ) throws {
        let stack = try CustomStack.json(url)
        try stack.storeVenues(["a"])
        try stack.inContext { context throws in
            for name in ["b", "c"] { Venue(context: context).name = name }
            self.fault(fault)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreOperation)
            expectEqual(error?.localizedDescription.contains("JSONStore"), true)
            expectEqual(context.insertedObjects.count, 2)
            expectEqual(stack.coordinator.persistentStores[0].cacheNodeCount, 1)
            self.fault(nil)
            try context.save()
        }
        try expectEqual(names(.json(url)), ["a", "b", "c"])
    }

    @Test
    func `values that a node fills in come back to the context that saved`() throws {
        let stack = try CustomStack.json(url)
        fault(.capitals)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "loud"
            try context.save()
            expectEqual(venue.name, "LOUD")
            expect(!venue.hasChanges)
            venue.price = 8
            try context.save()
            expect(venue.name == "LOUD" && venue.price == 8)
        }
        try expectEqual(names(stack), ["LOUD"])
    }

    @Test
    func `uniqueness constraints hold`() throws {
        let stack = try CustomStack.json(url)
        try stack.inContext { context throws in
            User(context: context).email = "me"
            try context.save()
            User(context: context).email = "me"
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectConstraintMerge)
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try context.save()
            try expectEqual(context.count(for: NSFetchRequest<User>(entityName: "User")), 1)
        }
    }

    /// Files that our stores have not written.
    private static let damaged: [String] = [
        // The destination of a relationship does not exist.
        #"{"metadata":{"NSStoreUUID":"U","NSStoreType":"JSON"},"objects":[{"entity":"Venue","reference":"1","texts":{},"numbers":{},"links":{"city":[["City","2"]]}}]}"#,
        #"{"metadata":{"NSStoreUUID":"U","NSStoreType":"JSON"},"objects":[{"entity":"Venue","reference":"1","texts":{},"numbers":{},"links":{"tags":[["Tag","2"]]}}]}"#,
        // The destination has another entity.
        #"{"metadata":{"NSStoreUUID":"U","NSStoreType":"JSON"},"objects":[{"entity":"Venue","reference":"1","texts":{},"numbers":{},"links":{"city":[["Venue","1"]]}}]}"#,
        // A number's place holds a text.
        #"{"metadata":{"NSStoreUUID":"U","NSStoreType":"JSON"},"objects":[{"entity":"Venue","reference":"1","texts":{"price":"x"},"numbers":{},"links":{}}]}"#,
        // A collection stands for a to-one relationship, and an object for an attribute.
        #"{"metadata":{"NSStoreUUID":"U","NSStoreType":"JSON"},"objects":[{"entity":"Venue","reference":"1","texts":{"tags":"x"},"numbers":{},"links":{}}]}"#,
        // No URI can hold this UUID.
        #"{"metadata":{"NSStoreUUID":"a/b","NSStoreType":"JSON"},"objects":[]}"#,
    ]

    @Test(arguments: damaged)
    func `nodes that make no sense keep the store from being added, with an error`(_ text: String) throws {
        try Data(text.utf8).write(to: url)
        let error = expectThrows(CocoaError.self) { try CustomStack.json(url) }
        expect(error?.code == .persistentStoreOperation || error?.code == .persistentStoreOpen)
        expectEqual(error?.localizedDescription.contains("JSONStore"), true)
        try expectEqual(Data(contentsOf: url), Data(text.utf8))
    }

    @Test
    func `one side of a relationship is enough in a file`() throws {
        let text = #"""
            {"metadata":{"NSStoreUUID":"U","NSStoreType":"JSON"},"objects":[
            {"entity":"City","reference":"1","texts":{"name":"Porto"},"numbers":{},"links":{"venues":[["Venue","1"],["Bar","2"]]}},
            {"entity":"Venue","reference":"1","texts":{"name":"a"},"numbers":{},"links":{"photos":[["Photo","2"],["Photo","1"]]}},
            {"entity":"Bar","reference":"2","texts":{"name":"b"},"numbers":{},"links":{}},
            {"entity":"Tag","reference":"1","texts":{},"numbers":{},"links":{"venues":[["Venue","1"]]}},
            {"entity":"Photo","reference":"1","texts":{"title":"1"},"numbers":{},"links":{}},
            {"entity":"Photo","reference":"2","texts":{"title":"2"},"numbers":{},"links":{}}]}
            """#
        try Data(text.utf8).write(to: url)
        try CustomStack.json(url).inContext { context throws in
            let city = try require(try context.all(City.self).first)
            expectEqual(Set(city.venues.map(\.name)), ["a", "b"])
            let venue = try require(city.venues.first { $0.name == "a" })
            expect(venue.city === city)
            expectEqual(venue.tags.count, 1)
            expectEqual(venue.photos.map(\.title), ["2", "1"])
            expect(venue.photos.allSatisfy { $0.venue === venue })
        }
    }

    @Test
    func `a store of another model version is refused`() throws {
        let stack = try CustomStack.json(url)
        var metadata: [String: Any] = stack.coordinator.persistentStores[0].metadata
        expect(metadata[NSStoreModelVersionHashesKey] as? [String: Data] != nil)
        try stack.storeVenues(["a"])
        metadata[NSStoreModelVersionHashesKey] = ["Venue": Data(repeating: 7, count: 32)]
        AgedStore.metadata.withLock { [metadata = UncheckedMetadata(metadata)] in $0 = metadata }
        NSPersistentStoreCoordinator.registerStoreClass(AgedStore.self, forStoreType: "Aged")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let error = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(ofType: "Aged", configurationName: nil, at: nil)
        }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        try coordinator.addPersistentStore(
            ofType: "Aged",
            configurationName: nil,
            at: nil,
            options: [NSIgnorePersistentStoreVersioningOption: true]
        )
        NSPersistentStoreCoordinator.registerStoreClass(nil, forStoreType: "Aged")
        let unknown = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(ofType: "Aged", configurationName: nil, at: folder.file("x"))
        }
        expectEqual(unknown?.code, .persistentStoreInvalidType)
    }

    @Test
    func `metadata are set, saved and read without opening the store`() throws {
        let stack = try CustomStack.json(url)
        let store = stack.coordinator.persistentStores[0]
        var metadata = stack.coordinator.metadata(for: store)
        metadata["colour"] = "red"
        stack.coordinator.setMetadata(metadata, for: store)
        try stack.storeVenues(["a"])
        let read = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: JSONStore.storeType, at: url)
        expectEqual(read["colour"] as? String, "red")
        expectEqual(read[NSStoreUUIDKey] as? String, store.identifier)
        try NSPersistentStoreCoordinator.setMetadata(
            [NSStoreUUIDKey: "U", NSStoreTypeKey: "JSON", "colour": "blue"],
            type: JSONStore.storeType,
            at: url
        )
        let again = try CustomStack.json(url)
        expectEqual(again.coordinator.persistentStores[0].metadata["colour"] as? String, "blue")
        expectEqual(again.coordinator.persistentStores[0].identifier, "U")
    }

    @Test
    func `a class that overrides nothing gets an error that names what is missing`() throws {
        NSPersistentStoreCoordinator.registerStoreClass(NSAtomicStore.self, forStoreType: "Nothing")
        defer { NSPersistentStoreCoordinator.registerStoreClass(nil, forStoreType: "Nothing") }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let error = expectThrows(CocoaError.self) {
            try coordinator.addPersistentStore(ofType: "Nothing", configurationName: nil, at: nil)
        }
        expectEqual(error?.localizedDescription.contains("load()"), true)
    }

    @Test
    func `a node keeps what it is given`() throws {
        let stack = try CustomStack.json(url)
        let id = try stack.storeVenues(["a"])[0]
        let node = NSAtomicStoreCacheNode(objectID: id)
        expect(node.propertyCache == nil && node.value(forKey: "name") == nil)
        node.setValue("b", forKey: "name")
        expectEqual(node.propertyCache?.object(forKey: NSString(string: "name")) as? String, "b")
        node.setValue(nil, forKey: "name")
        expect(node.value(forKey: "name") == nil)
        node.propertyCache = NSMutableDictionary(dictionary: ["name": "c"])
        expectEqual(node.value(forKey: "name") as? String, "c")
    }
}

extension NSPersistentStore {
    fileprivate var cacheNodeCount: Int? { (self as? NSAtomicStore)?.cacheNodes().count }
}

/// Metadata that a test passes to a store.
struct UncheckedMetadata: @unchecked Sendable {
    // @unchecked Sendable: property-list values, which no code mutates.
    let values: [String: Any]
    init(_ values: [String: Any]) { self.values = values }
}

/// An empty store with metadata from a test.
private final class AgedStore: NSAtomicStore, @unchecked Sendable {
    // @unchecked Sendable: no instance state.
    static let metadata = Locked<UncheckedMetadata>(UncheckedMetadata([:]))

    override func load() throws { metadata = Self.metadata.withLock { $0 }.values }
    override func save() throws {}
}
