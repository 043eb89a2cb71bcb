import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport

/// A folder of tenants in which no store opens until a test lets it.
final class OpeningGate: TenantLocation {
    private let folder: TenantFolder
    private let permits = DispatchSemaphore(value: 0)
    private let calls = Locked(0)

    init(_ folder: TenantFolder) { self.folder = folder }

    /// Whether an opening waits, or has waited.
    var isAsked: Bool { calls.withLock { $0 } > 0 }

    /// Lets some openings go on.
    func open(_ count: Int = 1) { for _ in 0..<count { permits.signal() } }

    func storeDescription(of name: String) throws -> NSPersistentStoreDescription {
        try folder.storeDescription(of: name)
    }
    func names() throws -> [String] { try folder.names() }
    func exists(_ name: String) throws -> Bool {
        calls.withLock { $0 += 1 }
        permits.wait()
        return try folder.exists(name)
    }
    func destroy(_ name: String) throws { try folder.destroy(name) }
}

/// Models and values of the tests of tenants.
enum TenantSupport {
    /// A model with notes, whose second version has one more attribute.
    static func model(version: Int = 1) -> NSManagedObjectModel {
        let (text, data) = (NSAttributeDescription(), NSAttributeDescription())
        (text.name, text.type, text.isOptional) = ("text", .string, true)
        (data.name, data.type, data.allowsExternalBinaryDataStorage) = ("data", .binaryData, true)
        data.isOptional = true
        let note = NSEntityDescription()
        (note.name, note.properties) = ("Note", [text, data])
        if version > 1 {
            let rank = NSAttributeDescription()
            (rank.name, rank.type, rank.defaultValue) = ("rank", .integer64, 7)
            note.properties.append(rank)
        }
        let model = NSManagedObjectModel()
        model.entities = [note]
        return model
    }

    /// Saves notes.
    static func add(_ texts: String..., data: Data? = nil, to tenant: Tenant) throws {
        let context = tenant.container.newBackgroundContext()
        try context.performAndWait {
            for text in texts {
                let note = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
                note.setValue(text, forKey: "text")
                note.setValue(data, forKey: "data")
            }
            try context.save()
        }
    }

    /// The texts of all notes, sorted.
    static func texts(_ tenant: Tenant) throws -> [String] {
        let context = tenant.container.newBackgroundContext()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
                .compactMap { $0.value(forKey: "text") as? String }.sorted()
        }
    }

    /// Yields to other tasks until a condition holds, and blocks no thread that they need.
    static func wait(until condition: () -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(60)
        while !condition() {
            try require(ContinuousClock.now < end, "waited in vain")
            await Task.yield()
        }
    }

    /// The code of the error that a body throws; `nil` if it throws none.
    static func code(_ body: () async throws -> Void) async -> Int? {
        do {
            try await body()
            return nil
        } catch {
            return (error as NSError).code
        }
    }
}
