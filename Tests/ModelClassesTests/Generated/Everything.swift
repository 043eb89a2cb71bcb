import CoreData

enum Everything: ManagedModelVersion {
    static let versionIdentifier = "3.1"

    static var entities: [NSManagedObject.Type] {
        [Bar.self, City.self, Place.self]
    }

    @ManagedObject(.renamed(from: "Pub"))
    final class Bar: Place {
        @Managed(.default(0)) var beers: Int32
    }

    @ManagedObject(.configurations("Cloud"))
    final class City: NSManagedObject {
        @Managed var name: String
        @Managed var population: Int64?
        @Managed(.inverse(\Place.city), .deleteRule(.cascade), .count(1...9)) var places: [Place]
        @Managed(.noInverse, .deleteRule(.noAction), .required) var twin: City?
        @Managed(.fetched(where: "city == $FETCH_SOURCE AND beers > 3")) var bars: [Bar]
    }

    @ManagedObject(
        .abstract,
        .unique("name", "city"),
        .index("byName", on: "name", .descending("i32")),
        .hashModifier("2"),
        .userInfo(["color": "red"])
    )
    class Place: NSManagedObject {
        @Managed var address: Address?
        @Managed(.default(-3), .minimum(-5), .maximum(5)) var i16: Int16
        @Managed(.renamed(from: "former"), .default(70000)) var i32: Int32?
        @Managed(.hashModifier("x"), .default(5_000_000_000)) var i64: Int64?
        @Managed(.default(true)) var isOpen: Bool
        @Managed(
            .userInfo(["label": "Name & title"]),
            .default("a <b> & \"c\"\n"),
            .length(2...40),
            .matches("[a-z \"]*")
        )
        var name: String
        @Managed(.derived(from: "canonical:(name)")) var nameLength: String?
        @Managed(
            .default(Date(timeIntervalSinceReferenceDate: 1234.5)),
            .minimum(Date(timeIntervalSinceReferenceDate: -10.0)),
            .maximum(Date(timeIntervalSinceReferenceDate: 1000000.0))
        )
        var opened: Date?
        @Managed(.externalStorage) var photo: Data?
        @Managed(.default(Decimal(string: "12.5")!), .minimum(Decimal(string: "0.5")!)) var price: Decimal?
        @Managed(.default(0.1)) var ratio: Float?
        @Managed(.transient) var scratch: Any?
        @Managed(.default(0.1)) var share: Double?
        @Managed(.default(URL(string: "https://example.org/a?b=c&d")!)) var site: URL?
        @Managed(.transformable(by: "TagTransformer")) var tags: NSObject?
        @Managed(
            .unique,
            .preservedOnDeletion,
            .default(UUID(uuidString: "B7E57D1C-55D1-4C3A-9B0E-0A2F3D1C5E77")!)
        )
        var token: UUID?
        @Managed(.deleteRule(.deny)) var city: City?
        @Managed(.inverse("near")) var near: Set<Place>
    }

    @ManagedComposite
    struct Address {
        var street: String = "Main"
        var number: Int16?
        var point: Point?
    }

    @ManagedComposite
    struct Point {
        var x: Double?
        var y: Double?
    }

    /// The model with its named queries.
    static func model() throws -> NSManagedObjectModel {
        let model = try NSManagedObjectModel(version: Self.self)
        let request1 = NSFetchRequest<NSFetchRequestResult>(entityName: "Bar")
        request1.entity = model.entitiesByName["Bar"]
        request1.predicate = NSPredicate(format: "city.name == $NAME")
        request1.fetchLimit = 7
        model.setFetchRequestTemplate(request1, forName: "barsIn")
        return model
    }
}
