import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Saves without changes")
struct EmptySaveTests {
    @Test(arguments: StoreKind.allCases)
    func `a save without changes posts will-save and did-save, with nothing in them (CS-82)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for context in [stack.context(), stack.context().child()] {
            let log = NotificationLog(.ofContexts, of: context)
            try context.performAndWait { try context.save() }
            expect(
                log.names == [
                    .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
                    .NSManagedObjectContextDidSaveObjectIDs,
                ]
            )
            for entry in log.entries.dropFirst() {
                let sets = entry.notification.userInfo?.values.compactMap { $0 as? NSSet } ?? []
                expect(sets.allSatisfy { $0.count == 0 })
                expect(entry.objects(NSInsertedObjectsKey).isEmpty && entry.ids(NSUpdatedObjectIDsKey).isEmpty)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a handler of will-save changes is saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let held = UncheckedSendable(context)
        let observer = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextWillSave,
            object: context,
            queue: nil
        ) { _ in City(context: held.value).name = "in passing" }
        defer { NotificationCenter.default.removeObserver(observer) }
        try context.performAndWait { try context.save() }
        try expectEqual(stack.count("City"), 1)
    }

    @Test func `a save without changes writes the metadata that was set since`() throws {
        let stack = try Stack(.database)
        let store = try require(stack.coordinator.persistentStores.first)
        let context = stack.context()
        func stored() throws -> Int? {
            try NSPersistentStoreCoordinator.metadataForPersistentStore(
                type: StoreKind.database.type,
                at: stack.storeURL
            )["count"]
                as? Int
        }
        for count in 1...2 {
            var metadata = stack.coordinator.metadata(for: store)
            metadata["count"] = count
            stack.coordinator.setMetadata(metadata, for: store)
            try context.performAndWait { () throws in
                // A child writes nothing.
                try context.child().saveAndWait()
                try expect(stored() != count)
                try context.save()
            }
            try expectEqual(stored(), count)
        }
    }

    @Test func `a store of one's own is asked to write its metadata once`() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("guide.json")
        let stack = try CustomStack.json(url)
        try stack.storeVenues(["Sol"])
        let store = try require(stack.coordinator.persistentStores.first)
        try stack.inContext { try $0.save() }
        let written = try Data(contentsOf: url)
        var metadata = stack.coordinator.metadata(for: store)
        metadata["owner"] = "nobody"
        stack.coordinator.setMetadata(metadata, for: store)
        try expectEqual(Data(contentsOf: url), written)
        try stack.inContext { try $0.save() }
        try expectEqual(JSONStore.metadataForPersistentStore(with: url)["owner"] as? String, "nobody")
        try FileManager.default.removeItem(at: url)
        try stack.inContext { try $0.save() }
        expect(!FileManager.default.fileExists(atPath: url.path))
    }

    @Test func `nothing is written to a store that may not be written`() throws {
        let stack = try Stack(.database)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(
            type: StoreKind.database.type,
            at: stack.storeURL,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        coordinator.setMetadata(["mine": 1], for: store)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        #expect(throws: Never.self) { try context.saveAndWait() }
    }
}
