import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

/// Fetches by the value of an attribute beside many unsaved changes, which an index answers.
@Suite("Index of new objects")
struct PendingIndexTests {
    // MARK: - Growth

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a search for a value does not take longer with more unsaved objects`(
        _ kind: StoreKind,
        _ isInChild: Bool
    ) throws {
        let root = try Stack(kind).context()
        let context = isInChild ? root.child() : root
        try context.performAndWait {
            var count = 0
            func insert(upTo end: Int) {
                while count < end {
                    City(context: context).name = "city \(count)"
                    count += 1
                }
            }
            func timeOfSearches() throws -> Duration {
                let times = try (0..<5).map { _ in
                    try processorTime {
                        for _ in 0..<40 {
                            insert(upTo: count + 1)
                            try expectEqual(found("city \(count)", in: context), [])
                            try expectEqual(found("city \(count / 2)", in: context), ["city \(count / 2)"])
                        }
                    }
                }
                return times.min() ?? .zero
            }
            insert(upTo: 300)
            let few = try timeOfSearches()
            insert(upTo: 10_000)
            let many = try timeOfSearches()
            expect(many < few * 4, "\(few) with 300 to 500 objects, \(many) with 10,000")
        }
    }

    /// The names of the cities with a name, as `fetch` and as IDs; both must be the same objects.
    private func found(_ name: String, in context: NSManagedObjectContext) throws -> [String] {
        let request = NSFetchRequest<City>(entityName: "City")
        request.predicate = NSPredicate(format: "name == %@ AND population == 0", name)
        request.fetchLimit = 1
        return try context.fetch(request).map(\.name)
    }

    // MARK: - One kind of change

    /// A context with 40 new tags, `t0` to `t39`, that has been asked often enough for an index.
    private func indexed(_ kind: StoreKind, _ body: (NSManagedObjectContext, [Tag]) throws -> Void) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let tags = (0..<40).map { number in
                let tag = Tag(context: context)
                tag.title = "t\(number)"
                return tag
            }
            for number in 0..<4 { try expectEqual(titles("t\(number)", in: context), ["t\(number)"]) }
            try body(context, tags)
        }
    }

    private func titles(_ title: String?, in context: NSManagedObjectContext) throws -> [String?] {
        let request = NSFetchRequest<Tag>(entityName: "Tag")
        request.predicate = title.map { NSPredicate(format: "title == %@", $0) } ?? NSPredicate(format: "title == nil")
        return try context.fetch(request).map(\.title)
    }

    @Test(arguments: StoreKind.allCases)
    func `a primitive value that begins no change is found`(_ kind: StoreKind) throws {
        try indexed(kind) { context, tags in
            tags[5].setPrimitiveValue("quiet", forKey: "title")
            try expectEqual(titles("t5", in: context), [])
            try expectEqual(titles("quiet", in: context), ["quiet"])
            tags[5].setPrimitiveValue("again", forKey: "title")
            try expectEqual(titles("quiet", in: context), [])
            try expectEqual(titles("again", in: context), ["again"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object whose insertion was undone is found by what it was given meanwhile`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let manager = CoreData.UndoManager()
            context.undoManager = manager
            for number in 0..<40 { Tag(context: context).title = "t\(number)" }
            context.processPendingChanges()
            let tag = Tag(context: context)
            tag.title = "late"
            context.processPendingChanges()
            for _ in 0..<4 { try expectEqual(titles("late", in: context), ["late"]) }
            manager.undo()
            try expectEqual(titles("late", in: context), [])
            tag.setPrimitiveValue("changed outside", forKey: "title")
            context.insert(tag)
            try expectEqual(titles("late", in: context), [])
            try expectEqual(titles("changed outside", in: context), ["changed outside"])
            try expectEqual(titles("t7", in: context), ["t7"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `more attributes than a few are followed at a time`(_ kind: StoreKind) throws {
        try indexed(kind) { context, _ in
            for number in 0..<40 {
                let venue = Venue(context: context)
                venue.name = "v\(number)"
                venue.price = Int16(number)
                venue.distance = Double(number)
            }
            func count(_ entity: String, _ key: String, _ value: Any) throws -> Int {
                let request = NSFetchRequest<NSManagedObject>(entityName: entity)
                request.predicate = NSPredicate(format: "%K == %@", argumentArray: [key, value])
                return try context.count(for: request)
            }
            for _ in 0..<3 {
                try expectEqual(count("Venue", "name", "v3"), 1)
                try expectEqual(count("Venue", "price", 3), 1)
                try expectEqual(count("Venue", "distance", 3), 1)
                try expectEqual(count("Tag", "title", "t3"), 1)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `several writes within one event are found each`(_ kind: StoreKind) throws {
        try indexed(kind) { context, tags in
            let log = FetchesAtEnd(of: context)
            defer { log.stop() }
            for title in ["a", "b", "a", nil, "t7"] {
                tags[6].title = title
                try expectEqual(titles("t6", in: context), [])
                try expectEqual(titles(title, in: context), title == "t7" ? ["t7", "t7"] : [title])
            }
            expectEqual(log.counts, [1, 1, 1, 1, 2])
        }
    }

    /// Fetches inside of the notification that ends an event, where the event is over for the context.
    private final class FetchesAtEnd: @unchecked Sendable {
        // @unchecked Sendable: the notification is posted on the thread of the test.
        private(set) var counts: [Int] = []
        private var observer: (any NSObjectProtocol)?

        init(of context: NSManagedObjectContext) {
            observer = NotificationCenter.default.addObserver(
                forName: NSManagedObjectContext.didChangeObjectsNotification,
                object: context,
                queue: nil
            ) { [unowned self, unowned context] note in
                let updated = note.userInfo?[NSUpdatedObjectsKey] as? Set<NSManagedObject> ?? []
                guard let tag = updated.first as? Tag else { return }
                let request = NSFetchRequest<Tag>(entityName: "Tag")
                request.predicate = NSPredicate(format: "title == %@", tag.title)
                counts.append((try? context.fetch(request).count) ?? -1)
            }
        }

        func stop() { observer.map { NotificationCenter.default.removeObserver($0) } }
    }

    @Test(arguments: StoreKind.allCases)
    func `strings are equal by their bytes, and numbers across types`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        try context.performAndWait {
            for number in 0..<40 {
                let venue = Venue(context: context)
                venue.name = number % 2 == 0 ? "\u{E4}\(number)" : "a\u{308}\(number)"
                venue.price = Int16(number)
                venue.distance = Double(number) / 2
            }
            func count(_ format: String, _ arguments: Any...) throws -> Int {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: format, argumentArray: arguments)
                return try context.count(for: request)
            }
            for _ in 0..<3 {
                try expectEqual(count("name == %@", "\u{E4}2"), 1)
                try expectEqual(count("name == %@", "a\u{308}2"), 0)
                try expectEqual(count("name ==[c] %@", "\u{C4}2"), 1)
                try expectEqual(count("price == 4.0"), 1)
                try expectEqual(count("price == 4.5"), 0)
                try expectEqual(count("4 == distance"), 1)
                try expectEqual(count("distance == 0.0 AND price == 0"), 1)
                try expectEqual(count("distance == -0.0"), 1)
                try expectEqual(count("price == 4 OR distance == 4"), 2)
                try expectEqual(count("price == 4 OR distance > 4"), 32)
                try expectEqual(count("price IN {1, 2, 2, 90} AND name != nil"), 2)
                try expectEqual(count("NOT price == 4"), 39)
                try expectEqual(count("code == nil AND price == 7"), 1)
            }
        }
    }
}
