import CoreData
import StrataLocks

/// Two contexts are pinned by one token, and read for the first time at the same moment.
struct Pins: Program {
    static let name = "pins"
    static let summary = "contexts that share a token see one moment, while others save"
    static let guards: [String] = []
    static let needsFile = true

    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let pinned: [NSManagedObjectContext]
    private let ids: [NSManagedObjectID]
    private let desk = Desk()

    private final class Desk: Sendable {
        let seen = Locked<[String]>([])
    }

    init(_ place: Place) throws {
        self.place = place
        let stack = try place.stack()
        self.stack = stack
        ids = try stack.fill(["a", "b"])
        pinned = (0..<2).map { stack.context(named: "pinned \($0)") }
        try pinned[0].performAndWait { [pinned] in try pinned[0].setQueryGenerationFrom(.current) }
        let token = pinned[0].performAndWait { [pinned] in pinned[0].queryGenerationToken }
        try pinned[1].performAndWait { [pinned] in try pinned[1].setQueryGenerationFrom(token) }
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, ids, desk) = (stack, ids, desk)
        let readers: [@Sendable () throws -> Void] = pinned.map { context in
            {
                for _ in 0..<2 {
                    let counts = try context.performAndWait {
                        context.refreshAllObjects()
                        let boxes = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box"))
                        return boxes.sorted { $0.name < $1.name }.map(\.count)
                    }
                    desk.seen.withLock { $0.append("\(counts)") }
                }
            }
        }
        let writer: @Sendable () throws -> Void = {
            let context = stack.context(.mergeByPropertyObjectTrump)
            for round in 1...3 {
                try context.performAndWait {
                    for id in ids { context.object(with: id).count = round }
                    try context.save()
                }
            }
        }
        return readers + [writer]
    }

    func judge() throws {
        let seen = Set(desk.seen.withLock { $0 })
        place.expect(seen.count == 1, "contexts of one token have seen \(seen.sorted())")
        place.expect(seen.allSatisfy { (0...3).map { "[\($0), \($0)]" }.contains($0) }, "half a save: \(seen)")
    }
}
