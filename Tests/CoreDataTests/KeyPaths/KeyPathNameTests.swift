import TestSupport
import Testing

@testable import CoreData

/// A class without a table, whose properties are of the kinds that hand-written classes have.
class PlainVenue: NSManagedObject {
    enum Grade: String, Codable { case first, second }
    enum Level: Int16, CaseIterable, Codable { case low = 3, high = 7 }

    @Managed var name: String?
    @Managed("descriptionText") var summary: String
    @Managed var price: Int16
    @Managed var open: Bool
    @Managed var rating: Decimal?
    @Managed var seen: Date?
    @Managed var grade: Grade
    @Managed var maybeGrade: Grade?
    @Managed var level: Level
    @Managed var colour: NSArray?
    @Managed var parent: PlainVenue?
    @Managed var city: City
    @Managed var children: Set<PlainVenue>
    @Managed var photos: [Photo]
    @Managed var loose: NSSet?
    @Managed var strict: NSOrderedSet

    var shown: String { name ?? "?" }
    var trimmed: String? { name?.isEmpty == true ? "none" : name }
    var doubled: Int16 { price &* 2 }
    var both: String { "\(summary)\(price)" }
    var constant: Int { 3 }
    var handWritten: String? {
        get { value(forKey: "handWritten") as? String }
        set { setValue(newValue, forKey: "handWritten") }
    }
}

private final class Derived: PlainVenue {
    @Managed var extra: Int64
}

@Suite("Names of Swift key paths")
struct KeyPathNameTests {
    private func name<Root: NSManagedObject, Value>(_ keyPath: KeyPath<Root, Value>) -> String {
        NSExpression(forKeyPath: keyPath).keyPath
    }

    @Test func `a class with a table is asked by name`() {
        #expect(name(\Venue.price) == "price")
        #expect(name(\Venue.name) == "name")
        #expect(name(\Venue.favorite) == "favorite")
        #expect(name(\Venue.tags) == "tags")
        #expect(name(\Venue.photos) == "photos")
        #expect(name(\Venue.colour) == "colour")
        #expect(name(\Venue.note) == "note")
    }

    @Test func `a subclass finds what it inherits and what it adds`() {
        #expect(name(\Bar.price) == "price")
        #expect(name(\Bar.beers) == "beers")
        #expect(name(\Derived.extra) == "extra")
        #expect(name(\Derived.summary) == "descriptionText")
    }

    @Test func `a nested key path leads through relationships`() {
        #expect(name(\Venue.city) == "city")
        #expect(name(\Venue.city?.name) == "city.name")
        #expect(name(\Venue.city!.name) == "city.name")
        #expect(name(\Venue.city?.venues) == "city.venues")
        #expect(name(\User.boss?.boss?.boss?.name) == "boss.boss.boss.name")
        #expect(name(\Venue.licence!.venue!.city!.population) == "licence.venue.city.population")
        #expect(name(\PlainVenue.city.name) == "city.name")
        #expect(name(\PlainVenue.parent?.parent?.level) == "parent.parent.level")
    }

    @Test func `a class without a table is recorded`() {
        #expect(name(\PlainVenue.name) == "name")
        #expect(name(\PlainVenue.summary) == "descriptionText")
        #expect(name(\PlainVenue.open) == "open")
        #expect(name(\PlainVenue.rating) == "rating")
        #expect(name(\PlainVenue.seen) == "seen")
        #expect(name(\PlainVenue.grade) == "grade")
        #expect(name(\PlainVenue.maybeGrade) == "maybeGrade")
        #expect(name(\PlainVenue.level) == "level")
        #expect(name(\PlainVenue.level.rawValue) == "level")
        #expect(name(\PlainVenue.colour) == "colour")
        #expect(name(\PlainVenue.children) == "children")
        #expect(name(\PlainVenue.photos) == "photos")
        #expect(name(\PlainVenue.loose) == "loose")
        #expect(name(\PlainVenue.strict) == "strict")
        #expect(name(\PlainVenue.handWritten) == "handWritten")
    }

    @Test func `an object's ID has a name`() {
        #expect(name(\Venue.objectID) == "objectID")
        #expect(name(\Venue.city?.objectID) == "city.objectID")
    }

    @Test func `what is no property has none`() {
        func error<Root: NSManagedObject, Value>(_ keyPath: KeyPath<Root, Value>) -> String? {
            do {
                _ = try KeyPathNames.name(of: keyPath, in: Root.self)
                return nil
            } catch {
                return "\(error)"
            }
        }
        #expect(error(\PlainVenue.shown)?.contains("is not optional, while the property \"name\" is") == true)
        #expect(error(\PlainVenue.trimmed) != nil)
        #expect(error(\PlainVenue.doubled) != nil)
        #expect(error(\PlainVenue.both)?.contains("more than one property") == true)
        #expect(error(\PlainVenue.constant)?.contains("no attribute or relationship") == true)
        #expect(error(\Venue.name?.count) != nil)
        #expect(error(\Venue.price.magnitude) != nil)
        #expect(error(\Venue.distance.magnitude) != nil)
        #expect(error(\Venue.tags.count) != nil)
        #expect(error(\Venue.isInserted) != nil)
        #expect(error(\Venue.city?.hasChanges)?.contains("Venue") == true)
    }

    @Test func `a key path that is no property stops the program and says so`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = NSExpression(forKeyPath: \Venue.isInserted)
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(message.contains("from Venue to Bool, has no name in the model"))
    }

    @Test func `names are found from many threads at once`() async {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<32 {
                group.addTask {
                    (0..<50).allSatisfy { _ in
                        NSExpression(forKeyPath: \User.boss?.name).keyPath == "boss.name"
                            && NSExpression(forKeyPath: \Venue.price).keyPath == "price"
                    }
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }

    @Test func `recording leaves no trace`() throws {
        _ = name(\Venue.city?.venues)

        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            #expect(context.registeredObjects.isEmpty)
            #expect(context.insertedObjects.isEmpty)
            let venue = Venue(context: context)
            #expect(venue.entity.name == "Venue")
            #expect(venue.city == nil)
        }
    }
}
