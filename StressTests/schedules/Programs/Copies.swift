import CoreData
import StrataLocks

/// The log of a file is copied into it every few pages, while contexts save, read, pin, and close one of two coordinators.
struct Copies: Program {
    static let name = "copies"
    static let summary =
        "a log of a few pages is copied beside saves, reads, pinned reads and a closing: nothing is lost, or seen half"
    static let guards: [String] = []
    static let needsFile = true

    private static let rounds = 4
    private let place: Place
    private let stacks: [NSPersistentStoreCoordinator]
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        let settings = Place.Settings(logPages: 2 + Int32(place.seed % 3))
        stacks = [try place.stack(settings), try place.stack(settings)]
        ids = try stacks[0].fill(["a", "b"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stacks, ids, place) = (stacks, ids, place)
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            let context = stacks[0].context(.mergeByPropertyObjectTrump, named: "writer \(number)")
            return {
                for round in 0..<Self.rounds {
                    try context.performAndWait {
                        if number == 0 { for id in ids { context.object(with: id).count = round + 1 } }
                        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                        // Long names make the log longer.
                        box.setValue("\(number).\(round)" + String(repeating: " ", count: 5000), forKey: "name")
                        try context.save()
                    }
                }
            }
        }
        let reader: @Sendable () throws -> Void = {
            var last = 0
            for round in 0..<Self.rounds {
                let context = stacks[0].context()
                let counts = try context.performAndWait {
                    if round % 2 == 1 { try context.setQueryGenerationFrom(.current) }
                    let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
                    request.predicate = NSPredicate(format: "name IN {'a', 'b'}")
                    // A fault that fires later shows a later moment.
                    request.returnsObjectsAsFaults = false
                    return try context.fetch(request).map(\.count)
                }
                place.expect(Set(counts).count == 1, "half a save is seen: \(counts)")
                place.expect(counts[0] >= last, "\(counts[0]) is seen after \(last)")
                last = counts[0]
            }
        }
        let closer: @Sendable () throws -> Void = {
            _ = try stacks[1].fill(["c"])
            try stacks[1].close()
        }
        return writers + [reader, closer]
    }

    func judge() throws {
        try stacks[0].close()
        // The last one to close leaves no log.
        let log = place.file.path + "-wal"
        place.expect(
            !FileManager.default.fileExists(atPath: log),
            "a log is left after the last coordinator has closed"
        )
        let stack = try place.stack()
        let names = try stack.counts().keys.map { $0.trimmingCharacters(in: .whitespaces) }.sorted()
        let wanted = (0..<2).flatMap { number in (0..<Self.rounds).map { "\(number).\($0)" } } + ["a", "b", "c"]
        place.expect(names == wanted.sorted(), "\(names) is stored, not \(wanted.sorted())")
        place.expect(try stack.counts()["a"] == Self.rounds, "the last save is lost")
    }
}
