// swift-format-ignore-file
import Foundation
import SwiftData

// Classes in the manner of samples, books and apps for Apple's platforms, with the spellings that people use there.

// MARK: - Trips, with subclasses and groups of unique and indexed properties

enum Journeys {
    @Model class Journey {
        #Index<Journey>([\.name], [\.startDate], [\.name, \.startDate, \.endDate])
        #Unique<Journey>([\.name, \.startDate, \.endDate])

        @Attribute(.preserveValueOnDeletion)
        var name: String
        var destination: String
        @Attribute(.preserveValueOnDeletion) var startDate: Date
        var endDate: Date

        @Relationship(deleteRule: .cascade, inverse: \Wish.journey)
        var wishes: [Wish] = [Wish]()

        @Relationship(deleteRule: .cascade, inverse: \Lodging.journey)
        var lodging: Lodging?

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture) {
            self.name = name
            self.destination = destination
            self.startDate = startDate
            self.endDate = endDate
        }
    }

    @available(iOS 26, macOS 26, *)
    @Model final class BusinessJourney: Journey {
        var perdiem: Double = 0.0

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture, perdiem: Double) {
            self.perdiem = perdiem
            super.init(name: name, destination: destination, startDate: startDate, endDate: endDate)
        }
    }

    @available(iOS 26, macOS 26, *)
    @Model class PersonalJourney: Journey {
        enum Reason: String, CaseIterable, Codable, Identifiable {
            case family, reunion, wellness, unknown
            var id: Self { self }
        }

        var reason: Reason

        init(name: String, destination: String, reason: Reason) {
            self.reason = reason
            super.init(name: name, destination: destination)
        }
    }

    @Model class Wish {
        var title: String
        var details: String
        var hasReservation: Bool
        var isInPlan: Bool
        var journey: Journey?

        init(title: String, details: String, hasReservation: Bool, isInPlan: Bool) {
            self.title = title
            self.details = details
            self.hasReservation = hasReservation
            self.isInPlan = isInPlan
        }
    }

    @Model class Lodging {
        var address: String
        var placeName: String
        var isConfirmed: Bool = false
        var journey: Journey?

        init(address: String, placeName: String, isConfirmed: Bool) {
            self.address = address
            self.placeName = placeName
            self.isConfirmed = isConfirmed
        }
    }
}

extension Journeys.Journey {
    var displayName: String { name.isEmpty ? "Untitled Trip" : name }
    static var preview: Journeys.Journey { Journeys.Journey(name: "Trip", destination: "Destination") }
    convenience init(copying other: Journeys.Journey) {
        self.init(name: other.name, destination: other.destination, startDate: other.startDate, endDate: other.endDate)
    }
}

extension Journeys.Journey: CustomStringConvertible {
    var description: String { "\(name) to \(destination)" }
}

// MARK: - Birds, public and with structures of colours

public struct ColorData: Codable, Equatable, Sendable {
    public var red: Double
    public var green: Double
    public var blue: Double
    public var opacity: Double = 1
    public init(red: Double, green: Double, blue: Double) {
        (self.red, self.green, self.blue) = (red, green, blue)
    }
}

public struct BirdPalette: Codable, Equatable, Sendable {
    public var head: ColorData
    public var belly: ColorData
}

@Model public class Fowl {
    @Attribute(.unique) public var id: UUID
    public private(set) var creationDate: Date
    public var species: FowlSpecies?
    public var favoriteFood: Feed?
    public var dislikedFoods: [Feed]? = []
    public var colors: BirdPalette
    public var tag: String?
    public var timeIntervals: [TimeInterval] = []
    @Transient public var isHighlighted: Bool = false

    public init(species: FowlSpecies? = nil, colors: BirdPalette, tag: String? = nil) {
        self.id = UUID()
        self.creationDate = .now
        self.species = species
        self.colors = colors
        self.tag = tag
    }
}

@Model public final class FowlSpecies: Comparable {
    @Attribute(.unique) public internal(set) var id: String
    public var naturalScale: Double
    public var isEarlyAccess: Bool
    @Relationship(deleteRule: .cascade, inverse: \Fowl.species) public var fowls: [Fowl]

