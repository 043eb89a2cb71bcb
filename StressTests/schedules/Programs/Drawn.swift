import CoreData
import StrataLocks
import Synchronization

/// A program that is drawn from the seed: two to four contexts with five to fifteen calls each.
///
/// The reference of what must hold is computed from the log of the calls alone:
///
/// - A counter is the sum of all additions, each of which is repeated until no other one comes in between.
/// - A register holds the value of the last write, in one order of all writes and reads (``RegisterHistory``).
/// - A context that follows shows what was saved before it was asked (``FollowerLooks``).
/// - The other boxes are those that were inserted and not deleted.
/// - Row caches, contexts that follow, and other coordinators show what is stored.
///
/// Some stores are opened again after they were filled, so that no row is cached. Some have one reader, one thread for
/// asynchronous fetches, or a log of a few pages.
struct Drawn: Program {
    static let name = "drawn"
    static let summary = "programs that are drawn: the outcome is one that some order of their calls can have"
    static let guards: [String] = []
    static let isDrawn = true
    static let weight = 3

    private let place: Place
    private let stacks: [NSPersistentStoreCoordinator]
    private let uris: [URL]
    private let contexts: [NSManagedObjectContext]
    /// For each coordinator, a context that all threads use, and one that follows saves and does nothing else.
    private let common: [Common]
    private typealias Common = (shared: NSManagedObjectContext, follower: NSManagedObjectContext, looks: FollowerLooks)
    private let calls: [[(number: Int, call: DrawnCall)]]
    private let log = DrawnLog()

    /// Two contexts, each with one call; both hold the objects.
    init(_ place: Place, _ first: DrawnCall, _ second: DrawnCall) throws {
        self.place = place
        stacks = [try place.stack()]
        uris = try stacks[0].fill(["counter", "register"]).map { $0.uriRepresentation() }
        contexts = [stacks[0].context(named: "0"), stacks[0].context(named: "1")]
        common = try stacks.map(Self.common)
        calls = [[(0, first)], [(1, second)]]
        for context in contexts {
            _ = try context.performAndWait {
                try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")).map(\.count)
            }
        }
    }

    init(_ place: Place) throws { try self.init(place, contexts: 2...4, calls: 5...15) }

    /// A program that is drawn, with so many contexts and so many calls of each.
    init(_ place: Place, contexts contextRange: ClosedRange<Int>, calls callRange: ClosedRange<Int>) throws {
        self.place = place
        var random = SplitMix(place.seed)
        var first = try place.stack(random.settings())
        let filled = try first.fill(["counter", "register"])
        uris = filled.map { $0.uriRepresentation() }
        // A store that was opened again has no cached rows.
        if !place.isInMemory, random.below(2) == 0 {
            try first.close()
            first = try place.stack(random.settings())
        }
        let hasTwo = !place.isInMemory && random.below(2) == 0
        stacks = hasTwo ? [first, try place.stack(random.settings())] : [first]
        common = try stacks.map(Self.common)
        var (contexts, calls, number) = ([NSManagedObjectContext](), [[(Int, DrawnCall)]](), 0)
        let kinds = DrawnCall.kinds(&random)
        for context in 0..<random.within(contextRange) {
            contexts.append(stacks[context % stacks.count].context(named: "\(context)"))
            var own: [(Int, DrawnCall)] = []
            for _ in 0..<random.within(callRange) {
                let call = kinds[random.below(kinds.count)]
                if !place.leftOut.contains(number) { own.append((number, call)) }
                number += 1
            }
            calls.append(own)
        }
        (self.contexts, self.calls) = (contexts, calls)
    }

    private static func common(_ stack: NSPersistentStoreCoordinator) throws -> Common {
        let follower = stack.context(named: "follower")
        try follower.performAndWait {
            follower.automaticallyMergesChangesFromParent = true
            follower.userInfo["boxes"] = try follower.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box"))
        }
        return (stack.context(named: "shared"), follower, FollowerLooks())
    }

    var listing: [String] {
        calls.enumerated().map { context, calls in
            "context \(context): " + calls.map { "\($0.number) \($0.call)" }.joined(separator: ", ")
        }
    }

