import CoreData
import Foundation
import StrataLocks

/// A few threads with contexts, and what must hold when all of them have ended.
///
/// A program is made anew for each schedule, so that all schedules begin in the same state.
protocol Program: SendableMetatype {
    static var name: String { get }
    /// What the program does, and what must hold.
    static var summary: String { get }
    /// The guards whose absence the program has to show, for the check of the scheduler itself.
    static var guards: [String] { get }

    /// Whether the program makes sense on SQLite only.
    static var needsFile: Bool { get }

    /// Whether the calls are drawn from the seed; if so, then a failing program is made shorter.
    static var isDrawn: Bool { get }

    /// How much of the time it gets if all programs are gone round.
    static var weight: Int { get }

    /// Whether a wait may end by its deadline: if not, then a forgotten wake-up is found so.
    var mayExpire: Bool { get }

    /// Whether all orders with one change of threads are tried, in place of a number of orders.
    static var isSearched: Bool { get }

    /// How many different programs there are; a search tries each of them once.
    static var variants: Int { get }

    /// Makes the stores and contexts.
    init(_ place: Place) throws
    /// The numbers of the calls that were drawn, and the calls of each context.
    var callNumbers: [Int] { get }
    var listing: [String] { get }
    /// The work of each thread.
    var bodies: [@Sendable () throws -> Void] { get }
    /// Notes in the place what does not hold.
    func judge() throws
}

extension Program {
    static var needsFile: Bool { false }
    static var isDrawn: Bool { false }
    static var isSearched: Bool { false }
    static var variants: Int { .max }
    var mayExpire: Bool { false }
    static var weight: Int { 1 }
    var callNumbers: [Int] { [] }
    var listing: [String] { [] }
}

/// The folder and the findings of one schedule.
final class Place: Sendable {
    let folder: URL
    let isInMemory: Bool
    /// The seed of what a program draws.
    let seed: UInt64
    /// The numbers of drawn calls that are left out.
    let leftOut: Set<Int>
    private let list = Locked<[String]>([])

    init(isInMemory: Bool, seed: UInt64, leftOut: Set<Int> = []) throws {
        (self.isInMemory, self.seed, self.leftOut) = (isInMemory, seed, leftOut)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    var findings: [String] { list.withLock { $0 } }

    func find(_ text: String) { list.withLock { $0.append(text) } }

    func expect(_ holds: Bool, _ text: @autoclosure () -> String) { if !holds { find(text()) } }

    /// The file of the store.
    var file: URL { folder.appendingPathComponent("store.sqlite") }

    /// How a store is opened.
    struct Settings {
        /// The most connections that read.
        var readers = 8
        /// The most fetches that read at the same time without a thread that waits for them; 0 for the usual number.
        var backgroundReads = 0
        /// The pages after which the log is copied into the file; 0 for the usual number.
        var logPages: Int32 = 0
        /// Whether others are notified of what is written to the file.
        var postsChanges = false
        /// Another model than that of all programs.
        var model: NSManagedObjectModel?
    }

    /// A coordinator with the store of this place; each call opens it again.
    func stack(_ settings: Settings = Settings()) throws -> NSPersistentStoreCoordinator {
        WorkSize.copyLogs(after: settings.logPages)
        WorkSize.readInBackground(atMost: settings.backgroundReads)
        defer {
            WorkSize.copyLogs(after: 0)
            WorkSize.readInBackground(atMost: 0)
        }
        let stack = NSPersistentStoreCoordinator(managedObjectModel: settings.model ?? Box.model)
        var options: [AnyHashable: Any] = [
            NSPersistentHistoryTrackingKey: true,
            NSPersistentStoreConnectionPoolMaxSizeKey: settings.readers,
            // The orders of threads are tried, and not the disk.
            NSSQLitePragmasOption: ["synchronous": "OFF"],
        ]
        if settings.postsChanges { options[NSPersistentStoreRemoteChangeNotificationPostOptionKey] = true }
        _ = try stack.addPersistentStore(
            ofType: isInMemory ? NSInMemoryStoreType : NSSQLiteStoreType,
            configurationName: nil,
            at: isInMemory ? nil : file,
            options: options
        )
        return stack
    }
}

/// A value that the threads of a program share.
final class Shared<Value: Sendable>: Sendable {
    private let content: Locked<Value>

    init(_ value: Value) { content = Locked(value) }

    func withLock<Result: Sendable>(_ body: (inout sending Value) -> Result) -> Result {
        content.withLock { body(&$0) }
    }
}

/// The model of the programs, which has one entity, `Box`.
enum Box {
    static let model = makeModel()

    /// A separate model, which nothing has used yet.
    static func makeModel() -> NSManagedObjectModel {
        func attribute(_ name: String, _ type: NSAttributeType, _ value: Any) -> NSAttributeDescription {
            let attribute = NSAttributeDescription()
            (attribute.name, attribute.attributeType, attribute.defaultValue) = (name, type, value)
            return attribute
        }
        let entity = NSEntityDescription()
        (entity.name, entity.managedObjectClassName) = ("Box", "NSManagedObject")
        entity.properties = [
            attribute("name", .stringAttributeType, ""), attribute("count", .integer64AttributeType, 0),
        ]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }
}

extension NSPersistentStoreCoordinator {
    func context(_ policy: NSMergePolicy = .error, named name: String = "") -> NSManagedObjectContext {
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = self
        context.mergePolicy = policy
        context.name = name
        return context
    }

    /// Inserts boxes with a count, and returns their IDs.
    func fill(_ names: [String], count: Int = 0) throws -> [NSManagedObjectID] {
        let context = context()
        return try context.performAndWait {
            let boxes = names.map { name in
                let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                box.setValue(name, forKey: "name")
                box.setValue(count, forKey: "count")
                return box
            }
            try context.save()
            return boxes.map(\.objectID)
        }
    }

    /// The counts of all boxes, as a new context sees them.
    func counts() throws -> [String: Int] {
        let context = context()
        return try context.performAndWait {
            let boxes = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box"))
            return Dictionary(boxes.map { ($0.name, $0.count) }) { $0 + $1 }
        }
    }
}

extension NSManagedObject {
    var name: String { value(forKey: "name") as? String ?? "" }
    var count: Int {
        get { value(forKey: "count") as? Int ?? -1 }
        set { setValue(newValue, forKey: "count") }
    }
}