    public var partCount: Int { fowls.count }

    public init(id: ID, naturalScale: Double = 1, isEarlyAccess: Bool = false) {
        self.id = id
        self.naturalScale = naturalScale
        self.isEarlyAccess = isEarlyAccess
        fowls = []
    }

    public static func < (lhs: FowlSpecies, rhs: FowlSpecies) -> Bool { lhs.id < rhs.id }
}

@Model public class Feed {
    @Attribute(.unique) public var id: String
    public var name: String
    public var finishedDuration: TimeInterval
    @Relationship(inverse: \Fowl.favoriteFood) var admirers: [Fowl] = []
    @Relationship(inverse: \Fowl.dislikedFoods) var critics: [Fowl] = []

    public init(id: String, name: String, finishedDuration: TimeInterval) {
        self.id = id
        self.name = name
        self.finishedDuration = finishedDuration
    }
}

// MARK: - Animals: types that the compiler infers, and sample data

@Model
final class AnimalGroup {
    @Attribute(.unique) var name: String
    // `.cascade` tells the framework to delete all animals when the group goes.
    @Relationship(deleteRule: .cascade, inverse: \Animal.group)
    var animals = [Animal]()

    init(name: String) {
        self.name = name
    }
}

extension AnimalGroup {
    static func insertSampleData(modelContext: ModelContext) {
        let mammal = AnimalGroup(name: "Mammal")
        let fish = AnimalGroup(name: "Fish")
        modelContext.insert(mammal)
        modelContext.insert(fish)
        let dog = Animal(name: "Dog", diet: .carnivorous)
        modelContext.insert(dog)
        dog.group = mammal
        let whale = Animal(name: "Whale", diet: .carnivorous)
        modelContext.insert(whale)
        whale.group = mammal
        fish.animals.append(Animal(name: "Carp", diet: .omnivorous))
    }

    static func reloadSampleData(modelContext: ModelContext) {
        do {
            try modelContext.delete(model: AnimalGroup.self)
            insertSampleData(modelContext: modelContext)
        } catch {
            fatalError(error.localizedDescription)
        }
    }
}

@Model
final class Animal {
    var name: String
    var diet: Diet
    var group: AnimalGroup?

    init(name: String, diet: Diet) {
        self.name = name
        self.diet = diet
    }
}

extension Animal {
    enum Diet: String, CaseIterable, Codable {
        case herbivorous = "Herbivore"
        case carnivorous = "Carnivore"
        case omnivorous = "Omnivore"
    }
}

// MARK: - Quakes: made of JSON, with predicates and totals as static members

@Model
class Tremor {
    // A unique identifier associated with each event.
    @Attribute(.unique) var code: String
    var magnitude: Double
    var time: Date
    var location: Location

    /// Creates a new event from the specified values.
    init(code: String, magnitude: Double, time: Date, name: String, longitude: Double, latitude: Double) {
        self.code = code
        self.magnitude = magnitude
        self.time = time
        self.location = Location(name: name, longitude: longitude, latitude: latitude)
    }

    struct Location: Codable {
        var name: String
        var longitude: Double
        var latitude: Double
    }
}

extension Tremor {
    static func predicate(searchText: String, since: Date) -> Predicate<Tremor> {
        let end = since.addingTimeInterval(3600)
        return #Predicate<Tremor> { tremor in
            (searchText.isEmpty || tremor.location.name.localizedStandardContains(searchText))
                && (tremor.time > since && tremor.time < end)
        }
    }

    static func total(modelContext: ModelContext) -> Int {
        (try? modelContext.fetchCount(FetchDescriptor<Tremor>())) ?? 0
    }
}

struct TremorFeed: Decodable {
    struct Feature: Decodable {
        struct Properties: Decodable {
            let mag: Double
            let place: String
            let code: String
        }
        let properties: Properties
    }
    let features: [Feature]
}

extension Tremor {
    convenience init(from feature: TremorFeed.Feature) {
        let properties = feature.properties
        self.init(
            code: properties.code, magnitude: properties.mag, time: .distantPast, name: properties.place,
            longitude: 0, latitude: 0)
    }
}

