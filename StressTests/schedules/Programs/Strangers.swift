import CoreData
import StrataLocks

/// One context reads beside other programs, which change rows with a new version or without one.
struct Strangers: Program {
    static let name = "strangers"
    static let summary =
        "a context reads beside other programs: it sees their transactions whole, and what it finds fits the predicate"
    static let guards: [String] = []
    static let needsFile = true

    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        ids = try stack.fill(["a", "b", "c"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, ids, place) = (stack, ids, place)
        let others: [@Sendable () throws -> Void] = (0..<2).map { number in
            {
                for round in 0..<2 {
                    let value = 1 + number * 2 + round
                    // One half of the changes give no new version.
                    let version = (value + Int(place.seed)) % 2 == 0 ? ", Z_OPT = Z_OPT + 1" : ""
                    try OtherProgram(place).run("UPDATE ZBOX SET ZCOUNT = \(value)\(version)")
                }
            }
        }
        let reader: @Sendable () throws -> Void = {
            let context = stack.context()
            for round in 0..<4 {
                try context.performAndWait {
                    context.refreshAllObjects()
                    // Some of the rows are cached before the fetch.
                    let count = try context.existingObject(with: ids[round % ids.count]).count
                    let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
                    request.returnsObjectsAsFaults = false
                    if round % 2 == 1 { request.predicate = NSPredicate(format: "count <= %d", count) }
                    let counts = try context.fetch(request).map(\.count)
                    place.expect(Set(counts).count <= 1, "half a transaction is seen: \(counts)")
                    place.expect(
                        round % 2 == 0 || counts.allSatisfy { $0 <= count },
                        "a fetch of counts up to \(count) finds \(counts)"
                    )
                }
            }
        }
        return others + [reader]
    }

    func judge() throws {
        let stored = try place.stack().counts()
        let context = stack.context()
        let shown = try context.performAndWait { try ids.map { try context.existingObject(with: $0).count } }
        place.expect(Set(shown) == Set(stored.values), "the row cache shows \(shown), and \(stored) is stored")
    }
}
