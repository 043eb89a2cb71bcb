import CoreData

/// Children of one context save into it while it is saved and read.
struct Trees: Program {
    static let name = "trees"
    static let summary =
        "children save into a parent that others save and read: nothing is lost, and nobody waits for ever"
    static let guards: [String] = []

    private static let rounds = 3
    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let parent: NSManagedObjectContext
    private let children: [NSManagedObjectContext]
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        ids = try stack.fill(["a", "b"])
        let parent = stack.context(.mergeByPropertyObjectTrump, named: "parent")
        self.parent = parent
        children = (0..<2).map {
            let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
            child.parent = parent
            child.name = "child \($0)"
            return child
        }
        children[1].performAndWait { [children] in children[1].automaticallyMergesChangesFromParent = true }
    }

    var bodies: [@Sendable () throws -> Void] {
        let (parent, ids) = (parent, ids)
        let writers: [@Sendable () throws -> Void] = children.enumerated().map { number, child in
            {
                for _ in 0..<Self.rounds {
                    try child.performAndWait {
                        child.object(with: ids[number]).count += 1
                        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: child)
                        box.setValue("of \(number)", forKey: "name")
                        box.count = 1
                        try child.save()
                    }
                }
            }
        }
        let savers: [@Sendable () throws -> Void] = [
            { for _ in 0..<Self.rounds { try parent.performAndWait { try parent.save() } } },
            {
                for _ in 0..<2 {
                    _ = try parent.performAndWait {
                        try parent.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")).map(\.count)
                    }
                }
            },
        ]
        return writers + savers
    }

    func judge() throws {
        try parent.performAndWait { try parent.save() }
        let expected = ["a": Self.rounds, "b": Self.rounds, "of 0": Self.rounds, "of 1": Self.rounds]
        let stored = try place.isInMemory ? stack.counts() : place.stack().counts()
        place.expect(stored == expected, "\(stored) is stored, not \(expected)")
    }
}
