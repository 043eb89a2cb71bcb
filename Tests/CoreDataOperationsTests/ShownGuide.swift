/// The code that blocks of the documentation may use: the classes of the guide, a store with some objects, and
/// helpers.
let shownGuide = #"""
    import CoreData
    import Foundation
    import Synchronization

    @ManagedObject(.index("byPrice", on: "price"))
    final class Venue: NSManagedObject {
        @Managed var name: String
        @Managed(.default(0)) var price: Int64
        @Managed var openedAt: Date?
        @Managed(.inverse(\City.venues)) var city: City?
    }

    @ManagedObject
    final class City: NSManagedObject {
        @Managed(.unique) var name: String
        @Managed(.deleteRule(.cascade)) var venues: Set<Venue>
    }

    @ManagedObject
    final class Job: NSManagedObject {
        @Managed var title: String
        @Managed(.default(0)) var priority: Int64
        @Managed var claimedBy: String?
        @Managed var claimedUntil: Date?
    }

    enum Guide {
        static let shared = Result { try NSManagedObjectModel(for: Venue.self, City.self, Job.self) }

        static func model() throws -> NSManagedObjectModel { try shared.get() }

        static func newFolder() -> URL {
            let folder = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)
                .appendingPathComponent(UUID().uuidString)
            try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            return folder
        }

        /// A folder with one tenant, acme.
        static func tenants() async throws -> TenantContainer {
            let tenants = TenantContainer(managedObjectModel: try model(), at: TenantFolder(newFolder()))
            _ = try await tenants.create("acme")
            return tenants
        }

        /// A container with two cities and three venues.
        @MainActor static func container() throws -> NSPersistentContainer {
            let container = NSPersistentContainer(name: "Guide", managedObjectModel: try model())
            let url = newFolder().appendingPathComponent("guide.sqlite")
            let description = NSPersistentStoreDescription(url: url)
            description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
            description.setOption(NSNumber(value: true), forKey: NSPersistentStoreRemoteChangeNotificationPostOptionKey)
            container.persistentStoreDescriptions = [description]
            var failure: (any Error)?
            container.loadPersistentStores { _, error in failure = error }
            if let failure { throw failure }
            let context = container.viewContext
            for (name, venues) in [("Porto", [("Casa da Música", 15), ("Hot Five", 8)]), ("Lund", [("Mejeriet", 120)])] {
                let city = City(context: context)
                city.name = name
                for (name, price) in venues {
                    let venue = Venue(context: context)
                    (venue.name, venue.price, venue.city) = (name, Int64(price), city)
                }
            }
            try context.save()
            return container
        }

        @MainActor static func first<T: NSManagedObject>(_ type: T.Type, _ context: NSManagedObjectContext) throws -> T {
            let request = NSFetchRequest<T>(entityName: String(describing: type))
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            guard let found = try context.fetch(request).first else { throw CocoaError(.fileNoSuchFile) }
            return found
        }

        static func entity(_ name: String, _ model: NSManagedObjectModel) throws -> NSEntityDescription {
            guard let entity = model.entitiesByName[name] else { throw CocoaError(.fileNoSuchFile) }
            return entity
        }

        static func token(_ coordinator: NSPersistentStoreCoordinator) throws -> NSPersistentHistoryToken {
            guard let token = coordinator.currentPersistentHistoryToken(fromStores: nil) else {
                throw CocoaError(.fileNoSuchFile)
            }
            return token
        }

        /// The last transaction, with its changes.
        @MainActor static func transaction(_ context: NSManagedObjectContext) throws -> NSPersistentHistoryTransaction {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            guard let transaction = (result?.result as? [NSPersistentHistoryTransaction])?.last else {
                throw CocoaError(.fileNoSuchFile)
            }
            return transaction
        }

        /// A controller of the venues, with one section for each city.
        @MainActor static func controller(_ context: NSManagedObjectContext) throws -> NSFetchedResultsController<Venue> {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = ["city.name", "name"].map { NSSortDescriptor(key: $0, ascending: true) }
            let controller = NSFetchedResultsController(
                fetchRequest: request, managedObjectContext: context, sectionNameKeyPath: "city.name", cacheName: nil)
            try controller.performFetch()
            return controller
        }

        static func oldModel() throws -> NSManagedObjectModel {
            let model = NSManagedObjectModel()
            let venue = NSEntityDescription()
            venue.name = "Venue"
            let name = NSAttributeDescription()
            (name.name, name.type) = ("name", .string)
            venue.properties = [name]
            model.entities = [venue]
            return model
        }

        /// A store of the old model, with one object.
        static func oldStore() throws -> URL {
            let url = newFolder().appendingPathComponent("old.sqlite")
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try oldModel())
            let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                let venue = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context)
                venue.setValue("Hot Five", forKey: "name")
                try context.save()
            }
            try coordinator.remove(store)
            return url
        }
    }

    func respond(_ text: String, type: String) {}

    /// `Bundle.module`, as in a target for which the plugin `CoreDataModels` has made a bundle.
    extension Bundle {
        static let module: Bundle = {
            let folder = Guide.newFolder()
            let model = folder.appendingPathComponent("Library.momd")
            let text = """
                <?xml version="1.0" encoding="UTF-8"?>
                <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
                <entity name="Book"><attribute name="title" optional="YES" attributeType="String"/></entity>
                </model>
                """
            let versions: [String: Any] = ["NSManagedObjectModel_CurrentVersionName": "Library"]
            do {
                try FileManager.default.createDirectory(at: model, withIntermediateDirectories: true)
                try Data(text.utf8).write(to: model.appendingPathComponent("Library.mom"))
                try PropertyListSerialization.data(fromPropertyList: versions, format: .xml, options: 0)
                    .write(to: model.appendingPathComponent("VersionInfo.plist"))
            } catch { fatalError("\(error)") }
            return Bundle(path: folder.path) ?? .main
        }()
    }

    """#
