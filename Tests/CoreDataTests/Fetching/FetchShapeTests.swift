import CoreData
import Expectations
import TestSupport
import Testing

/// Fetches that differ in one thing only, one after the other: none may get the statement of another.
@Suite("Fetches of one shape")
struct FetchShapeTests {
    /// A fetch of venues; `nil` for what it does not say.
    private struct Question {
        var entity = "Venue"
        var format: String
        var arguments: [Any] = []
        var key = "name"
        var ascending = true
        var limit = 0
        var offset = 0
        var isDeep = true
        let answer: [String]
    }

    private static let day = Date(timeIntervalSinceReferenceDate: 100)

    private static var questions: [Question] {
        [
            Question(format: "price == %d", arguments: [1], answer: ["a", "b"]),
            Question(format: "price == %d", arguments: [2], answer: ["c"]),
            Question(format: "price == %f", arguments: [1.5], answer: []),
            Question(format: "price == %f", arguments: [2.0], answer: ["c"]),
            Question(format: "price == nil", answer: []),
            Question(format: "price < %d", arguments: [2], answer: ["a", "b"]),
            Question(format: "price <= %d", arguments: [2], answer: ["a", "b", "c"]),
            Question(format: "price > %d", arguments: [1], answer: ["c"]),
            Question(format: "price >= %d", arguments: [1], answer: ["a", "b", "c"]),
            Question(format: "price != %d", arguments: [1], answer: ["c"]),
            Question(format: "price == %d", arguments: [1], ascending: false, answer: ["b", "a"]),
            Question(format: "price >= %d", arguments: [1], key: "distance", answer: ["c", "b", "a"]),
            Question(format: "price == %d", arguments: [1], limit: 1, answer: ["a"]),
            Question(format: "price == %d", arguments: [1], limit: 2, answer: ["a", "b"]),
            Question(format: "price == %d", arguments: [1], limit: 1, offset: 1, answer: ["b"]),
            Question(format: "price == %d", arguments: [1], offset: 1, answer: ["b"]),
            Question(format: "price == %d", arguments: [1], isDeep: false, answer: ["a"]),
            Question(entity: "Bar", format: "price == %d", arguments: [1], answer: ["b"]),
            Question(entity: "Bar", format: "beers == %d", arguments: [7], answer: ["b"]),
            Question(format: "seats == %d", arguments: [1], answer: ["c"]),
            Question(format: "distance == %f", arguments: [1.0], answer: ["c"]),
            Question(format: "distance == %d", arguments: [1], answer: ["c"]),
            Question(format: "distance == %@", arguments: [NSNumber(value: Int64.max)], answer: []),
            Question(format: "name == %@", arguments: ["a"], answer: ["a"]),
            Question(format: "name == %@", arguments: ["A"], answer: []),
            Question(format: "name ==[c] %@", arguments: ["A"], answer: ["a"]),
            Question(format: "name ==[d] %@", arguments: ["á"], answer: ["a"]),
            Question(format: "name == %@", arguments: [NSNull()], answer: []),
            Question(format: "createdAt == %@", arguments: [day], answer: ["a"]),
            Question(format: "createdAt == nil", answer: ["b", "c"]),
            Question(format: "createdAt < %@", arguments: [day], answer: []),
            Question(format: "rating == %@", arguments: [Decimal(string: "2.5") ?? 0], answer: ["b"]),
            Question(format: "rating == %d", arguments: [2], answer: []),
            Question(format: "favorite == YES", answer: ["b"]),
            Question(format: "favorite == NO AND price == %d", arguments: [1], answer: ["a"]),
            Question(format: "price == %d AND favorite == NO", arguments: [1], answer: ["a"]),
            Question(format: "price == %d AND favorite == NO AND name == %@", arguments: [1, "a"], answer: ["a"]),
            Question(format: "name == %@ AND price == %d", arguments: ["b", 1], answer: ["b"]),
            Question(format: "price == %d OR favorite == NO", arguments: [1], answer: ["a", "b", "c"]),
            Question(format: "code == nil AND price == %d", arguments: [2], answer: ["c"]),
        ]
    }

