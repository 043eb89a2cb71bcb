import CoreData
import StrataLocks

/// Several contexts save while others read the history as it grows, and a pinned context reads what it saw at first.
struct Histories: Program {
    static let name = "histories"
    static let summary =
        "readers follow the history while others save and old transactions are purged: each is seen once, in order"
    static let guards: [String] = []
    static let needsFile = true

    private static let rounds = 3
    private let place: Place
    private let stacks: [NSPersistentStoreCoordinator]
    private let ids: [NSManagedObjectID]
    private let seen = Seen()

    final class Seen: Sendable {
        let names = Locked<[String]>([])
        let token = Locked<NSPersistentHistoryToken?>(nil)
    }

    init(_ place: Place) throws {
        self.place = place
        let stack = try place.stack()
        stacks = [stack, try place.stack()]
        ids = try stack.fill(["a", "b"])
        seen.token.withLock { $0 = stack.currentPersistentHistoryToken(fromStores: nil) }
    }

    var bodies: [@Sendable () throws -> Void] {
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            let stack = stacks[number % stacks.count]
            return {
                let context = stack.context(.mergeByPropertyObjectTrump)
                for round in 0..<Self.rounds {
                    try context.performAndWait {
                        context.transactionAuthor = "\(number).\(round)"
                        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                        box.setValue("\(number).\(round)", forKey: "name")
                        try context.save()
                    }
                }
            }
        }
        let (stack, seen, place, id) = (stacks[0], seen, place, ids[0])
        let reader: @Sendable () throws -> Void = { for _ in 0..<4 { try Self.read(stack, seen) } }
        let pinned: @Sendable () throws -> Void = {
            let context = stack.context()
            try context.performAndWait {
                try context.setQueryGenerationFrom(.current)
                let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
                let first = try context.fetch(request).map(\.name).sorted()
                context.refreshAllObjects()
                let second = try context.fetch(request).map(\.name).sorted()
                place.expect(first == second, "a pinned context saw \(first), and then \(second)")
                place.expect(context.object(with: id).count == 0, "a pinned context reads another value")
            }
        }
        return writers + [reader, pinned]
    }

    private static func read(_ stack: NSPersistentStoreCoordinator, _ seen: Seen) throws {
        let context = stack.context()
        try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: seen.token.withLock { $0 })
            let result = try context.execute(request) as? NSPersistentHistoryResult
            for transaction in result?.result as? [NSPersistentHistoryTransaction] ?? [] {
                seen.names.withLock { $0.append(transaction.author ?? "") }
                seen.token.withLock { $0 = transaction.token }
            }
        }
    }

    func judge() throws {
        try Self.read(stacks[0], seen)
        let names = seen.names.withLock { $0 }
        let all = (0..<2).flatMap { number in (0..<Self.rounds).map { "\(number).\($0)" } }
        place.expect(names.sorted() == all, "the history shows \(names)")
        for number in 0..<2 {
            let own = names.filter { $0.hasPrefix("\(number).") }
            place.expect(own == own.sorted(), "the saves of a context are not in their order: \(names)")
        }
    }
}