// MARK: - Recipes: numbers as raw values, data outside of the row, older names

@Model
final class Dish {
    enum Meal: Int, CaseIterable, Codable { case breakfast, lunch, dinner }

    @Attribute(.unique) let id: UUID
    @Attribute(originalName: "dish_title") var title: String
    var meal: Meal
    var steps: [String]
    var rating: Float?
    @Attribute(.externalStorage) var image: Data?
    var link: URL?
    private(set) var createdAt = Date.now
    var modifiedAt: Date = Date.now
    @Relationship(deleteRule: .cascade, inverse: \Ingredient.dish) var ingredients: [Ingredient]
    @Relationship(deleteRule: .nullify, inverse: \DishLabel.dishes) var labels: [DishLabel] = []
    @Transient private var cache: [String: Any] = [:]
    @Transient lazy var upper: String = title.uppercased()
    lazy var lower: String = title.lowercased()

    var mealText: String {
        get { "\(meal)" }
        set { if let found = Meal.allCases.first(where: { "\($0)" == newValue }) { meal = found } }
    }

    init(title: String, meal: Meal = .dinner, steps: [String] = [], ingredients: [Ingredient] = []) {
        self.id = UUID()
        self.title = title
        self.meal = meal
        self.steps = steps
        self.ingredients = ingredients
    }
}

@Model final class Ingredient {
    var name: String
    var amount: Measurement<UnitMass>?
    var dish: Dish?
    init(_ name: String) { self.name = name }
}

@Model final class DishLabel: Hashable, Identifiable {
    var id = UUID()
    @Attribute(.unique) var name: String
    var dishes: [Dish]?
    var colorComponents: ColorData = ColorData(red: 1, green: 0, blue: 0)
    init(name: String) { self.name = name }
}

// MARK: - A class that is coded by hand, as answers of a server are

@Model
class Volume: Codable {
    enum CodingKeys: CodingKey {
        case title, isbn, authors
    }

    @Attribute(.unique) var isbn: String
    var title: String
    var authors: [String]
    var status: Status = Status.onShelf
    private var statusChanges: Int = 0
    static let limit = 3

    enum Status: Int, Codable, Identifiable, CaseIterable {
        case onShelf, inProgress, completed
        var id: Self { self }
        var descr: String {
            switch self {
            case .onShelf: "On Shelf"
            case .inProgress: "In Progress"
            case .completed: "Completed"
            }
        }
    }

    init(isbn: String, title: String, authors: [String] = []) {
        self.isbn = isbn
        self.title = title
        self.authors = authors
    }

    required init(from decoder: Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        title = try container.decode(String.self, forKey: .title)
        isbn = try container.decode(String.self, forKey: .isbn)
        authors = try container.decode([String].self, forKey: .authors)
    }

    func encode(to encoder: Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(title, forKey: .title)
        try container.encode(isbn, forKey: .isbn)
        try container.encode(authors, forKey: .authors)
    }

    func advance() {
        statusChanges += 1
        status = Status(rawValue: status.rawValue + 1) ?? .completed
    }

    var changes: Int { statusChanges }
}

// MARK: - Trees, raw values behind computed properties, protocols, failing initialisers

protocol Titled: AnyObject { var title: String { get set } }

@Model
final class Branch: Titled {
    var title: String
    var order: Int = 0
    fileprivate var kindRaw: String = "leaf"
    var owner: Branch!
    @Relationship(deleteRule: .cascade, inverse: \Branch.parent) var children: [Branch]?
    var parent: Branch?
    var createdBy: Optional<String> = nil
    var marks: Set<String> = []
    var counts: Dictionary<String, Int> = [:]
    var scores: Array<Double> = Array()
    var swiftText: Swift.String = ""
    var moment: Foundation.Date? = nil

    enum Kind: String { case leaf, twig }
    var kind: Kind {
        get { Kind(rawValue: kindRaw) ?? .leaf }
        set { kindRaw = newValue.rawValue }
    }

    @Transient
    var sortedChildren: [Branch] { (children ?? []).sorted { $0.order < $1.order } }

