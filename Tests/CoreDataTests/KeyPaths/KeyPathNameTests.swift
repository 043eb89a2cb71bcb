import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

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
        expectEqual(name(\Venue.price), "price")
        expectEqual(name(\Venue.name), "name")
        expectEqual(name(\Venue.favorite), "favorite")
        expectEqual(name(\Venue.tags), "tags")
        expectEqual(name(\Venue.photos), "photos")
        expectEqual(name(\Venue.colour), "colour")
        expectEqual(name(\Venue.note), "note")
    }

    @Test func `a subclass finds what it inherits and what it adds`() {
        expectEqual(name(\Bar.price), "price")
        expectEqual(name(\Bar.beers), "beers")
        expectEqual(name(\Derived.extra), "extra")
        expectEqual(name(\Derived.summary), "descriptionText")
    }

    @Test func `a nested key path leads through relationships`() {
        expectEqual(name(\Venue.city), "city")
        expectEqual(name(\Venue.city?.name), "city.name")
        expectEqual(name(\Venue.city!.name), "city.name")
        expectEqual(name(\Venue.city?.venues), "city.venues")
        expectEqual(name(\User.boss?.boss?.boss?.name), "boss.boss.boss.name")
        expectEqual(name(\Venue.licence!.venue!.city!.population), "licence.venue.city.population")
        expectEqual(name(\PlainVenue.city.name), "city.name")
        expectEqual(name(\PlainVenue.parent?.parent?.level), "parent.parent.level")
    }

    @Test func `a class without a table is recorded`() {
        expectEqual(name(\PlainVenue.name), "name")
        expectEqual(name(\PlainVenue.summary), "descriptionText")
        expectEqual(name(\PlainVenue.open), "open")
        expectEqual(name(\PlainVenue.rating), "rating")
        expectEqual(name(\PlainVenue.seen), "seen")
        expectEqual(name(\PlainVenue.grade), "grade")
        expectEqual(name(\PlainVenue.maybeGrade), "maybeGrade")
        expectEqual(name(\PlainVenue.level), "level")
        expectEqual(name(\PlainVenue.level.rawValue), "level")
        expectEqual(name(\PlainVenue.colour), "colour")
        expectEqual(name(\PlainVenue.children), "children")
        expectEqual(name(\PlainVenue.photos), "photos")
        expectEqual(name(\PlainVenue.loose), "loose")
        expectEqual(name(\PlainVenue.strict), "strict")
        expectEqual(name(\PlainVenue.handWritten), "handWritten")
    }

    @Test func `an object's ID has a name`() {
        expectEqual(name(\Venue.objectID), "objectID")
        expectEqual(name(\Venue.city?.objectID), "city.objectID")
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
        expectEqual(error(\PlainVenue.shown)?.contains("is not optional, while the property \"name\" is"), true)
        expect(error(\PlainVenue.trimmed) != nil)
        expect(error(\PlainVenue.doubled) != nil)
        expectEqual(error(\PlainVenue.both)?.contains("more than one property"), true)
        expectEqual(error(\PlainVenue.constant)?.contains("no attribute or relationship"), true)
        expect(error(\Venue.name?.count) != nil)
        expect(error(\Venue.price.magnitude) != nil)
        expect(error(\Venue.distance.magnitude) != nil)
        expect(error(\Venue.tags.count) != nil)
        expect(error(\Venue.isInserted) != nil)
        expectEqual(error(\Venue.city?.hasChanges)?.contains("Venue"), true)
    }

    @Test func `a key path that is no property stops the program and says so`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = NSExpression(forKeyPath: \Venue.isInserted)
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("from Venue to Bool, has no name in the model"))
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
            for await isRight in group { expect(isRight) }
        }
    }

    @Test func `recording leaves no trace`() throws {
        _ = name(\Venue.city?.venues)

        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            expect(context.registeredObjects.isEmpty)
            expect(context.insertedObjects.isEmpty)
            let venue = Venue(context: context)
            expectEqual(venue.entity.name, "Venue")
            expectEqual(venue.city, nil)
        }
    }
}
