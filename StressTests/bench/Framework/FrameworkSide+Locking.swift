import CoreData

extension FrameworkSide {
    /// Locks one row after the other, each in a block that changes and saves it.
    static func changeLocked(_ stack: Stack, scale: Scale) throws -> Sample {
        let ids = try ids(stack, scale: scale)
        let context = stack.context
        return try Sample.measuring {
            var checksum = 0
            for id in ids {
                checksum &+= try context.performAndWait(locking: .seconds(60)) {
                    let request = NSFetchRequest<Venue>(entityName: "Venue")
                    request.predicate = NSPredicate(format: "SELF == %@", id)
                    request.rowLock = RowLock(.update)
                    guard let venue = try context.fetch(request).first else { throw BenchError("\(id) is not there") }
                    venue.price = venue.price & 0x3FFF + 1
                    try context.save()
                    return Int(venue.price)
                }
            }
            return checksum
        }
    }
}