    init?(title: String, children: [Branch]? = nil) {
        guard !title.isEmpty else { return nil }
        self.title = title
        self.children = children
    }

    convenience init(checked title: String) throws {
        struct Empty: Error {}
        guard !title.isEmpty else { throw Empty() }
        self.init(title: title)!
    }

    deinit { Branch.ended.add() }

    final class Count: @unchecked Sendable { private var count = 0; func add() { count += 1 } }
    static let ended = Count()
    subscript(index: Int) -> Branch? { sortedChildren.indices.contains(index) ? sortedChildren[index] : nil }
}

// MARK: - Conditions, comments, several declarations in a line, attributes of the compiler

@Model
final class Gadget {
    // MARK: Stored
    /// The name, with a brace { and a "quote".
    var name: String = "unnamed" // trailing comment }
    @available(*, deprecated, message: "use name") var label: String { name }
    var width = 1.0; var height = 2.0
    #if DEBUG
    var debugNote: String? = nil
    #endif
    #if os(Linux)
    var platform = "Linux"
    #else
    var platform = "another one"
    #endif
    var isOn: Bool = true
    var limits: ClosedRange<Int> = 0...10
    var spans: Range<Double> = 0 ..< 1
    var size: CGSize = .zero
    var ratio: CGFloat = 0.5
    var zoneInfo: TimeZone = TimeZone(identifier: "UTC")!
    var price: Decimal = 9.99
    var when: DateComponents = DateComponents(year: 2024, month: 2)
    var state: State = .idle
    var history: [State] = []
    var tuple: Pair = Pair(1, 2)
    @Attribute(.ephemeral) var isSelected: Bool = false
    @Attribute(.spotlight) var searchable: String = ""
    @Attribute(.allowsCloudEncryption) var secret: String = ""
    @Attribute(.unique, originalName: "nr", hashModifier: "v2") var number: Int
    let serial: String
    let made = Date(timeIntervalSinceReferenceDate: 0)

    enum State: Codable, Equatable { case idle, running(Int), failed(code: Int, reason: String?) }
    struct Pair: Codable, Equatable {
        var first: Int, second: Int
        init(_ first: Int, _ second: Int) { (self.first, self.second) = (first, second) }
    }

    init(number: Int, serial: String) {
        self.number = number
        self.serial = serial
    }
}

// MARK: - Versions of a schema, with the class that is used by another name

enum NotesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model final class Note {
        var text: String
        init(text: String) { self.text = text }
    }
}

enum NotesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self, Folder.self] }

    @Model final class Note {
        @Attribute(originalName: "text") var body: String
        var isPinned: Bool = false
        var folder: Folder?
        init(body: String) { self.body = body }
    }

    @Model final class Folder {
        var title: String
        @Relationship(deleteRule: .nullify, inverse: \Note.folder) var notes: [Note] = []
        init(title: String) { self.title = title }
    }
}

enum NotesPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
    static var stages: [MigrationStage] { [v1ToV2] }

    static let v1ToV2 = MigrationStage.custom(
        fromVersion: NotesV1.self,
        toVersion: NotesV2.self,
        willMigrate: { context in
            for note in try context.fetch(FetchDescriptor<NotesV1.Note>()) where note.text.isEmpty { context.delete(note) }
            try context.save()
        },
        didMigrate: { context in
            let folder = NotesV2.Folder(title: "All")
            context.insert(folder)
            for note in try context.fetch(FetchDescriptor<NotesV2.Note>()) { note.folder = folder }
            try context.save()
        }
    )
}

typealias AppNote = NotesV2.Note

@ModelActor
actor TremorStore {
    private(set) var imported = 0

    func importFeed(_ data: Data) throws -> Int {
        let feed = try JSONDecoder().decode(TremorFeed.self, from: data)
        try modelContext.transaction {
            for feature in feed.features { modelContext.insert(Tremor(from: feature)) }
        }
        imported += feed.features.count
        return imported
    }

    func codes() throws -> [String] {
        try modelContext.fetch(FetchDescriptor<Tremor>(sortBy: [SortDescriptor(\.magnitude, order: .reverse)])).map(\.code)
    }
}
