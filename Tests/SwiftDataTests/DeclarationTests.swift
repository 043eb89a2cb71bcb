import Expectations
import Foundation
import StrataLocks
import SwiftData
import Testing

/// Properties of all kinds that stay out of the store, and of all levels of access.
@Model open class Kettle {
    var litres: Double
    private var secret = 1
    fileprivate var label = "l"
    @Transient var heat = 20 { didSet { heats.append(heat) } }
    @Transient var heats: [Int] = []
    @Transient var note: String?
    @Transient private var storedLevel = 0
    /// A property that the class observes by hand.
    var level: Int {
        get {
            access(keyPath: \.level)
            return storedLevel
        }
        set { withMutation(keyPath: \.level) { storedLevel = newValue } }
    }

    init(litres: Double) { self.litres = litres }

    var both: String { "\(secret)\(label)" }
    func change() { (secret, label) = (2, "m") }
}

/// A class with an identifier, whose members can be encoded themselves.
@Model final class Album {
    let id: UUID
    var cover: Photo?
    var photos: [Photo] = []

    init() { id = UUID() }
}

@Model final class Photo: Codable {
    var name: String

    init(_ name: String) { self.name = name }

    convenience init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}

/// A class that has a property with a name of managed objects.
@Model final class Misnamed {
    var objectID = 1

    init() {}
}

@Model final class MisplacedAttribute {
    @Attribute(.unique) var knot: Knot?

    init() {}
}

private typealias Name = String

@Model final class MisplacedRelationship {
    @Relationship private var name: Name = ""

    init() {}
}

@Suite("SwiftData: declarations of classes")
struct DeclarationTests {
    @Test(arguments: Place.allCases)
    func `a class with the text of Apple's expansion in place of the macro is a model`(_ place: Place) throws {
        let schema = Schema([Inlined.self])
        expectEqual(schema.entitiesByName["Inlined"]?.storedProperties.map(\.name), ["name", "count", "mood", "knots"])
        expectEqual(schema.entitiesByName["Inlined"]?.uniquenessConstraints, [["name"]])
        let container = try place.container(schema)
        let context = ModelContext(container)
        let inlined = Inlined(name: "a")
        inlined.knots = [Knot(number: 1)]
        expect(inlined.count == 3 && inlined.mood == .calm && inlined.persistentModelID.isTemporary)
        context.insert(inlined)
        inlined.mood = .glad
        try context.save()
        let other = ModelContext(container)
        let read = try require(
            try other.fetch(FetchDescriptor<Inlined>(predicate: #Predicate { $0.name == "a" && $0.count == 3 })).first
        )
        expect(read.mood == .glad && read.knots.map(\.number) == [1] && !other.hasChanges)
        let calls = Locked<[String]>([])
        withObservationTracking {
            _ = inlined.name
        } onChange: {
            calls.withLock { $0.append("name") }
        }
        withObservationTracking {
            _ = inlined.count
        } onChange: {
            calls.withLock { $0.append("count") }
        }
        read.name = "b"
        read.knots.append(Knot(number: 2))
        try other.save()
        expect(inlined.name == "b" && Set(inlined.knots.map(\.number)) == [1, 2])
        expectEqual(calls.withLock { $0 }, ["name"])
        inlined.count += 1
        expectEqual(calls.withLock { $0 }, ["name", "count"])
        context.delete(inlined)
        try context.save()
        expect(inlined.name == "b" && inlined.modelContext == nil)
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Knot>()), 0)
    }

    @Test(arguments: Place.allCases)
    func `private properties are stored, and transient ones have observers and no column`(_ place: Place) throws {
        let schema = Schema([Kettle.self])
        expectEqual(schema.entitiesByName["Kettle"]?.storedProperties.map(\.name), ["litres", "secret", "label"])
        let container = try place.container(schema)
        let context = ModelContext(container)
        let kettle = Kettle(litres: 1.5)
        context.insert(kettle)
        kettle.change()
        try context.save()
        let descriptor = FetchDescriptor<Kettle>(predicate: #Predicate { $0.label == "m" })
        let read = try require(try ModelContext(container).fetch(descriptor).first)
        expectEqual([read.both, kettle.both], ["2m", "2m"])
        let calls = Locked<[String]>([])
        for name in ["heat", "level"] {
            withObservationTracking {
                if name == "heat" { _ = read.heat } else { _ = read.level }
            } onChange: {
                calls.withLock { $0.append(name) }
            }
        }
        (read.heat, read.note) = (90, "hot")
        read.heat = 100
        expect(read.heats == [90, 100] && read.modelContext?.hasChanges == false)
        expectEqual(calls.withLock { $0 }, [])
        read.level = 4
        expectEqual(calls.withLock { $0 }, ["level"])
        expect(read.level == 4 && kettle.level == 0 && kettle.heat == 20 && kettle.note == nil)
    }

    @Test(arguments: Place.allCases)
    func `a class has its own identifier beside the persistent one, and objects are equal if they are the same`(
        _ place: Place
    ) throws {
        let container = try place.container(Schema([Album.self]))
        let context = ModelContext(container)
        let (album, cover) = (Album(), Photo("cover"))
        var all: Set<Photo> = [cover]
        context.insert(album)
        (album.cover, album.photos) = (cover, [Photo("a"), cover])
        try context.save()
        all.insert(cover)
        expectEqual(all.count, 1)
        expect(cover.id == cover.persistentModelID && all.contains(cover) && album != Album())
        let read = try require(try ModelContext(container).fetch(FetchDescriptor<Album>()).first)
        expect(read != album && read.id == album.id && read.persistentModelID == album.persistentModelID)
        // The members are rows, although their class can be encoded.
        expectEqual(Set(read.photos.map(\.name)), ["a", "cover"])
        expect(read.photos.contains { $0 === read.cover })
        expectEqual(try context.fetchCount(FetchDescriptor<Photo>()), 2)
        expectEqual(
            String(
                decoding: try JSONEncoder().encode(read.photos.map(\.self).sorted { $0.name < $1.name }),
                as: UTF8.self
            ),
            #"["a","cover"]"#
        )
    }

    @Test func `a property with a name of managed objects stops the program, with its name`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = try Place.memory.container(Schema([Misnamed.self]))
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("Misnamed") && text.contains("objectID"), "\(text)")
    }

    @Test func `options of an attribute at a relationship stop the program, with the property`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Schema([MisplacedAttribute.self])
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("MisplacedAttribute.knot is no attribute"), "\(text)")
    }

    @Test func `a relationship to a type that is no model stops the program, with the property`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Schema([MisplacedRelationship.self])
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("MisplacedRelationship.name is no relationship"), "\(text)")
    }
}
