import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

// All tests are about CS-96.
@Suite("Relationships and their inverses")
struct RelationshipTests {
    @Test(arguments: StoreKind.allCases)
    func `one-to-many: both sides change at once, whichever is set (CS-96)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let (lisbon, porto) = (City(context: context), City(context: context))
            (lisbon.name, porto.name) = ("Lisbon", "Porto")
            let (one, two) = (Venue(context: context), Venue(context: context))
            one.city = lisbon
            expectEqual(lisbon.venues, [one])
            lisbon.venues = [one, two]
            expect(two.city === lisbon)
            porto.venues = [two]
            expect(two.city === porto)
            expectEqual(lisbon.venues, [one])
            porto.venues.insert(one)
            expect(one.city === porto)
            expect(lisbon.venues.isEmpty)
            one.city = nil
            expectEqual(porto.venues, [two])
            try context.save()
        }
        try stack.inContext { context throws in
            let cities = try context.all(City.self, sortedBy: "name")
            expectEqual(cities.map { $0.venues.count }, [0, 1])
            let venue = try require(cities[1].venues.first)
            expect(venue.city === cities[1])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a member taken from an owner that is not loaded leaves that owner`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.inContext { context throws in
            let (lisbon, porto) = (City(context: context), City(context: context))
            (lisbon.name, porto.name) = ("Lisbon", "Porto")
            lisbon.venues = Set((0..<3).map { _ in Venue(context: context) })
            try context.save()
            return (lisbon.objectID, porto.objectID)
        }
        try stack.inContext { context throws in
            let venue = try require(try context.all(Venue.self).first)
            let porto = try context.object(City.self, ids.1)
            porto.add(venue, toRelationshipNamed: "venues")
            let lisbon = try context.object(City.self, ids.0)
            expect(lisbon.hasFault(forRelationshipNamed: "venues"))
            expect(porto.hasFault(forRelationshipNamed: "venues"))
            expect(venue.city === porto)
            expectEqual(lisbon.venues.count, 2)
            expect(!lisbon.venues.contains(venue))
            expectEqual(porto.venues, [venue])
            try context.save()
            expectEqual(lisbon.venues.count, 2)
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(City.self, ids.0).venues.count, 2)
            try expectEqual(context.object(City.self, ids.1).venues.count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `one-to-one: setting one side frees the object that had it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.inContext { context throws in
            let (one, two) = (Venue(context: context), Venue(context: context))
            let (first, second) = (Licence(context: context), Licence(context: context))
            one.licence = first
            two.licence = second
            expect(first.venue === one && second.venue === two)
            try context.save()
            return [one, two, first, second].map(\.objectID)
        }
        try stack.inContext { context throws in
            let (one, two) = (try context.object(Venue.self, ids[0]), try context.object(Venue.self, ids[1]))
            let (first, second) = (try context.object(Licence.self, ids[2]), try context.object(Licence.self, ids[3]))
            one.licence = second
            expect(second.venue === one)
            expectEqual(two.licence, nil)
            expectEqual(first.venue, nil)
            first.venue = two
            expect(two.licence === first)
            second.venue = two
            expectEqual(one.licence, nil)
            expectEqual(first.venue, nil)
            expect(two.licence === second)
            try context.save()
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Venue.self, ids[0]).licence, nil)
            try expect(context.object(Venue.self, ids[1]).licence?.objectID === ids[3])
            try expectEqual(context.object(Licence.self, ids[2]).venue, nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `many-to-many: both sides change at once and are stored once`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.inContext { context throws in
            let venues = (0..<3).map { _ in Venue(context: context) }
            let tags = (0..<2).map { _ in Tag(context: context) }
            venues[0].tags = Set(tags)
            tags[1].venues.insert(venues[1])
            expectEqual(tags[0].venues, [venues[0]])
            expectEqual(tags[1].venues, [venues[0], venues[1]])
            expectEqual(venues[1].tags, [tags[1]])
            try context.save()
            return (venues.map(\.objectID), tags.map(\.objectID))
        }
        try stack.inContext { context throws in
            let tag = try context.object(Tag.self, ids.1[1])
            let (first, third) = (try context.object(Venue.self, ids.0[0]), try context.object(Venue.self, ids.0[2]))
            // Neither side is loaded.
            tag.remove(first, fromRelationshipNamed: "venues")
            tag.add(third, toRelationshipNamed: "venues")
            expectEqual(first.tags.map(\.objectID), [ids.1[0]])
            expectEqual(third.tags, [tag])
            try context.save()
        }
        try stack.inContext { context throws in
            let counts = try ids.0.map { try context.object(Venue.self, $0).tags.count }
            expectEqual(counts, [1, 1, 1])
            let tag = try context.object(Tag.self, ids.1[1])
            expectEqual(Set(tag.venues.map(\.objectID)), [ids.0[1], ids.0[2]])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `reflexive relationships whose inverse is themselves`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context throws in
            let people = ["a", "b", "c", "d"].map { Person($0, context) }
            let (a, b, c, d) = (people[0], people[1], people[2], people[3])
            a.spouse = b
            c.spouse = d
            expect(b.spouse === a && d.spouse === c)
            b.spouse = c
            expect(a.spouse == nil && d.spouse == nil)
            expect(c.spouse === b && b.spouse === c)
            a.spouse = a
            expect(a.spouse === a)
            a.friends = [b, c]
            expect(b.friends == [a] && c.friends == [a])
            c.friends.remove(a)
            expectEqual(a.friends, [b])
            d.friends = [d, a]
            expectEqual(a.friends, [b, d])
            expectEqual(d.friends, [a, d])
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people.map { $0.spouse?.name }, ["a", "c", "b", nil])
            expectEqual(people.map { $0.friends.compactMap(\.name).sorted() }, [["b", "d"], ["a"], [], ["a", "d"]])
            people[0].friends.remove(people[3])
            people[1].friends.insert(people[2])
            people[3].friends.remove(people[3])
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people.map { $0.friends.compactMap(\.name).sorted() }, [["b"], ["a", "c"], ["b"], []])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `ordered one-to-many keeps its order through changes on either side`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let id = try stack.inContext { context throws in
            let mother = Person("m", context)
            let children = ["a", "b", "c"].map { Person($0, context) }
            mother.children = [children[2], children[0], children[1]]
            expect(children.allSatisfy { $0.mother === mother })
            try context.save()
            return mother.objectID
        }
        try stack.inContext { context throws in
            let mother = try context.object(Person.self, id)
            expectEqual(mother.children.map(\.name), ["c", "a", "b"])
            mother.children.swapAt(0, 2)
            expect(mother.hasPersistentChangedValues)
            try context.save()
            expectEqual(mother.children.map(\.name), ["b", "a", "c"])
        }
        try stack.inContext { context throws in
            // The owner is a fault, and so is its relationship.
            let child = Person("d", context)
            child.mother = try context.object(Person.self, id)
            try context.save()
        }
        try stack.inContext { context throws in
            let mother = try context.object(Person.self, id)
            expectEqual(mother.children.map(\.name), ["b", "a", "c", "d"])
            mother.children[1].mother = nil
            mother.children.insert(Person("e", context), at: 0)
            expectEqual(mother.children.map(\.name), ["e", "b", "c", "d"])
            try context.save()
        }
        try stack.inContext { context throws in
            try expectEqual(context.object(Person.self, id).children.map(\.name), ["e", "b", "c", "d"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `ordered many-to-many keeps each owner's order`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context throws in
            let people = ["a", "b", "c", "d"].map { Person($0, context) }
            people[0].idols = [people[3], people[1], people[2]]
            people[1].idols = [people[2], people[3]]
            expectEqual(people[3].followers, [people[0], people[1]])
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people[0].idols.map(\.name), ["d", "b", "c"])
            expectEqual(people[1].idols.map(\.name), ["c", "d"])
            people[0].idols = [people[2], people[0], people[3]]
            people[3].followers.remove(people[1])
            expectEqual(people[1].idols.map(\.name), ["c"])
            expect(people[1].followers.isEmpty)
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people[0].idols.map(\.name), ["c", "a", "d"])
            expectEqual(people[1].idols.map(\.name), ["c"])
            expectEqual(people[0].followers.map(\.name), ["a"])
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `members that come by their inverse to an order that is not loaded stay in the order of their coming`(
        _ kind: StoreKind,
        _ looks: Bool
    ) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context throws in
            let people = ["a", "b", "c", "d", "m"].map { Person($0, context) }
            people[4].children = [people[1]]
            people[4].idols = [people[1]]
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            let mother = people[4]
            let news = [people[3], Person("e", context), people[0], Person("f", context), people[2]]
            for person in news.reversed() {
                person.mother = mother
                person.followers.insert(mother)
                context.processPendingChanges()
            }
            // A member that leaves and comes back is the last one.
            news[4].mother = nil
            news[4].mother = mother
            if looks { expectEqual(mother.children.map(\.name), ["b", "f", "a", "e", "d", "c"]) }
            try context.save()
            expectEqual(mother.children.map(\.name), ["b", "f", "a", "e", "d", "c"])
            expectEqual(mother.idols.map(\.name), ["b", "c", "f", "a", "e", "d"])
        }
        try stack.inContext { context throws in
            let mother = try context.all(Person.self, sortedBy: "name")[6]
            expectEqual(mother.children.map(\.name), ["b", "f", "a", "e", "d", "c"])
            expectEqual(mother.idols.map(\.name), ["b", "c", "f", "a", "e", "d"])
        }
    }

    /// Stores a person with rivals.
    ///
    /// The relationship has no inverse.
    private func storeOwner(_ stack: Stack, rivals: [String]) throws -> NSManagedObjectID {
        try stack.inContext { context throws in
            let owner = Person("a", context)
            owner.rivals = Set(rivals.map { Person($0, context) })
            try context.save()
            return owner.objectID
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `what is deleted before it was ever saved leaves relationships without an inverse`(
        _ kind: StoreKind,
        _ isInTree: Bool
    ) throws {
        let stack = try Stack.objects(kind)
        let id = try storeOwner(stack, rivals: ["b"])
        let root = stack.context("root")
        let context = isInTree ? root.child("child") : root
        try context.performAndWait {
            let owner = try context.object(Person.self, id)
            expectEqual(owner.rivals.map(\.name), ["b"])
            let draft = Person("c", context)
            owner.rivals.insert(draft)
            context.processPendingChanges()
            context.delete(draft)
            try context.save()
            expectEqual(owner.rivals.map(\.name), ["b"])
            owner.rivals.insert(Person("d", context))
            try context.save()
            expectEqual(owner.rivals.compactMap(\.name).sorted(), ["b", "d"])
        }
        try root.performAndWait {
            try expectEqual(root.object(Person.self, id).rivals.compactMap(\.name).sorted(), ["b", "d"])
            try root.save()
        }
        let stored = try stack.inContext { try $0.object(Person.self, id).rivals.compactMap(\.name).sorted() }
        expectEqual(stored, ["b", "d"])
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `what has a permanent ID and is deleted before it was ever saved leaves relationships without an inverse`(
        _ kind: StoreKind,
        _ isInTree: Bool
    ) throws {
        let stack = try Stack.objects(kind)
        let id = try storeOwner(stack, rivals: ["b"])
        let root = stack.context("root")
        let context = isInTree ? root.child("child") : root
        try context.performAndWait {
            let owner = try context.object(Person.self, id)
            let (first, second) = (Person("c", context), Person("d", context))
            let new = Person("e", context)
            try context.obtainPermanentIDs(for: [first, second])
            owner.rivals.insert(first)
            owner.hero = second
            new.hero = second
            new.rivals = [first, owner]
            context.processPendingChanges()
            context.delete(first)
            context.delete(second)
            try context.save()
            expectEqual(owner.rivals.map(\.name), ["b"])
            expectEqual(owner.hero, nil)
            expectEqual(new.rivals, [owner])
            expectEqual(new.hero, nil)
        }
        try root.performAndWait {
            expectEqual(try root.object(Person.self, id).rivals.map(\.name), ["b"])
            try root.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people.map(\.name), ["a", "b", "e"])
            expectEqual(people.map(\.hero), [nil, nil, nil])
            expectEqual(people[0].rivals, [people[1]])
            expectEqual(people[2].rivals, [people[0]])
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `keys of other hierarchies that are never saved concern no relationship`(_ kind: StoreKind, _ isInTree: Bool)
        throws
    {
        let stack = try Stack.objects(kind)
        let id = try storeOwner(stack, rivals: ["b", "c"])
        let root = stack.context("root")
        let context = isInTree ? root.child("child") : root
        try context.performAndWait {
            let owner = try context.object(Person.self, id)
            let rivals = owner.rivals
            owner.hero = rivals.first
            owner.rivals = []
            owner.rivals = rivals
            let others = (0..<3).map { _ in Sample(context: context) }
            try context.obtainPermanentIDs(for: others)
            func keys(_ objects: some Sequence<NSManagedObject>) -> Set<String> {
                Set(objects.map { $0.objectID.uriRepresentation().lastPathComponent })
            }
            expect(keys(others).isSuperset(of: keys(rivals)), "the test needs keys that people have")
            for other in others { context.delete(other) }
            try context.save()
            expectEqual(owner.rivals, rivals)
            expectEqual(owner.hero, rivals.first)
        }
        try root.performAndWait { try root.save() }
        try stack.inContext { context throws in
            let owner = try context.object(Person.self, id)
            expectEqual(owner.rivals.compactMap(\.name).sorted(), ["b", "c"])
            expect(owner.hero != nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships without an inverse stand alone`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        try stack.inContext { context throws in
            let people = ["a", "b", "c"].map { Person($0, context) }
            people[0].hero = people[1]
            people[2].hero = people[1]
            people[0].rivals = [people[1], people[2]]
            expectEqual(people[1].hero, nil)
            expect(people[1].rivals.isEmpty)
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people.map { $0.hero?.name }, ["b", nil, "b"])
            expectEqual(people[0].rivals, [people[1], people[2]])
            people[0].rivals.remove(people[2])
            people[2].hero = nil
            try context.save()
        }
        try stack.inContext { context throws in
            let people = try context.all(Person.self, sortedBy: "name")
            expectEqual(people[0].rivals.map(\.name), ["b"])
            expectEqual(people[2].hero, nil)
            people[0].rivals.insert(people[2])
            try context.save()
            context.delete(people[1])
            try context.save()
            expectEqual(people[0].rivals, [people[2]])
            expectEqual(people[0].objectIDs(forRelationshipNamed: "rivals"), [people[2].objectID])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `adding to a large relationship that is not loaded does not load it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Lisbon"
            for _ in 0..<500 { Venue(context: context).city = city }
            try context.save()
            return city.objectID
        }
        try stack.inContext { context throws in
            let city = try context.object(City.self, id)
            let venue = Venue(context: context)
            venue.city = city
            city.add(Venue(context: context), toRelationshipNamed: "venues")
            expect(city.hasFault(forRelationshipNamed: "venues"))
            expectEqual(context.registeredObjects.count, 3)
            try context.save()
            expectEqual(city.venues.count, 502)
            city.venues = [venue]
            expectEqual(city.venues.count, 1)
            try context.save()
        }
        try stack.inContext { context throws in
            let city = try context.object(City.self, id)
            expectEqual(city.venues.count, 1)
            try expectEqual(context.all(Venue.self).count { $0.city == nil }, 501)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `members deleted here or elsewhere leave the collections`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cityID, ids) = try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Lisbon"
            let venues = (0..<4).map { _ in Venue(context: context) }
            city.venues = Set(venues)
            try context.save()
            return (city.objectID, venues.map(\.objectID))
        }
        let context = stack.context()
        try context.performAndWait {
            let city = try context.object(City.self, cityID)
            let venues = try ids.map { try context.object(Venue.self, $0) }
            expectEqual(city.venues.count, 4)
            context.delete(venues[0])
            expectEqual(city.venues.count, 4)
            context.processPendingChanges()
            expectEqual(city.venues.count, 3)
            try context.save()
            expectEqual(city.venues, Set(venues[1...]))
            expectEqual(city.value(forKey: "venues") as? Set<Venue>, Set(venues[1...]))
            var deletion = Notification(name: .NSManagedObjectContextDidSave)
            try stack.inContext { other in
                other.delete(other.object(with: ids[1]))
                try other.save()
                deletion.userInfo = [NSDeletedObjectIDsKey: Set([ids[1]])]
            }
            context.mergeChanges(fromContextDidSave: deletion)
            expectEqual(city.venues, Set(venues[2...]))
        }
        // The relationship may be loaded though its members are not objects.
        try stack.inContext { reader in
            let city = try reader.object(City.self, cityID)
            expectEqual(city.objectIDs(forRelationshipNamed: "venues").count, 2)
            try stack.inContext { other in
                other.delete(other.object(with: ids[2]))
                try other.save()
            }
            var deletion = Notification(name: .NSManagedObjectContextDidSave)
            deletion.userInfo = [NSDeletedObjectIDsKey: Set([ids[2]])]
            reader.mergeChanges(fromContextDidSave: deletion)
            expectEqual(city.objectIDs(forRelationshipNamed: "venues"), [ids[3]])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a new object whose only relationship comes from the other side is saved with it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let user = User(context: context)
            user.email = "boss@example.com"
            user.reports = Set(
                (0..<3).map { number in
                    let report = User(context: context)
                    report.email = "\(number)@example.com"
                    return report
                }
            )
            try context.save()
        }
        try stack.inContext { context throws in
            let users = try context.all(User.self, sortedBy: "email")
            expectEqual(users.count { $0.boss != nil }, 3)
            expect(users.allSatisfy { $0.boss == nil || $0.boss?.email == "boss@example.com" })
        }
    }
}

@Suite("Collections that stand for relationships")
struct CollectionProxyTests {
    @Test(arguments: StoreKind.allCases)
    func `a mutable set shows and changes its relationship`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            let tags = (0..<4).map { _ in Tag(context: context) }
            let set = venue.mutableSetValue(forKey: "tags")
            set.add(tags[0])
            set.addObjects(from: [tags[1], tags[2]])
            expectEqual(venue.tags, Set(tags[..<3]))
            expectEqual(tags[1].venues, [venue])
            expectEqual(set.count, 3)
            expect(set.contains(tags[0]))
            expect(!set.contains(tags[3]))
            expect(!set.contains("text"))
            set.remove(tags[0])
            expect(tags[0].venues.isEmpty)
            tags[3].venues = [venue]
            expect(set.contains(tags[3]))
            expectEqual(Set(set.allObjects.compactMap { $0 as? Tag }), Set(tags[1...]))
            var seen = 0
            for case is Tag in set { seen += 1 }
            expectEqual(seen, 3)
            set.intersect([tags[1], tags[3]])
            expectEqual(venue.tags, [tags[1], tags[3]])
            set.union([tags[0]])
            set.minus([tags[1]])
            expectEqual(venue.tags, [tags[0], tags[3]])
            set.setSet([tags[2]])
            expectEqual(venue.tags, [tags[2]])
            set.removeAllObjects()
            expect(venue.tags.isEmpty)
            expectEqual(set.count, 0)
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a mutable ordered set shows and changes its relationship`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.inContext { context throws in
            let venue = Venue(context: context)
            let photos = (0..<5).map { number in
                let photo = Photo(context: context)
                photo.title = "\(number)"
                return photo
            }
            let set = venue.mutableOrderedSetValue(forKey: "photos")
            set.add(photos[0])
            set.add(photos[1])
            set.insert(photos[2], at: 0)
            set.add(photos[0])
            expectEqual(venue.photos, [photos[2], photos[0], photos[1]])
            expectEqual(set.count, 3)
            expectEqual(set.index(of: photos[0]), 1)
            expect(set.contains(photos[1]))
            expect(set.object(at: 2) as? Photo === photos[1])
            set.replaceObject(at: 1, with: photos[3])
            expectEqual(venue.photos, [photos[2], photos[3], photos[1]])
            expectEqual(photos[0].venue, nil)
            set.moveObjects(at: [2], to: 0)
            expectEqual(venue.photos, [photos[1], photos[2], photos[3]])
            photos[4].venue = venue
            expectEqual(set.count, 4)
            expectEqual(set.array as? [Photo], venue.photos)
            set.remove(photos[2])
            set.removeObject(at: 0)
            expectEqual(venue.photos, [photos[3], photos[4]])
            expectEqual(set.map { ($0 as? Photo)?.title }, ["3", "4"])
            try context.save()
            return venue.objectID
        }
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            let set = venue.mutableOrderedSetValue(forKey: "photos")
            expectEqual(set.map { ($0 as? Photo)?.title }, ["3", "4"])
            set.removeAllObjects()
            expect(venue.photos.isEmpty)
        }
    }

    @Test
    func `ten thousand members are added, reordered and removed in a moment`() throws {
        let stack = try Stack(.memory)
        stack.inContext { context in
            let venue = Venue(context: context)
            let photos = (0..<10_000).map { _ in Photo(context: context) }
            venue.photos = photos
            expectEqual(venue.photos.count, 10_000)
            venue.photos = photos.reversed()
            expect(venue.photos.first === photos.last)
            venue.photos = Array(photos[..<10])
            expectEqual(venue.photos, Array(photos[..<10]))
            let time = processorTime {
                for photo in photos { photo.venue = venue }
                venue.photos = []
            }
            expect(time < .seconds(5))
        }
    }
}
