import CoreData
import StrataLocks

/// Contexts fetch without a thread, and save before the answer has come; another thread cancels some of the fetches.
struct Fetches: Program {
    static let name = "fetches"
    static let summary =
        "asynchronous fetches, some cancelled, while contexts save: each ends once, and shows what its context has saved"
    static let guards: [String] = []

    private static let rounds = 2
    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let desk = Desk()

    /// A fetch that may be cancelled.
    private struct Running: @unchecked Sendable {
        // @unchecked Sendable: any thread may cancel a fetch, and nothing else is done with it.
        let result: NSPersistentStoreAsynchronousResult
    }

    /// The state that the threads share.
    private final class Desk: Sendable {
        let running = Locked<[Running]>([])
        let ends = Locked<[Int]>([])
    }

    init(_ place: Place) throws {
        self.place = place
        // With one thread for such reads, they wait for each other.
        stack = try place.stack(Place.Settings(backgroundReads: Int(place.seed % 2)))
        _ = try stack.fill(["a", "b"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let desk = desk
        let readers: [@Sendable () throws -> Void] = (0..<3).map { number in
            let context = stack.context(.mergeByPropertyObjectTrump, named: "reader \(number)")
            return { [place] in
                for round in 0..<Self.rounds { try Self.fetch(context, number, round, desk, place) }
            }
        }
        let canceller: @Sendable () throws -> Void = {
            for _ in 0..<4 { desk.running.withLock { $0.popLast() }?.result.cancel() }
        }
        return readers + [canceller]
    }

    private static func fetch(
        _ context: NSManagedObjectContext,
        _ number: Int,
        _ round: Int,
        _ desk: Desk,
        _ place: Place
    ) throws {
        let end = Waiter()
        let fetch = NSAsynchronousFetchRequest(fetchRequest: NSFetchRequest<NSManagedObject>(entityName: "Box")) {
            result in
            let found = (result.finalResult ?? []).map(\.name)
            // The block is inside the scope, so nothing is saved there meanwhile.
            let saved = result.managedObjectContext.userInfo["saved"] as? [String] ?? []
            if let error = result.operationError { place.find("a fetch fails: \(error)") }
            if !found.isEmpty, !saved.allSatisfy(found.contains) {
                place.find("\(number) has saved \(saved), and its fetch finds \(found)")
            }
            if Set(found).count != found.count { place.find("a fetch finds \(found)") }
            desk.ends.withLock { $0.append(number * rounds + round) }
            end.call()
        }
        try context.performAndWait {
            let result = try context.execute(fetch)
            if number > 0, let result = result as? NSPersistentStoreAsynchronousResult {
                let running = Running(result: result)
                desk.running.withLock { $0.append(running) }
            }
        }
        try context.performAndWait {
            let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
            box.setValue("\(number).\(round)", forKey: "name")
            try context.save()
            context.userInfo["saved"] = (context.userInfo["saved"] as? [String] ?? []) + ["\(number).\(round)"]
        }
        end.sleep()
    }

    func judge() throws {
        let ends = desk.ends.withLock { $0.sorted() }
        place.expect(ends == Array(0..<3 * Self.rounds), "the completion blocks were called for \(ends)")
    }
}
