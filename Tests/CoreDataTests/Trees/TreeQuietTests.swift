import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

/// Tells in which contexts its objects were realised or became faults.
@ManagedObject
final class Shy: NSManagedObject {
    final class Log: Sendable {
        private let names = Locked<[String]>([])

        func add(_ name: String) { names.withLock { $0.append(name) } }
        var places: Set<String> { Set(names.withLock { $0 }) }
    }

    @TaskLocal static var log: Log?

    @Managed var text: String?
    @Managed var other: Shy?
    @Managed var others: Set<Shy>

    private func tell() { Self.log?.add(managedObjectContext?.name ?? "nowhere") }

    override func awakeFromFetch() {
        super.awakeFromFetch()
        tell()
    }
    override func didTurnIntoFault() { tell() }
}

@Suite("Trees: what a child asks leaves no trace in its parents, whatever they have not saved")
struct TreeQuietTests {
    private static func model() -> NSManagedObjectModel {
        let shy = GuideModel.entity("Shy", Shy.self)
        shy.properties = [GuideModel.attribute("text", .string)]
        GuideModel.relate(shy, "other", .one(.nullifyDeleteRule), shy, "others", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [shy]
        return model
    }

    /// Fifty stored objects that lead to one another, and a tree with a new object in each parent.
    private func withTree(
        _ kind: StoreKind,
        _ body: (_ parents: [NSManagedObjectContext], _ leaf: NSManagedObjectContext) throws -> Void
    ) throws {
        let stack = try Stack(kind, model: Self.model())
        let writer = stack.context("writer")
        try writer.performAndWait {
            var last: Shy?
            for number in 0..<50 {
                let shy = Shy(context: writer)
                shy.text = "\(100 + number)"
                shy.other = last
                last = shy
            }
            try writer.save()
        }
        let (root, middle, leaf) = stack.chain()
        let log = Shy.Log()
        try Shy.$log.withValue(log) {
            // Held faults, which may be seen to be realised.
            let held = try middle.performAndWait {
                let request = NSFetchRequest<Shy>(entityName: "Shy")
                request.predicate = NSPredicate(format: "text < %@", "105")
                return try middle.fetch(request)
            }
            for context in [root, middle] {
                context.performAndWait { Shy(context: context).text = "\(120).\(context.name ?? "")" }
            }
            try body([root, middle], leaf)
            middle.performAndWait {
                expectEqual(held.count, 5)
                expect(held.allSatisfy { $0.isFault })
                // Those, the new one, and nothing else but what was there before.
                expectEqual(middle.registeredObjects.count, 6)
            }
            root.performAndWait { expectEqual(root.registeredObjects.count, 1) }
            expect(log.places.isSubset(of: ["leaf"]), "\(log.places)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `fetching in an order`(_ kind: StoreKind) throws {
        try withTree(kind) { _, leaf in
            try leaf.performAndWait {
                let request = NSFetchRequest<Shy>(entityName: "Shy")
                request.sortDescriptors = [NSSortDescriptor(key: "text", ascending: true)]
                let texts = try leaf.fetch(request).map(\.text)
                expectEqual(texts.count, 52)
                expectEqual(texts.map { $0 ?? "" }, texts.map { $0 ?? "" }.sorted())
                request.fetchLimit = 10
                request.fetchOffset = 15
                let some = try leaf.fetch(request).map(\.text)
                expectEqual(some, Array(texts[15..<25]))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `predicates over relationships, and counts of them`(_ kind: StoreKind) throws {
        try withTree(kind) { _, leaf in
            try leaf.performAndWait {
                let request = NSFetchRequest<Shy>(entityName: "Shy")
                for (format, count) in [
                    ("other.text >= '140'", 9), ("ANY others.text >= '140'", 10), ("others.@count == 0", 3),
                    ("other.other.text == '110'", 1), ("text >= '120'", 32),
                ] {
                    request.predicate = NSPredicate(format: format)
                    let (counted, found) = (try leaf.count(for: request), try leaf.fetch(request))
                    expect(counted == count && found.count == count, "\(format)")
                    let ids = NSFetchRequest<NSManagedObjectID>(entityName: "Shy")
                    ids.resultType = .managedObjectIDResultType
                    ids.predicate = request.predicate
                    let named = try leaf.fetch(ids)
                    expectEqual(named.count, count, "\(format)")
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `reading what was found`(_ kind: StoreKind) throws {
        try withTree(kind) { _, leaf in
            try leaf.performAndWait {
                let all = try leaf.fetch(NSFetchRequest<Shy>(entityName: "Shy"))
                expectEqual(all.compactMap(\.other).count, 49)
                expectEqual(all.reduce(0) { $0 + $1.others.count }, 49)
            }
        }
    }
}