    /// A block whose time is short may wait for locks as long as it has time.
    var mayExpire: Bool { calls.contains { $0.contains { $0.call == .addLockedBriefly } } }

    var callNumbers: [Int] { calls.flatMap { $0.map(\.number) } }

    var bodies: [@Sendable () throws -> Void] {
        contexts.indices.map { number in
            let worker = DrawnWorker(contexts[number], common[number % stacks.count], number, uris, log, place)
            let calls = calls[number]
            return {
                for call in calls { try worker.make(call.call, call.number) }
                worker.finish()
            }
        }
    }

    // MARK: - Judging

    func judge() throws {
        let stored = try place.isInMemory ? stacks[0].counts() : place.stack().counts()
        let additions = log.additions.load(ordering: .relaxed)
        place.expect(stored["counter"] == additions, "the counter is \(stored["counter"] ?? -1), not \(additions)")
        let names = log.names.withLock { $0 }.union(["counter", "register"])
        place.expect(Set(stored.keys) == names, "the boxes are \(stored.keys.sorted()), not \(names.sorted())")
        let writes = log.writes.withLock { $0 }
        let last = RegisterHistory.Access(value: stored["register"] ?? -1, start: .max - 1, end: .max)
        let reads = log.reads.withLock { $0 } + [last]
        RegisterHistory(writes: writes, reads: reads).contradictions.forEach(place.find)
        common.forEach { $0.looks.contradictions(writes).forEach(place.find) }
        for stack in stacks {
            let context = stack.context()
            for (uri, name) in zip(uris, ["counter", "register"]) {
                guard let id = stack.managedObjectID(forURIRepresentation: uri) else { continue }
                let count = context.performAndWait { try? context.existingObject(with: id).count }
                place.expect(
                    count == stored[name],
                    "the row cache shows \(count ?? -1) for \(name), and \(stored[name] ?? -1) is stored"
                )
            }
        }
        judgeIDs()
        for context in contexts + common.map(\.follower) { judgeFollower(context, stored) }
    }

    /// An ID that was asked for at any time leads to the object, as long as that is stored.
    private func judgeIDs() {
        let names = log.names.withLock { $0 }
        for (shown, id) in log.asked.withLock({ $0 }) where names.contains(shown.name) {
            guard let stack = shown.object.managedObjectContext?.persistentStoreCoordinator else { continue }
            place.expect(!shown.object.objectID.isTemporaryID, "the ID of \(shown.name) stays temporary")
            let context = stack.context()
            let found = context.performAndWait { try? context.existingObject(with: id).name }
            place.expect(
                found == shown.name,
                "an ID that was asked for leads to \(found ?? "nothing"), not \(shown.name)"
            )
        }
    }

    /// A context that follows shows what is stored, unless something was written that is not merged by itself.
    private func judgeFollower(_ context: NSManagedObjectContext, _ stored: [String: Int]) {
        let unfollowed: Set<DrawnCall> = [.writeByBatch, .insertByBatch, .deleteByBatch, .writeElsewhere]
        let hasUnfollowed = calls.contains { $0.contains { unfollowed.contains($0.call) } }
        guard stacks.count == 1, !hasUnfollowed else { return }
        context.performAndWait {
            guard context.automaticallyMergesChangesFromParent else { return }
            for box in context.registeredObjects where !box.isDeleted && !box.isFault {
                place.expect(
                    box.count == stored[box.name],
                    "\(context.name ?? "") follows, and shows \(box.count) for \(box.name), "
                        + "not \(stored[box.name] ?? -1)"
                )
            }
        }
    }
}

/// Random numbers of a seed.
struct SplitMix {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 &+ 77 }

    mutating func below(_ limit: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int((bits ^ (bits >> 31)) % UInt64(limit))
    }

    mutating func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

    /// How a store is opened.
    mutating func settings() -> Place.Settings {
        Place.Settings(
            readers: below(2) == 0 ? 1 + below(2) : 8,
            backgroundReads: below(2),
            logPages: below(3) == 0 ? 4 : 0
        )
    }
}
