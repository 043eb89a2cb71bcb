/// The code that blocks of SwiftData's documentation may use.
let shownModels = #"""
    import Foundation
    import SwiftData

    @Model final class Trip {
        @Attribute(.unique) var code: String
        var name: String
        var start: Date?
        @Relationship(deleteRule: .cascade, inverse: \Stop.trip) var stops: [Stop] = []

        init(code: String = "", name: String) { (self.code, self.name) = (code, name) }
    }

    @Model final class Stop {
        var city: String
        var nights: Int = 1
        var trip: Trip?

        init(city: String) { self.city = city }
    }

    @ModelActor actor Importer {
        func add(_ name: String) throws -> PersistentIdentifier {
            let trip = Trip(name: name)
            modelContext.insert(trip)
            try modelContext.save()
            return trip.persistentModelID
        }
    }

    enum TravelV1: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Trip.self] }
    }

    enum TravelV2: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
        static var models: [any PersistentModel.Type] { [Trip.self] }
    }

    struct MemoryConfiguration: DataStoreConfiguration {
        typealias Store = MemoryStore
        var name: String
        var schema: Schema?
    }

    final class MemoryStore: DataStore {
        typealias Configuration = MemoryConfiguration
        typealias Snapshot = DefaultSnapshot
        let configuration: MemoryConfiguration
        let schema: Schema
        var identifier: String { configuration.name }

        init(_ configuration: MemoryConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
            self.configuration = configuration
            schema = configuration.schema ?? Schema()
        }

        func fetch<T>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, DefaultSnapshot> {
            DataStoreFetchResult(descriptor: request.descriptor, fetchedSnapshots: [])
        }

        func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
            -> DataStoreSaveChangesResult<DefaultSnapshot>
        {
            DataStoreSaveChangesResult(for: identifier)
        }
    }

    enum Guide {
        static func container() throws -> ModelContainer {
            try ModelContainer(for: Trip.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
    }
    """#

extension ShownCode {
    /// The names that a block of SwiftData's documentation may use without a declaration.
    static let suppliedModels: [(name: String, code: String)] = [
        ("url", "let url = URL(fileURLWithPath: \"/tmp/guide.store\")"),
        ("container", "let container = try Guide.container()"),
        ("context", "let context = ModelContext(container)"),
        ("trip", "let trip = Trip(name: \"Italy\")"),
        ("importer", "let importer = Importer(modelContainer: container)"),
        ("notification", "let notification = Notification(name: ModelContext.didSave)"),
        (
            "transaction",
            "let transaction = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())[0]"
        ),
        ("change", "let change = transaction.changes[0]"),
        ("last", "let last = transaction.token"),
        (
            "results",
            "let results = try ResultsObserver<Stop, String>(sectionBy: \\.city, modelContext: context)"
        ),
        ("remapped", "let remapped = [trip.persistentModelID: trip.persistentModelID]"),
        ("snapshots", "let snapshots: [DefaultSnapshot] = []"),
        ("rows", "var rows: [PersistentIdentifier: DefaultSnapshot] = [:]; rows = [:]"),
        ("editors", "var editors: [UUID: String?] = [:]; editors = [:]"),
    ]
}
