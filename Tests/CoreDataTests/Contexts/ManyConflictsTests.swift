import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Saves with many conflicts")
struct ManyConflictsTests {
    private static let count = 3_000

    private func storeUsers(_ stack: Stack, _ emails: some Sequence<String>) throws {
        let context = stack.context()
        try context.performAndWait {
            for email in emails {
                let user = User(context: context)
                user.email = email
                user.age = 1
            }
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases, [Policy.objectTrump, .storeTrump])
    func `thousands of new objects that exist already merge in a time that grows with their number`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind)
        let emails = (0..<Self.count).map { "\($0)@example.org" }
        try storeUsers(stack, emails)
        let context = stack.context(policy)
        try context.performAndWait {
            for email in emails {
                let user = User(context: context)
                user.email = email
                user.age = 2
            }
            let time = try processorTime { try context.save() }
            // If the time grew with the square, then it would be ten times as long.
            expect(time < .seconds(5), "\(time)")
            let users = try context.all(User.self)
            expectEqual(users.count, Self.count)
            expect(users.allSatisfy { $0.age == (policy == .objectTrump ? 2 : 1) })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `each of thousands may take the unique value of the next`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        func email(_ number: Int) -> String { String(format: "%05d", number) }
        try storeUsers(stack, (0..<Self.count).map(email))
        let context = stack.context()
        try context.performAndWait {
            let users = try context.all(User.self).sorted { $0.email < $1.email }
            for (index, user) in users.enumerated() { user.email = email(index + 1) }
            let time = try processorTime { try context.save() }
            expect(time < .seconds(5), "\(time)")
        }
        let check = stack.context()
        try check.performAndWait {
            let emails = try check.all(User.self).map(\.email).sorted()
            expectEqual(emails, (1...Self.count).map(email))
        }
    }

    /// A holder leads to people, who have no inverse relationship and whose names are unique.
    private static func oneWayModel() -> NSManagedObjectModel {
        let person = GuideModel.entity("Person", NSManagedObject.self)
        person.properties = [GuideModel.attribute("name", .string)]
        person.uniquenessConstraints = [["name"]]
        let holder = GuideModel.entity("Holder", NSManagedObject.self)
        holder.properties = [
            GuideModel.relationship("first", .one(.nullifyDeleteRule), person),
            GuideModel.relationship("all", .many(.nullifyDeleteRule), person),
        ]
        let model = NSManagedObjectModel()
        model.entities = [person, holder]
        return model
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `what leads to a new object without an inverse leads to the one that it was merged into`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind, model: Self.oneWayModel())
        func insert(_ entity: String, in context: NSManagedObjectContext) -> NSManagedObject {
            NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        }
        func names(_ holder: NSManagedObject) -> [String] {
            let all = holder.value(forKey: "all") as? Set<NSManagedObject> ?? []
            let first = holder.value(forKey: "first") as? NSManagedObject
            let people = (first.map { [$0] } ?? []) + all
            return people.map { $0.value(forKey: "name") as? String ?? "none" }.sorted()
        }
        let first = stack.context()
        let id = try first.performAndWait {
            let stored = insert("Person", in: first)
            stored.setValue("Ada", forKey: "name")
            try first.save()
            return stored.objectID
        }
        let context = stack.context(policy)
        try context.performAndWait {
            let holder = insert("Holder", in: context)
            // Two of the new people merge into the stored one. The two others merge into one.
            let people = ["Ada", "Ada", "Bob", "Bob"].map { name in
                let person = insert("Person", in: context)
                person.setValue(name, forKey: "name")
                return person
            }
            holder.setValue(people[1], forKey: "first")
            holder.setValue(Set(people), forKey: "all")
            try context.save()
            expectEqual(names(holder), ["Ada", "Ada", "Bob"])
            expectEqual((holder.value(forKey: "first") as? NSManagedObject)?.objectID, id)
        }
        let check = stack.context()
        try check.performAndWait {
            let holder = try require(try check.fetch(NSFetchRequest<NSManagedObject>(entityName: "Holder")).first)
            expectEqual(names(holder), ["Ada", "Ada", "Bob"])
            try expectEqual(check.count(for: NSFetchRequest<NSManagedObject>(entityName: "Person")), 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a row that is gone in one store leaves the row of the same key in another alone`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let other = try stack.coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: stack.folder.appendingPathComponent("other.sqlite")
        )
        let context = stack.context(.storeTrump)
        try context.performAndWait {
            // Each store has its first city and its first venue.
            let cities = ["here", "there"].map { name in
                let city = City(context: context)
                city.name = name
                return city
            }
            let venues = cities.map { _ in Venue(context: context) }
            context.assign(cities[1], to: other)
            context.assign(venues[1], to: other)
            try context.save()
            try stack.delete(cities[0].objectID)
            for (venue, city) in zip(venues, cities) { venue.city = city }
            try context.save()
            expectEqual(venues[0].city, nil)
            expect(venues[1].city === cities[1])
        }
    }
}