    private func stack(_ kind: StoreKind, _ model: NSManagedObjectModel = GuideModel.make()) throws -> Stack {
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            for (index, name) in ["a", "b", "c"].enumerated() {
                let venue = index == 1 ? Bar(context: context) : Venue(context: context)
                venue.name = name
                venue.price = index == 2 ? 2 : 1
                venue.distance = Double(3 - index)
                venue.seats = index == 2 ? 1 : 0
                venue.favorite = index == 1
                venue.createdAt = index == 0 ? Self.day : nil
                venue.rating = index == 1 ? Decimal(string: "2.5") : nil
                (venue as? Bar)?.beers = 7
            }
            try context.save()
        }
        return stack
    }

    @Test(arguments: StoreKind.allCases)
    func `each fetch gets its own answer, in any order of fetches`(_ kind: StoreKind) throws {
        let context = try stack(kind).context()
        var random = SeededRandom(seed: 1)
        try context.performAndWait {
            for round in 0..<4 {
                for question in round == 0 ? Self.questions : Self.questions.shuffled(using: &random) {
                    let request = NSFetchRequest<Venue>(entityName: question.entity)
                    request.predicate = NSPredicate(format: question.format, argumentArray: question.arguments)
                    request.sortDescriptors = [NSSortDescriptor(key: question.key, ascending: question.ascending)]
                    request.fetchLimit = question.limit
                    request.fetchOffset = question.offset
                    request.includesSubentities = question.isDeep
                    try expectEqual(context.fetch(request).compactMap(\.name), question.answer, "\(question)")
                    request.fetchLimit = 0
                    request.fetchOffset = 0
                    if question.limit == 0, question.offset == 0 {
                        try expectEqual(context.count(for: request), question.answer.count, "\(question)")
                    }
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch of an object by itself finds it in its own store only`(_ kind: StoreKind) throws {
        let (stack, other) = (try stack(kind), try stack(kind))
        let ids = try [stack, other].map { stack in
            let context = stack.context()
            return try context.performAndWait { try context.all(Venue.self).map(\.objectID) }
        }
        let city = try stack.storeCity()
        let context = stack.context()
        try context.performAndWait {
            for _ in 0..<2 {
                for (id, count) in ids[0].map({ ($0, 1) }) + ids[1].map({ ($0, 0) }) + [(city, 0)] {
                    let request = NSFetchRequest<Venue>(entityName: "Venue")
                    request.predicate = NSPredicate(format: "SELF == %@", id)
                    try expectEqual(context.fetch(request).map(\.objectID), count == 1 ? [id] : [])
                }
            }
        }
    }

    @Test func `one fetch with a value that needs another statement does not change the next one`() throws {
        let context = try stack(.database).context()
        try context.performAndWait {
            let values: [Any] = [1.0, Int64.max, 1.0, NSNull(), 1.0, Int64(1), Double.nan, 1.0, 1e300]
            for value in values {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: "distance == %@", argumentArray: [value])
                let isOne = (value as? Double) == 1 || (value as? Int64) == 1
                try expectEqual(context.fetch(request).compactMap(\.name), isOne ? ["c"] : [], "\(value)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `without an order the first objects in the order of insertion are found, whatever index leads to them`(
        _ kind: StoreKind
    ) throws {
        // In the index the second of the equal objects comes first.
        let model = GuideModel.make()
        if let venue = model.entitiesByName["Venue"] {
            let elements = ["price", "distance"].compactMap { venue.propertiesByName[$0] }
                .map { NSFetchIndexElementDescription(property: $0, collationType: .binary) }
            venue.indexes = [NSFetchIndexDescription(name: "byPriceAndDistance", elements: elements)]
        }
        let context = try stack(kind, model).context()
        var random = SeededRandom(seed: 2)
        let questions = [
            Question(format: "price == %d", arguments: [1], limit: 1, answer: ["a"]),
            Question(format: "price == %d", arguments: [1], limit: 2, answer: ["a", "b"]),
            Question(format: "price == %d", arguments: [1], answer: ["a", "b"]),
            Question(format: "price == %d", arguments: [1], limit: 1, offset: 1, answer: ["b"]),
            Question(format: "price == %d", arguments: [1], limit: 1, offset: 2, answer: []),
            Question(format: "price == %d", arguments: [2], limit: 1, answer: ["c"]),
            Question(format: "price == %d", arguments: [3], limit: 1, answer: []),
            Question(format: "price >= %d", arguments: [1], limit: 1, answer: ["a"]),
            Question(format: "price == %d AND distance <= %f", arguments: [1, 2.0], limit: 1, answer: ["b"]),
            Question(format: "price == %d AND favorite == NO", arguments: [1], limit: 1, answer: ["a"]),
            Question(format: "price == %d AND createdAt == nil", arguments: [1], limit: 1, answer: ["b"]),
            Question(format: "price == %d", arguments: [1], limit: 1, isDeep: false, answer: ["a"]),
            Question(entity: "Bar", format: "price == %d", arguments: [1], limit: 1, answer: ["b"]),
            Question(format: "name ==[c] %@", arguments: ["B"], limit: 1, answer: ["b"]),
        ]
        try context.performAndWait {
            for round in 0..<4 {
                for question in round == 0 ? questions : questions.shuffled(using: &random) {
                    let request = NSFetchRequest<Venue>(entityName: question.entity)
                    request.predicate = NSPredicate(format: question.format, argumentArray: question.arguments)
                    request.fetchLimit = question.limit
                    request.fetchOffset = question.offset
                    request.includesSubentities = question.isDeep
                    let found = try context.fetch(request)
                    // Without a limit any order would do.
                    expectEqual(
                        question.limit == 0 ? found.compactMap(\.name).sorted() : found.compactMap(\.name),
                        question.answer,
                        "\(question)"
                    )
                    try expectEqual(context.count(for: request), question.answer.count, "\(question)")
                    let ids = NSFetchRequest<NSManagedObjectID>(entityName: question.entity)
                    (ids.predicate, ids.resultType) = (request.predicate, .managedObjectIDResultType)
                    (ids.fetchLimit, ids.fetchOffset) = (question.limit, question.offset)
                    ids.includesSubentities = question.isDeep
                    try expectEqual(Set(context.fetch(ids)), Set(found.map(\.objectID)), "\(question)")
                }
            }
        }
    }
}
