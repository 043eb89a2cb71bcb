import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

@Suite("Merge policies: two writers of one object")
struct MergePolicyTests {
    /// A stored venue that one context changes, and then another.
    private struct Contest {
        let stack: Stack
        let id: NSManagedObjectID
        let context: NSManagedObjectContext

        init(
            _ kind: StoreKind,
            _ policy: Policy,
            _ setUp: @escaping (Venue, NSManagedObjectContext) -> Void = { _, _ in }
        ) throws {
            stack = try Stack(kind)
            id = try stack.store(Venue.self) { venue, context in
                venue.name = "old"
                venue.price = 1
                venue.seats = 1
                venue.visits = 1
                setUp(venue, context)
            }
            context = stack.context(policy)
        }

        /// Changes the venue here, then elsewhere, and saves here.
        ///
        /// Gives the values that memory and the store then have.
        func run<Value: Equatable>(
            here: (Venue, NSManagedObjectContext) throws -> Void,
            elsewhere: @escaping (Venue, NSManagedObjectContext) -> Void,
            _ picture: (Venue) -> Value
        ) throws -> Value {
            let inMemory = try context.performAndWait {
                let venue = try context.get(id, Venue.self)
                _ = venue.name
                try here(venue, context)
                try stack.change(id, Venue.self, elsewhere)
                try context.save()
                expect(!context.hasChanges)
                expect(venue.changedValues().isEmpty)
                return picture(venue)
            }
            let stored = try stack.read(id, Venue.self, picture)
            expectEqual(inMemory, stored)
            // From here on the context knows the newest version.
            try context.performAndWait {
                try context.get(id, Venue.self).visits += 1
                try context.save()
            }
            return stored
        }

        /// The stored photo with a title.
        static func photo(_ title: String, _ context: NSManagedObjectContext) -> Photo {
            let photo = Photo(context: context)
            photo.title = title
            return photo
        }

        static func tag(_ title: String, _ context: NSManagedObjectContext) -> TestSupport.Tag {
            let tag = Tag(context: context)
            tag.title = title
            return tag
        }
    }

    private static let outcomes: [(policy: Policy, values: [String])] = [
        (.storeTrump, ["theirs", "2", "2"]), (.objectTrump, ["mine", "2", "2"]), (.overwrite, ["mine", "2", "1"]),
        (.rollback, ["theirs", "1", "2"]),
    ]

    @Test(arguments: StoreKind.allCases, outcomes)
    func `attributes, property by property (CS-105, 106, 107, 108, 109, 116, 117)`(
        _ kind: StoreKind,
        _ outcome: (policy: Policy, values: [String])
    ) throws {
        let contest = try Contest(kind, outcome.policy)
        let values = try contest.run(
            here: { venue, _ in
                venue.name = "mine"
                venue.price = 2
            },
            elsewhere: { venue, _ in
                venue.name = "theirs"
                venue.seats = 2
            },
            { [$0.name ?? "", "\($0.price)", "\($0.seats)"] }
        )
        expectEqual(values, outcome.values)
    }

