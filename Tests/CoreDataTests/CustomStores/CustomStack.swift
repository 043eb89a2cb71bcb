import CoreData
import TestSupport

/// A coordinator with one custom store.
final class CustomStack: Sendable {
    let coordinator: NSPersistentStoreCoordinator
    let url: URL

    init(_ coordinator: NSPersistentStoreCoordinator, _ url: URL) {
        self.coordinator = coordinator
        self.url = url
    }

    /// A stack over a server.
    static func server(_ server: Server, options: [AnyHashable: Any]? = nil, model: NSManagedObjectModel? = nil) throws
        -> CustomStack
    {
        precondition(ServerStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model ?? GuideModel.make())
        try coordinator.addPersistentStore(type: ServerStore.storeType, at: server.url, options: options)
        return CustomStack(coordinator, server.url)
    }

    /// A stack over a JSON file.
    static func json(_ url: URL, model: NSManagedObjectModel? = nil, options: [AnyHashable: Any]? = nil) throws
        -> CustomStack
    {
        precondition(JSONStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model ?? GuideModel.make())
        try coordinator.addPersistentStore(type: JSONStore.storeType, at: url, options: options)
        return CustomStack(coordinator, url)
    }

    /// Runs `body` in a new context.
    func inContext<T>(_ name: String? = nil, _ body: (NSManagedObjectContext) throws -> T) throws -> T {
        let context = context(name)
        return try context.performAndWait { try body(context) }
    }

    func context(_ name: String? = nil) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.name = name
        return context
    }

    /// Saves venues with these names.
    ///
    /// The price of each is its position, from 1.
    @discardableResult
    func storeVenues(_ names: [String]) throws -> [NSManagedObjectID] {
        try inContext { context throws in
            let venues = names.enumerated().map { index, name in
                let venue = Venue(context: context)
                venue.name = name
                venue.price = Int16(index + 1)
                return venue
            }
            try context.save()
            return venues.map(\.objectID)
        }
    }
}

/// The two kinds of custom stores.
enum CustomKind: CaseIterable, Sendable {
    case server
    case json
}

extension CustomStack {
    /// A stack on an empty store of a kind.
    ///
    /// `folder` holds the store's file.
    static func make(_ kind: CustomKind, in folder: StoreFolder, model: NSManagedObjectModel? = nil) throws
        -> CustomStack
    {
        switch kind {
        case .server: try server(Server(), model: model)
        case .json: try json(folder.file("store.json"), model: model)
        }
    }

    /// Another coordinator on the same store.
    func reopened(_ kind: CustomKind) throws -> CustomStack {
        switch kind {
        case .server:
            guard let server = Server.at(url) else { throw ServerDown(method: .metadata) }
            return try .server(server)
        case .json: return try .json(url)
        }
    }
}
