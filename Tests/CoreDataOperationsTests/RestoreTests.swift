import CoreData
import Expectations
import Foundation
import StrataLocks
import StrataSQLiteStore
import Synchronization
import TestSupport
import Testing

/// Backups that are restored while other threads work on the store.
@Suite("Restoring")
struct RestoreTests {
    private let scratch: ScratchFolder
    private let model: NSManagedObjectModel
    private var url: URL { scratch.file("shop.sqlite") }

    init() throws {
        scratch = try ScratchFolder()
        let (text, number, data) = (NSAttributeDescription(), NSAttributeDescription(), NSAttributeDescription())
        (text.name, text.type) = ("name", .string)
        (number.name, number.type, number.defaultValue) = ("round", .integer64, 0)
        (data.name, data.type, data.allowsExternalBinaryDataStorage) = ("data", .binaryData, true)
        let picture = NSEntityDescription()
        (picture.name, picture.properties) = ("Picture", [text, number, data])
        model = NSManagedObjectModel()
        model.entities = [picture]
    }

    private func open() throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(type: .sqlite, at: url)
        return coordinator
    }

    private func add(_ name: String, _ coordinator: NSPersistentStoreCoordinator) throws {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let picture = NSEntityDescription.insertNewObject(forEntityName: "Picture", into: context)
            picture.setValue(name, forKey: "name")
            try context.save()
        }
    }

    /// Two pictures of one writer, always of the same round.
    private static func step(_ writer: Int, _ round: Int, _ coordinator: NSPersistentStoreCoordinator) throws {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait(retrying: 1000) {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Picture")
            request.predicate = NSPredicate(format: "name == %@", "writer \(writer)")
            var pictures = try context.fetch(request)
            while pictures.count < 2 {
                pictures.append(NSEntityDescription.insertNewObject(forEntityName: "Picture", into: context))
            }
            for picture in pictures {
                picture.setValue("writer \(writer)", forKey: "name")
                picture.setValue(round, forKey: "round")
                picture.setValue(Data(repeating: UInt8(truncatingIfNeeded: round), count: 150_000), forKey: "data")
            }
        }
    }

    @Test func `a backup is put back while others read and write, and the store is whole afterwards`() throws {
        let coordinator = try open()
        try add("before", coordinator)
        let backup = scratch.file("backup.sqlite")
        let isOver = Atomic(false)
        let failures = Locked<[String]>([])
        let rounds = DispatchSemaphore(value: 0)
        let writers = DispatchGroup()
        // The second writer has a separate coordinator, like another process.
        for (number, stack) in [(1, coordinator), (2, try open())] {
            writers.enter()
            Thread.detachNewThread {
                for round in 1... {
                    // One last round begins after the restores have ended.
                    let isLast = isOver.load(ordering: .relaxed)
                    do { try Self.step(number, round, stack) } catch {
                        failures.withLock { $0.append("writer \(number), round \(round): \(error)") }
                    }
                    rounds.signal()
                    if isLast { break }
                }
                writers.leave()
            }
        }
        func wait(rounds count: Int) { for _ in 1...count { rounds.wait() } }
        do {
            defer {
                isOver.store(true, ordering: .relaxed)
                writers.wait()
            }
            wait(rounds: 10)
            try coordinator.backUp(to: backup)
            try add("after", coordinator)
            for _ in 1...3 {
                wait(rounds: 4)
                try NSPersistentStoreCoordinator(managedObjectModel: model).replacePersistentStore(
                    at: url,
                    withPersistentStoreFrom: backup,
                    type: .sqlite
                )
            }
            wait(rounds: 4)
        }
        expectEqual(failures.withLock(\.self), [])

        let problems = try StoreVerifier(storeURL: url, model: model).problems()
        expectEqual(problems, [])
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = try open()
        try context.performAndWait {
            let all = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Picture"))
            let byName = Dictionary(grouping: all) { $0.value(forKey: "name") as? String ?? "" }
            expectEqual(byName.keys.sorted(), ["before", "writer 1", "writer 2"])
            for (name, pictures) in byName where name != "before" {
                expect(pictures.count == 2 && Set(pictures.map { $0.value(forKey: "round") as? Int64 }).count == 1)
                for picture in pictures {
                    let (data, round) = (
                        picture.value(forKey: "data") as? Data, picture.value(forKey: "round") as? Int64
                    )
                    expect(data?.count == 150_000 && data?.first == round.map { UInt8(truncatingIfNeeded: $0) })
                }
            }
        }
    }
}
