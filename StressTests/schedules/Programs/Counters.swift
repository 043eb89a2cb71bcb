import CoreData
import StrataLocks

/// Several contexts count in the same boxes, and repeat what others were first with.
struct Counters: Program {
    static let name = "counters"
    static let summary =
        "contexts add to shared counters with conflicts: no addition is lost, and every cache shows the sums"
    static let guards: [String] = []

    private static let rounds = 3
    private let place: Place
    private let stacks: [NSPersistentStoreCoordinator]
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        let first = try place.stack()
        stacks = place.isInMemory ? [first] : [first, try place.stack()]
        ids = try first.fill(["a", "b"])
    }

    var bodies: [@Sendable () throws -> Void] {
        (0..<3).map { number in
            let context = stacks[number % stacks.count].context()
            let uris = ids.map { $0.uriRepresentation() }
            return { [place] in
                for round in 0..<Self.rounds {
                    try context.performAndWait {
                        for _ in 0..<100 {
                            do {
                                let uri = uris[(number + round) % uris.count]
                                guard
                                    let id = context.persistentStoreCoordinator?.managedObjectID(
                                        forURIRepresentation: uri
                                    )
                                else { return place.find("an ID is unknown") }
                                try context.existingObject(with: id).count += 1
                                return try context.save()
                            } catch let error as CocoaError where error.code == .managedObjectMerge {
                                context.rollback()
                                context.refreshAllObjects()
                            }
                        }
                        place.find("100 attempts were in vain")
                    }
                }
            }
        }
    }

    func judge() throws {
        for stack in stacks + (place.isInMemory ? [] : [try place.stack()]) {
            let counts = try stack.counts()
            place.expect(
                counts.values.reduce(0, +) == 3 * Self.rounds,
                "the counts are \(counts), not \(3 * Self.rounds) in all"
            )
        }
    }
}