    @Test(arguments: StoreKind.allCases)
    func `changes to different objects never conflict (CS-98)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (first, second) = (try stack.storeCity("a"), try stack.storeCity("b"))
        let context = stack.context()
        try context.performAndWait {
            try context.get(first, City.self).population = 2
            _ = try context.get(second, City.self).population
            try stack.change(second, City.self) { city, _ in city.population = 3 }
            try context.save()
        }
        try expectEqual(stack.read(first, City.self) { $0.population }, 2)
    }

    @Test func `the error policy is the default (CS-99)`() {
        let policy = NSManagedObjectContext(.privateQueue).mergePolicy as? NSMergePolicy
        expect(policy === NSMergePolicy.error)
        let olderName = NSErrorMergePolicy as? NSMergePolicy
        expect(olderName === NSMergePolicy.error)
        expectEqual(NSMergePolicy.error.mergeType, .errorMergePolicyType)
        expectEqual(NSMergePolicy(merge: .rollbackMergePolicyType).mergeType, .rollbackMergePolicyType)
    }

    // MARK: - To-one

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `a to-one relationship that both sides changed, with its inverse (CS-105, 106, 107, 108)`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let contest = try Contest(kind, policy) { venue, context in
            for name in ["old", "mine", "theirs"] {
                let city = City(context: context)
                city.name = name
                if name == "old" { venue.city = city }
            }
        }
        func city(_ name: String, _ context: NSManagedObjectContext) throws -> City {
            try require(try context.all(City.self).first { $0.name == name })
        }
        var held: [City] = []
        let result = try contest.run(
            here: { venue, context in
                // All collections are loaded, and have to change too.
                held = try context.all(City.self)
                for city in held { _ = city.venues }
                venue.city = try city("mine", context)
            },
            elsewhere: { venue, context in venue.city = try? city("theirs", context) },
            { (venue: Venue) -> [String] in
                guard let context = venue.managedObjectContext else { return [] }
                let owners = try? context.all(City.self).filter { $0.venues.contains(venue) }.map(\.name)
                return [venue.city?.name ?? "nil"] + (owners ?? [])
            }
        )
        let winner = policy.memoryWins ? "mine" : "theirs"
        expectEqual(held.count, 3)
        expectEqual(result, [winner, winner])
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `a to-one relationship changed on one side only (CS-105, 106, 107, 108)`(_ kind: StoreKind, _ policy: Policy)
        throws
    {
        let contest = try Contest(kind, policy) { venue, context in
            let licence = Licence(context: context)
            licence.number = "old"
            venue.licence = licence
        }
        let result = try contest.run(
            here: { venue, context in
                let licence = Licence(context: context)
                licence.number = "new"
                venue.licence = licence
            },
            elsewhere: { venue, _ in venue.name = "theirs" },
            { [$0.licence?.number ?? "nil", $0.licence?.venue === $0 ? "both" : "one", $0.name ?? ""] }
        )
        switch policy {
        case .rollback: expectEqual(result, ["old", "both", "theirs"])
        case .overwrite: expectEqual(result, ["new", "both", "old"])
        default: expectEqual(result, ["new", "both", "theirs"])
        }
    }

    // MARK: - To-many

    @Test(arguments: StoreKind.allCases)
    func `what is overwritten is stored as in memory, also where the other ends were loaded before (CS-107)`(
        _ kind: StoreKind
    ) throws {
        let contest = try Contest(kind, .overwrite) { venue, context in
            venue.tags = [Contest.tag("a", context), Contest.tag("b", context)]
            for email in ["u", "v"] {
                let user = User(context: context)
                user.email = email
                if email == "u" { user.favourites = [venue] }
            }
        }
        var held: [NSManagedObject] = []
        let result = try contest.run(
            here: { venue, context in
                held = try context.all(TestSupport.Tag.self) + context.all(User.self)
                for case let tag as TestSupport.Tag in held { _ = tag.venues.count }
                for case let user as User in held { _ = user.favourites.count }
                _ = (venue.tags.count, venue.fans.count)
                venue.price = 2
            },
            elsewhere: { venue, context in
                venue.price = 3
                venue.tags = venue.tags.filter { $0.title == "a" }.union([Contest.tag("c", context)])
                venue.fans = Set((try? context.all(User.self).filter { $0.email == "v" }) ?? [])
            },
            { (venue: Venue) -> [String] in
                let users = (try? venue.managedObjectContext?.all(User.self)) ?? []
                return venue.tags.compactMap(\.title).sorted() + venue.fans.map(\.email).sorted()
                    + users.filter { $0.favourites.contains(venue) }.map(\.email)
            }
        )
        expectEqual(held.count, 4)
        expectEqual(result, ["a", "b", "u", "u"])
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `many-to-many: memberships are merged, or stored as in memory, or as stored (CS-105, 106, 107, 108)`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let contest = try Contest(kind, policy) { venue, context in
            venue.tags = [Contest.tag("stays", context), Contest.tag("goes", context)]
        }
        let titles = try contest.run(
            here: { venue, context in
                venue.name = "mine"
                venue.tags = venue.tags.filter { $0.title == "stays" }.union([Contest.tag("mine", context)])
            },
            elsewhere: { venue, context in
                venue.name = "theirs"
                venue.tags.insert(Contest.tag("theirs", context))
            },
            { (venue: Venue) -> [String] in
                let tags = venue.tags
                expect(tags.allSatisfy { $0.venues == [venue] })
                return tags.compactMap(\.title).sorted()
            }
        )
        switch policy {
        case .rollback: expectEqual(titles, ["goes", "stays", "theirs"])
        case .overwrite: expectEqual(titles, ["mine", "stays"])
        default: expectEqual(titles, ["mine", "stays", "theirs"])
        }
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `one-to-many: members say themselves whose they are (CS-105, 106, 107, 108)`(
        _ kind: StoreKind,
        _ policy: Policy
    )
        throws
    {
        func venue(_ name: String, _ context: NSManagedObjectContext) -> Venue {
            let venue = Venue(context: context)
            venue.name = name
            return venue
        }
        let stack = try Stack(kind)
        let id = try stack.store(City.self) { city, context in
            city.name = "old"
            city.venues = [venue("stays", context), venue("goes", context)]
        }
        let context = stack.context(policy)
        func names(_ city: City) -> [String] { city.venues.compactMap(\.name).sorted() }
        let inMemory = try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "mine"
            city.venues = city.venues.filter { $0.name == "stays" }.union([venue("mine", context)])
            try stack.change(id, City.self) { city, context in
                city.name = "theirs"
                city.venues.insert(venue("theirs", context))
            }
            try context.save()
            expect(city.venues.allSatisfy { $0.city === city })
            expect(!context.hasChanges)
            return names(city)
        }
        let stored = try stack.read(id, City.self, names)
        expectEqual(inMemory, stored)
        expectEqual(stored, policy == .overwrite ? ["mine", "stays"] : ["mine", "stays", "theirs"])
        try expectEqual(stack.count("Venue"), 4)
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `an order changed on one side only (CS-105, 106, 107, 108)`(_ kind: StoreKind, _ policy: Policy) throws {
        let contest = try Contest(kind, policy) { venue, context in
            venue.photos = ["a", "b", "c"].map { Contest.photo($0, context) }
        }
        let titles = try contest.run(
            here: { venue, _ in venue.photos.reverse() },
            elsewhere: { venue, _ in venue.name = "theirs" },
            { $0.photos.compactMap(\.title) }
        )
        expectEqual(titles, policy == .rollback ? ["a", "b", "c"] : ["c", "b", "a"])
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `an order changed on both sides, with additions (CS-105, 106, 107, 108)`(_ kind: StoreKind, _ policy: Policy)
        throws
    {
        let contest = try Contest(kind, policy) { venue, context in
            venue.photos = ["a", "b", "c"].map { Contest.photo($0, context) }
        }
        let titles = try contest.run(
            here: { venue, context in venue.photos = venue.photos.reversed() + [Contest.photo("mine", context)] },
            elsewhere: { venue, context in
                let photos = venue.photos
                venue.photos = [photos[1], photos[0], photos[2], Contest.photo("theirs", context)]
            },
            { $0.photos.compactMap(\.title) }
        )
        switch policy {
        case .overwrite: expectEqual(titles, ["c", "b", "a", "mine"])
        case .objectTrump: expectEqual(titles, ["c", "b", "a", "mine", "theirs"])
        default: expectEqual(titles, ["b", "a", "c", "theirs", "mine"])
        }
    }

    // MARK: - Deletions

    @Test(arguments: StoreKind.allCases, Policy.allCases)
    func `changed here, deleted elsewhere (CS-110)`(_ kind: StoreKind, _ policy: Policy) throws {
        let contest = try Contest(kind, policy)
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.name = "mine"
            try stack.delete(id)
            guard policy != .error else {
                let conflict = try require(try context.versionConflictsOfSave().first)
                expect(conflict.newCount == 0 && conflict.oldCount == 1)
                expect(conflict.sourceObject === venue && venue.isUpdated && venue.name == "mine")
                return
            }
            try context.save()
            expect(!context.hasChanges)
            try expectEqual(context.count(for: Venue.fetchRequest()), policy.memoryWins ? 1 : 0)
            if policy.memoryWins { expect(venue.objectID == id && venue.name == "mine") }
        }
        guard policy.memoryWins else { return try expectEqual(stack.count("Venue"), 0) }
        try expectEqual(stack.read(id, Venue.self) { [$0.name ?? "", "\($0.seats)"] }, ["mine", "1"])
    }

    @Test(arguments: StoreKind.allCases, Policy.allCases)
    func `deleted here, changed elsewhere (CS-110)`(_ kind: StoreKind, _ policy: Policy) throws {
        let contest = try Contest(kind, policy)
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            context.delete(venue)
            context.processPendingChanges()
            try stack.change(id, Venue.self) { venue, _ in venue.name = "theirs" }
            guard policy != .error else {
                let conflict = try require(try context.versionConflictsOfSave().first)
                expect(conflict.newCount == 2 && conflict.oldCount == 1)
                expect(venue.isDeleted)
                return
            }
            try context.save()
            expect(!context.hasChanges)
            if !policy.memoryWins { expect(!venue.isDeleted && venue.name == "theirs") }
        }
        try expectEqual(stack.count("Venue"), policy.memoryWins ? 0 : 1)
    }

    @Test(arguments: StoreKind.allCases, [Policy.storeTrump, .rollback])
    func `a deletion that loses is taken back with what its delete rules did (CS-110)`(
        _ kind: StoreKind,
        _ policy: Policy
    )
        throws
    {
        let contest = try Contest(kind, policy) { venue, context in
            venue.photos = [Contest.photo("a", context), Contest.photo("b", context)]
            venue.tags = [Contest.tag("t", context)]
            venue.licence = Licence(context: context)
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
        }
        func picture(_ venue: Venue) -> [String] {
            let tag = venue.tags.first
            return venue.photos.compactMap(\.title) + [
                tag?.title ?? "nil", tag?.venues.count == 1 ? "1" : "0", venue.licence == nil ? "nil" : "licence",
                venue.city?.name ?? "nil", venue.city?.venues.count == 1 ? "1" : "0",
            ]
        }
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            _ = picture(venue)
            context.delete(venue)
            context.processPendingChanges()
            try stack.change(id, Venue.self) { venue, _ in venue.name = "theirs" }
            try context.save()
            expectEqual(picture(venue), ["a", "b", "t", "1", "licence", "Porto", "1"])
        }
        try expectEqual(stack.read(id, Venue.self, picture), ["a", "b", "t", "1", "licence", "Porto", "1"])
        try expectEqual(stack.count("Photo"), 2)
    }

    @Test(arguments: StoreKind.allCases, [Policy.storeTrump, .rollback])
    func `a deletion that loses gives a one-to-one relationship back (CS-110)`(_ kind: StoreKind, _ policy: Policy)
        throws
    {
        let contest = try Contest(kind, policy) { venue, context in
            venue.licence = Licence(context: context)
            venue.licence?.number = "old"
        }
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            let licence = try require(venue.licence)
            context.delete(licence)
            context.processPendingChanges()
            expect(venue.licence == nil)
            try stack.change(licence.objectID, Licence.self) { licence, _ in licence.number = "theirs" }
            try context.save()
            expect(venue.licence === licence && licence.venue === venue)
            expect(!licence.isDeleted && !context.hasChanges)
            expectEqual(licence.number, "theirs")
        }
        try expectEqual(stack.read(id, Venue.self) { $0.licence?.number }, "theirs")
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases, [Policy.storeTrump, .rollback])
    func `a deletion that loses leaves orders as they are stored (CS-109, 110)`(_ kind: StoreKind, _ policy: Policy)
        throws
    {
        let contest = try Contest(kind, policy) { venue, context in
            let others = ["b", "c"].map { name in
                let venue = Venue(context: context)
                venue.name = name
                return venue
            }
            let user = User(context: context)
            user.email = "u"
            user.favourites = [venue] + others
        }
        func names(_ context: NSManagedObjectContext) throws -> [String] {
            try require(try context.all(User.self).first).favourites.compactMap(\.name)
        }
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            try expectEqual(names(context), ["old", "b", "c"])
            context.delete(try context.get(id, Venue.self))
            context.processPendingChanges()
            try expectEqual(names(context), ["b", "c"])
            try stack.change(id, Venue.self) { venue, _ in venue.name = "theirs" }
            try context.save()
            try expectEqual(names(context), ["theirs", "b", "c"])
        }
        let reader = stack.context()
        try expectEqual(reader.performAndWait { try names(reader) }, ["theirs", "b", "c"])
    }

    @Test(arguments: StoreKind.allCases, [Policy.storeTrump, .rollback])
    func `an object whose deletion elsewhere wins leaves the relationships that show it (CS-109, 110)`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let contest = try Contest(kind, policy) { venue, context in
            venue.tags = [Contest.tag("t", context)]
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
        }
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            let (city, tag) = (try require(venue.city), try require(venue.tags.first))
            expect(city.venues == [venue] && tag.venues == [venue])
            venue.name = "mine"
            try stack.delete(id)
            try context.save()
            expect(city.venues.isEmpty && tag.venues.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, Policy.allCases)
    func `deleted on both sides (CS-110)`(_ kind: StoreKind, _ policy: Policy) throws {
        let contest = try Contest(kind, policy)
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        try context.performAndWait {
            context.delete(try context.get(id, Venue.self))
            context.processPendingChanges()
            try stack.delete(id)
            if policy == .error {
                try expectEqual(context.versionConflictsOfSave().first?.newVersionNumber, 0)
            } else {
                try context.save()
                expect(!context.hasChanges)
            }
        }
        try expectEqual(stack.count("Venue"), 0)
    }

    // MARK: - Notifications

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `objects that a policy has changed are notified, and reported`(_ kind: StoreKind, _ policy: Policy) throws {
        let contest = try Contest(kind, policy)
        let (stack, context, id) = (contest.stack, contest.context, contest.id)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.price = 2
            context.processPendingChanges()
            try stack.change(id, Venue.self) { venue, _ in venue.name = "theirs" }
            log.clear()
            try context.save()
            let refreshed = log.entries.reduce(into: Set<NSManagedObject>()) {
                $0.formUnion($1.objects(NSRefreshedObjectsKey))
            }
            expectEqual(refreshed, [venue])
        }
    }
}
