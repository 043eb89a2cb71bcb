import Foundation

/// The files of a new package.
enum PackageTemplate {
    /// - Parameters:
    ///   - name: The name of the package.
    ///   - strata: The place of Strata's own package.
    ///   - product: The product that the package uses.
    /// - Returns: The text of the manifest.
    static func manifest(_ name: String, _ strata: StrataSource, product: String) -> String {
        """
        // swift-tools-version: 6.2

        import PackageDescription

        let package = Package(
            name: "\(name)",
            platforms: [.macOS(.v15)],
            dependencies: [\(strata.declaration)],
            targets: [
                .executableTarget(
                    name: "\(name)",
                    dependencies: [.product(name: "\(product)", package: "\(strata.identity)")]
                )
            ],
            swiftLanguageModes: [.v6]
        )

        """
    }

    static let model = #"""
        import CoreData

        @ManagedObject
        final class Venue: NSManagedObject {
            @Managed var name: String
            @Managed(.default(0)) var price: Int64
            @Managed(.inverse(\City.venues)) var city: City?
        }

        @ManagedObject
        final class City: NSManagedObject {
            @Managed(.unique) var name: String
            @Managed(.deleteRule(.cascade)) var venues: Set<Venue>
        }

        """#

    static func store(_ name: String) -> String {
        """
        import CoreData

        /// Opens the store, which is made if it is not there. Call it once for the process.
        func openStore(at path: String) throws -> NSPersistentContainer {
            let model = try NSManagedObjectModel(for: Venue.self, City.self)
            let container = NSPersistentContainer(name: "\(name)", managedObjectModel: model)
            container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: URL(fileURLWithPath: path))]
            var failure: (any Error)?
            container.loadPersistentStores { _, error in failure = error }
            if let failure { throw failure }
            return container
        }

        """
    }

    static let program = #"""
        import CoreData

        let container = try openStore(at: "store.sqlite")

        /// Adds a venue. The block runs again if another save was faster, and is saved at its end.
        func add(_ name: String, price: Int64, in cityName: String) async throws {
            let context = container.newBackgroundContext()
            try await context.perform(retrying: 10) {
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: "name == %@", cityName)
                let city: City
                if let known = try context.fetch(request).first {
                    city = known
                } else {
                    city = City(context: context)
                    city.name = cityName
                }
                let venue = Venue(context: context)
                venue.name = name
                venue.price = price
                venue.city = city
            }
        }

        /// Objects stay inside of `perform`; values leave it.
        func venues(in city: String, below price: Int) async throws -> [String] {
            let context = container.newBackgroundContext()
            return try await context.perform {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: "city.name == %@ AND price < %d", city, price)
                request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
                return try context.fetch(request).map(\.name)
            }
        }

        if try await venues(in: "Porto", below: 20).isEmpty {
            try await add("Casa da Música", price: 15, in: "Porto")
            print("Stored Casa da Música.")
        }
        print("Below 20 in Porto: \(try await venues(in: "Porto", below: 20).joined(separator: ", "))")
        try await container.close()

        """#
}
