import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Fetched results under random edits")
struct ResultsDifferentialTests {
    /// A request and its sections, whose results the test follows.
    struct Shape: Sendable, CustomTestStringConvertible {
        var predicate: String?
        var keys: [String]
        var sections: String?
        var limit = 0
        var offset = 0

        var testDescription: String {
            "\(predicate ?? "all") by \(keys), sections \(sections ?? "none"), \(limit) from \(offset)"
        }
    }

    private static let shapes: [Shape] = [
        Shape(keys: ["visits"]),
        Shape(predicate: "price > 3", keys: ["price", "visits"]),
        Shape(predicate: "price > 3", keys: ["price", "visits"], sections: "price"),
        Shape(keys: ["city.name", "visits"], sections: "city.name"),
        Shape(predicate: "city.population < 5", keys: ["city.population", "visits"], sections: "city.population"),
        Shape(predicate: "ANY city.venues.price = 7", keys: ["visits"]),
        Shape(keys: ["price", "visits"], limit: 7),
        Shape(predicate: "price < 6", keys: ["price", "visits"], sections: "price", limit: 10, offset: 3),
    ]

    @Test(arguments: StoreKind.allCases, shapes)
    func `the results equal a fresh fetch, and reported changes lead there`(_ kind: StoreKind, _ shape: Shape) throws {
        for seed in DifferentialSeeds.all.prefix(4) { try run(kind, shape, seed) }
    }

    private func run(_ kind: StoreKind, _ shape: Shape, _ seed: UInt64) throws {
        let merging = try Merging(kind)
        let context = merging.context
        var random = SeededRandom(seed: seed)
        try context.performAndWait {
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            var editor = RandomEditor()
            for _ in 0..<40 { editor.edit(context, &random) }
            try context.save()
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = shape.predicate.map { NSPredicate(format: $0) }
            request.sortDescriptors = shape.keys.map { NSSortDescriptor(key: $0, ascending: true) }
            request.fetchLimit = shape.limit
            request.fetchOffset = shape.offset
            let controller = Guide.controller(request, context, sections: shape.sections)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            for step in 0..<60 {
                switch Int.random(in: 0..<10, using: &random) {
                case 0: try context.save()
                case 1: context.rollback()
                case 2, 3:
                    try context.save()
                    try merging.saveAndMerge { other in
                        for _ in 0..<Int.random(in: 1...4, using: &random) { editor.edit(other, &random) }
                    }
                case 4: if Bool.random(using: &random) { context.refreshAllObjects() }
                default: for _ in 0..<Int.random(in: 1...6, using: &random) { editor.edit(context, &random) }
                }
                context.processPendingChanges()
                recorder.expectCopy(of: controller)
                let fresh = Guide.controller(request, context, sections: shape.sections)
                try fresh.performFetch()
                let told = recorder.take()
                try require(
                    controller.outline == fresh.outline,
                    "step \(step) of seed \(seed), told \(told)"
                )
            }
        }
    }
}

/// Makes one random change at a time.
private struct RandomEditor {
    private var count = 0

    mutating func edit(_ context: NSManagedObjectContext, _ random: inout SeededRandom) {
        let cities = objects(City.self, "population", context)
        let venues = objects(Venue.self, "visits", context)
        count += 1
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1, 2:
            let venue = Guide.venue("v\(count)", price: .random(in: 0..<10, using: &random), in: context)
            venue.visits = Int.random(in: 0..<1_000, using: &random) * 1_000 + count
            venue.city = cities.randomElement(using: &random)
        case 3: if let venue = venues.randomElement(using: &random) { context.delete(venue) }
        case 4, 5: venues.randomElement(using: &random)?.price = .random(in: 0..<10, using: &random)
        case 6: venues.randomElement(using: &random)?.visits = Int.random(in: 0..<1_000, using: &random) * 1_000 + count
        case 7, 8: venues.randomElement(using: &random)?.city = cities.randomElement(using: &random)
        case 9: cities.randomElement(using: &random)?.name = "c" + String(Int.random(in: 0..<6, using: &random))
        case 10: cities.randomElement(using: &random)?.population = .random(in: 0..<8, using: &random)
        default:
            if cities.count < 5 {
                let city = Guide.city("c" + String(Int.random(in: 0..<6, using: &random)), in: context)
                city.population = .random(in: 0..<8, using: &random)
            } else if let city = cities.randomElement(using: &random) {
                context.delete(city)
            }
        }
    }

    private func objects<T: NSManagedObject>(_ type: T.Type, _ key: String, _ context: NSManagedObjectContext) -> [T] {
        let request = NSFetchRequest<T>(entityName: String(describing: type))
        request.sortDescriptors = [NSSortDescriptor(key: key, ascending: true)]
        return (try? context.fetch(request)) ?? []
    }
}
