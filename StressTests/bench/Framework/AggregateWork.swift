import CoreData

/// W11: sums and counts of all venues, which need no object.
///
/// The results are Swift dictionaries. Foundation would take a tenth of the time that SQLite takes for all the rest
/// to make an `NSDictionary` for each city and to read it.
enum AggregateWork {
    static func run(_ context: NSManagedObjectContext) throws -> Sample {
        try context.performAndWait {
            let clock = ContinuousClock()
            let start = clock.now
            let favourites = NSFetchRequest<Venue>(entityName: "Venue")
            favourites.predicate = NSPredicate(format: "favorite == YES")
            var checksum = try context.count(for: favourites)

            let whole = request([column("sum", "sum:", "price"), column("farthest", "max:", "distance")])
            for result in try context.fetch(whole) {
                checksum &+= integer(result, "sum") &+ integer(result, "farthest")
            }

            let groups = request([
                "city", column("count", "count:", "objectID"), column("sum", "sum:", "price"),
                column("mean", "average:", "distance"),
            ])
            groups.propertiesToGroupBy = ["city"]
            groups.sortDescriptors = [NSSortDescriptor(key: "city", ascending: true)]
            for result in try context.fetch(groups) {
                checksum &+= integer(result, "count") &+ integer(result, "sum") &+ integer(result, "mean")
            }
            return Sample(duration: clock.now - start, checksum: checksum)
        }
    }

    private static func request(_ properties: [Any]) -> NSFetchRequest<[String: Any]> {
        let request = NSFetchRequest<[String: Any]>(entityName: "Venue")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = properties
        return request
    }

    private static func column(_ name: String, _ function: String, _ key: String) -> NSExpressionDescription {
        let column = NSExpressionDescription()
        column.name = name
        column.expression = NSExpression(forFunction: function, arguments: [NSExpression(forKeyPath: key)])
        return column
    }

    private static func integer(_ result: [String: Any], _ key: String) -> Int {
        (result[key] as? NSNumber)?.intValue ?? 0
    }
}
