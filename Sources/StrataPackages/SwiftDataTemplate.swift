/// The files of a new package with the classes of an app that uses SwiftData.
enum SwiftDataTemplate {
    /// The file that an app for Apple's platforms can share.
    static let model = #"""
        import Foundation
        import SwiftData

        @Model
        final class Venue {
            var name: String
            var price: Int
            var city: City?

            init(name: String, price: Int) {
                self.name = name
                self.price = price
            }
        }

        @Model
        final class City {
            @Attribute(.unique) var name: String
            @Relationship(deleteRule: .cascade, inverse: \Venue.city) var venues: [Venue] = []

            init(name: String) { self.name = name }
        }

        """#

    static let store = #"""
        import Foundation
        import SwiftData

        /// Opens the store, which is made if it is not there. Call it once for the process.
        func openStore(at path: String) throws -> ModelContainer {
            try ModelContainer(for: Venue.self, City.self, configurations: ModelConfiguration(url: URL(fileURLWithPath: path)))
        }

        """#

    static let program = #"""
        import Foundation
        import SwiftData

        /// Works with the store on a queue of its own. Objects stay inside; values and identifiers leave it.
        @ModelActor
        actor Guide {
            func add(_ name: String, price: Int, in cityName: String) throws {
                let known = FetchDescriptor<City>(predicate: #Predicate { $0.name == cityName })
                let city = try modelContext.fetch(known).first ?? City(name: cityName)
                let venue = Venue(name: name, price: price)
                venue.city = city
                modelContext.insert(venue)
                try modelContext.save()
            }

            func venues(in city: String, below price: Int) throws -> [String] {
                let cheap = FetchDescriptor<Venue>(
                    predicate: #Predicate { $0.city?.name == city && $0.price < price },
                    sortBy: [SortDescriptor(\.name)]
                )
                return try modelContext.fetch(cheap).map(\.name)
            }
        }

        let guide = Guide(modelContainer: try openStore(at: "guide.store"))
        if try await guide.venues(in: "Porto", below: 20).isEmpty {
            try await guide.add("Casa da Música", price: 15, in: "Porto")
            print("Stored Casa da Música.")
        }
        print("Below 20 in Porto: \(try await guide.venues(in: "Porto", below: 20).joined(separator: ", "))")

        """#
}
