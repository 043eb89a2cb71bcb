import CoreData
import StrataLocks

/// A store is migrated to another file while contexts save and read.
struct Moves: Program {
    static let name = "moves"
    static let summary = "a store is moved to another file while contexts save and read: nothing is lost, or seen twice"
    static let guards: [String] = []
    static let needsFile = true

    private static let rounds = 3
    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        ids = try stack.fill(["a", "b"])
    }

    private static func second(_ place: Place) -> URL { place.folder.appendingPathComponent("second.sqlite") }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, ids, place) = (stack, ids, place)
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            let context = stack.context(.mergeByPropertyObjectTrump, named: "writer \(number)")
            return {
                for round in 1...Self.rounds {
                    try context.performAndWait {
                        try context.existingObject(with: ids[number]).count = round
                        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                        box.setValue("\(number).\(round)", forKey: "name")
                        try context.save()
                    }
                }
            }
        }
        let reader: @Sendable () throws -> Void = {
            var last = 0
            for _ in 0..<Self.rounds {
                let counts = try stack.counts()
                let count = counts["a"] ?? -1
                place.expect(count >= last, "\(count) is read after \(last)")
                last = count
            }
        }
        let mover: @Sendable () throws -> Void = {
            guard let store = stack.persistentStores.first else { return }
            _ = try stack.migratePersistentStore(store, to: Self.second(place), options: nil, type: .sqlite)
        }
        return writers + [reader, mover]
    }

    func judge() throws {
        let seen = try stack.counts()
        try stack.close()
        let again = NSPersistentStoreCoordinator(managedObjectModel: Box.model)
        _ = try again.addPersistentStore(type: .sqlite, configuration: nil, at: Self.second(place), options: nil)
        let stored = try again.counts()
        place.expect(seen == stored, "\(seen) is seen, and \(stored) is stored")
        place.expect(stored["a"] == Self.rounds && stored["b"] == Self.rounds, "the last saves are lost: \(stored)")
        place.expect(stored.count == 2 + 2 * Self.rounds, "\(stored.keys.sorted()) is stored")
    }
}
