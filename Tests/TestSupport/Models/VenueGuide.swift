import CoreData
import StrataRows

/// A stored guide with three cities and six venues.
///
/// One venue is a bar, and has no city and no date.
///
/// | venue    | price | distance | favourite | rating | city   | created |
/// |----------|-------|----------|-----------|--------|--------|---------|
/// | Adega    | 10    | 1.5      | yes       | 4.5    | Porto  | 100     |
/// | Bica     | 20    | 2.5      | no        | 3.25   | Porto  | 200     |
/// | Cais     | 30    | 0.5      | yes       |        | Lisbon | 300     |
/// | Doca     | 10    | 4        | no        | 5      | Lisbon | 400     |
/// | (none)   | 20    | 1        | no        |        | Lisbon | 500     |
/// | Elevador | 5     | 8        | no        |        |        |         |
package struct VenueGuide {
    package let stack: Stack

    package init(_ kind: StoreKind) throws {
        stack = try Stack(kind)
        let context = stack.context("filling")
        try context.performAndWait {
            Self.fill(context)
            try context.save()
        }
    }

    package static func fill(_ context: NSManagedObjectContext) {
        let porto = city("Porto", 230_000, context)
        let lisbon = city("Lisbon", 550_000, context)
        _ = city("Faro", 60_000, context)
        let old = Tag(context: context)
        old.title = "old"
        let adega = venue("Adega", 10, 1.5, created: 100, rating: 4.5, porto, context)
        adega.favorite = true
        adega.tags = [old]
        venue("Bica", 20, 2.5, created: 200, rating: 3.25, porto, context).tags = [old]
        venue("Cais", 30, 0.5, created: 300, rating: nil, lisbon, context).favorite = true
        _ = venue("Doca", 10, 4, created: 400, rating: 5, lisbon, context)
        _ = venue(nil, 20, 1, created: 500, rating: nil, lisbon, context)
        let bar = Bar(context: context)
        bar.name = "Elevador"
        bar.price = 5
        bar.distance = 8
        bar.beers = 7
    }

    private static func city(_ name: String, _ population: Int64, _ context: NSManagedObjectContext) -> City {
        let city = City(context: context)
        city.name = name
        city.population = population
        return city
    }

    private static func venue(
        _ name: String?,
        _ price: Int16,
        _ distance: Double,
        created: Double,
        rating: Decimal?,
        _ city: City,
        _ context: NSManagedObjectContext
    ) -> Venue {
        let venue = Venue(context: context)
        venue.name = name
        venue.price = price
        venue.distance = distance
        venue.createdAt = Date(timeIntervalSinceReferenceDate: created)
        venue.rating = rating
        venue.city = city
        return venue
    }

    /// Runs `body` inside the scope of a new context.
    package func read<Result>(_ body: (NSManagedObjectContext) throws -> Result) throws -> Result {
        let context = stack.context("reading")
        return try context.performAndWait { try body(context) }
    }

    /// Fetches dictionaries in a new context.
    package func dictionaries(
        _ entity: String,
        _ properties: [Any]?,
        _ setUp: (NSFetchRequest<NSDictionary>) -> Void = { _ in }
    ) throws -> [NSDictionary] {
        try read { try $0.dictionaries(entity, properties, setUp) }
    }
}

extension NSManagedObjectContext {
    /// Fetches dictionaries.
    package func dictionaries(
        _ entity: String,
        _ properties: [Any]?,
        _ setUp: (NSFetchRequest<NSDictionary>) -> Void = { _ in }
    ) throws -> [NSDictionary] {
        let request = NSFetchRequest<NSDictionary>(entityName: entity)
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = properties
        setUp(request)
        return try fetch(request)
    }
}

/// A computed column.
package func computed(
    _ name: String,
    _ format: String,
    _ type: NSAttributeDescription.AttributeType = .undefined
) -> NSExpressionDescription {
    let description = NSExpressionDescription()
    description.name = name
    description.expression = NSExpression(format: format)
    description.resultType = type
    return description
}

/// A function of one key path.
package func aggregate(
    _ name: String,
    _ function: String,
    _ keyPath: String,
    _ type: NSAttributeDescription.AttributeType = .undefined
) -> NSExpressionDescription {
    let description = NSExpressionDescription()
    description.name = name
    description.expression = NSExpression(
        forFunction: function,
        arguments: [NSExpression(forKeyPath: keyPath)]
    )
    description.resultType = type
    return description
}

extension NSSortDescriptor {
    /// Sorts by a key, smallest first.
    package static func by(_ key: String, ascending: Bool = true) -> NSSortDescriptor {
        NSSortDescriptor(key: key, ascending: ascending)
    }
}
