import CoreData

/// Two contexts save, and two follow them while they read.
struct Followers: Program {
    static let name = "followers"
    static let summary =
        "contexts that follow others while these insert, change and delete: at the end they show what is stored"
    static let guards = ["no-invalidation"]

    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let followers: [NSManagedObjectContext]
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        let stack = try place.stack()
        self.stack = stack
        ids = try stack.fill(["a", "b", "c"])
        followers = (0..<2).map { stack.context(.mergeByPropertyStoreTrump, named: "follower \($0)") }
        for follower in followers { follower.performAndWait { follower.automaticallyMergesChangesFromParent = true } }
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, ids) = (stack, ids)
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            {
                let context = stack.context(.mergeByPropertyObjectTrump, named: "writer \(number)")
                for round in 1...3 {
                    try context.performAndWait {
                        if let box = try? context.existingObject(with: ids[round % 2]) {
                            box.count += 10 * number + round
                        }
                        if round == 2, number == 0 { context.delete(context.object(with: ids[2])) }
                        if round == 3 {
                            let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                            box.setValue("new \(number)", forKey: "name")
                        }
                        try context.save()
                    }
                }
                guard number == 1 else { return }
                let update = NSBatchUpdateRequest(entityName: "Box")
                update.propertiesToUpdate = ["count": 99]
                update.predicate = NSPredicate(format: "name == 'a'")
                try context.performAndWait { _ = try context.execute(update) }
            }
        }
        let readers: [@Sendable () throws -> Void] = followers.map { follower in
            {
                for _ in 0..<3 {
                    try follower.performAndWait {
                        for box in try follower.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")) {
                            _ = box.count
                        }
                    }
                }
            }
        }
        return writers + readers
    }

    func judge() throws {
        let stored = try place.isInMemory ? stack.counts() : place.stack().counts()
        // An object that is looked up shows the row cache, as long as no fetch has read its row again.
        let context = stack.context()
        context.performAndWait {
            for (id, name) in zip(ids, ["a", "b", "c"]) {
                let count = try? context.existingObject(with: id).count
                place.expect(
                    count == stored[name],
                    "the row cache shows \(count ?? -1) for \(name), and \(stored[name] ?? -1) is stored"
                )
            }
        }
        let cached = try stack.counts()
        place.expect(cached == stored, "a new context shows \(cached), and \(stored) is stored")
        for follower in followers {
            let shown = follower.performAndWait {
                // What was merged has arrived with the end of the threads; a refreshed object reads the row cache.
                let boxes = follower.registeredObjects.filter { !$0.isDeleted && !$0.isFault }
                return Dictionary(boxes.map { ($0.name, $0.count) }) { $0 + $1 }
            }
            for (name, count) in shown where stored[name] != count && !(name == "a" && stored["a"] == 99) {
                place.find(
                    "\(follower.name ?? "") shows \(count) for \(name), and \(stored[name].map(String.init) ?? "nothing") is stored"
                )
            }
            let fetched = try follower.performAndWait {
                try follower.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")).map(\.name).sorted()
            }
            place.expect(fetched == stored.keys.sorted(), "\(follower.name ?? "") fetches \(fetched)")
        }
    }
}
