import CoreData

// A model in Swift that uses every feature, written as in an app.

enum Stars: Int16 {
    case none, one, two, three
}

struct Hours: Codable, Equatable {
    var opens: Int
    var closes: Int
}

@ManagedComposite
struct Spot: Equatable {
    var x: Double = 0
    var y: Double = 0
    var stars: Stars = .none
}

@ManagedComposite
struct Address: Equatable {
    var street: String = "Main"
    var number: Int16?
    var spot: Spot?

    var text: String { "\(street) \(number ?? 0)" }

    static let empty = Address()

    init(street: String = "Main", number: Int16? = nil, spot: Spot? = nil) {
        self.street = street
        self.number = number
        self.spot = spot
    }
}

@ManagedObject(
    .abstract,
    .unique("name", "city"),
    .index("byPrice", on: .descending("price"), "name", where: "price > 0"),
    .userInfo(["color": "red"]),
    .configurations("Guide"),
    .hashModifier("2")
)
class Place: NSManagedObject {
    @Managed(.length(2...40), .matches("[A-Za-z ]*")) var name: String
    @Managed(.derived(from: "canonical:(name)")) var sortName: String?
    @Managed(.unique, .preservedOnDeletion) var code: UUID?
    @Managed(.default(12.5), .minimum(0), .maximum(1000), .indexed) var price: Double
    @Managed(.default(Stars.two)) var stars: Stars
    @Managed(.externalStorage) var photo: Data?
    @Managed("opened", .minimum(Date(timeIntervalSinceReferenceDate: 0)), .renamed(from: "since")) var openedOn: Date?
    @Managed(.codable, .default(Hours(opens: 9, closes: 17))) var hours: Hours
    @Managed(.codable) var winterHours: Hours?
    @Managed(.transformable) var tags: [String]
    @Managed var address: Address?
    @Managed(.transient) var scratch: Int32?
    @Managed(.optional, .type(.integer16)) var floor: Int
    @Managed(.inverse(\Town.places), .deleteRule(.deny)) var city: Town?
    @Managed(.inverse("near"), .userInfo(["kind": "peer"])) var near: Set<Place>
}

@ManagedObject(.renamed(from: "Pub"))
final class Bar: Place {
    @Managed(.default(3)) var beers: Int32
}

/// The entity's name differs from the name of the class.
@ManagedObject(.name("City"))
final class Town: NSManagedObject {
    @Managed var name: String
    @Managed(.count(1...9), .deleteRule(.cascade), .required) var places: [Place]
    @Managed(.noInverse) var twin: Town?
    @Managed(.fetched(where: "city == $FETCH_SOURCE AND beers > 2")) var bars: [Bar]
    /// This property is not part of the model.
    var text: String { "\(name), \(places.count)" }
}
