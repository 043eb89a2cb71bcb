import CoreData
import StrataLocks
import Synchronization

/// A program that is drawn from the seed: two to four contexts with five to fifteen calls each.
///
/// The reference of what must hold is computed from the log of the calls alone:
///
/// - A counter is the sum of all additions, each of which is repeated until no other one comes in between.
/// - A register holds the value of a write that no other write has followed. A read sees no value that was overwritten
///   before the read began, and none that was written after it has ended.
/// - The other boxes are those that were inserted and not deleted.
/// - Row caches, contexts that follow, and other coordinators show what is stored.
struct Drawn: Program {
    static let name = "drawn"
    static let summary = "programs that are drawn: the outcome is one that some order of their calls can have"
    static let guards: [String] = []
    static let isDrawn = true

    enum Call: CaseIterable {
        case add, addInChild, write, writeByBatch, read, readHeld, readAsynchronously, insert, insertWithID, delete
        case follow, unfollow, refresh, reset, undo, discard
    }

    /// A value of a register, with the time at which its write or read began and ended.
    private struct Access {
        var value: Int
        var start: Int
        var end: Int
    }

    private final class Log: Sendable {
        private let clock = Atomic(0)
        let writes = Locked<[Access]>([])
        let reads = Locked<[Access]>([])
        let additions = Atomic(0)
        let names = Locked<Set<String>>([])

        func now() -> Int { clock.add(1, ordering: .sequentiallyConsistent).newValue }
    }

    private let place: Place
    private let stacks: [NSPersistentStoreCoordinator]
    private let uris: [URL]
    private let contexts: [NSManagedObjectContext]
    private let calls: [[(number: Int, call: Call)]]
    private let log = Log()

    /// Two contexts, each with one call; both hold the objects.
    init(_ place: Place, _ first: Call, _ second: Call) throws {
        self.place = place
        stacks = [try place.stack()]
        uris = try stacks[0].fill(["counter", "register"]).map { $0.uriRepresentation() }
        contexts = [stacks[0].context(named: "0"), stacks[0].context(named: "1")]
        calls = [[(0, first)], [(1, second)]]
        for context in contexts {
            _ = try context.performAndWait {
                try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")).map(\.count)
            }
        }
    }

    init(_ place: Place) throws {
        self.place = place
        var random = SplitMix(place.seed)
        let first = try place.stack()
        let hasTwo = !place.isInMemory && random.below(3) == 0
        stacks = hasTwo ? [first, try place.stack()] : [first]
        uris = try first.fill(["counter", "register"]).map { $0.uriRepresentation() }
        var (contexts, calls, number) = ([NSManagedObjectContext](), [[(Int, Call)]](), 0)
        for context in 0..<(2 + random.below(3)) {
            contexts.append(stacks[context % stacks.count].context(named: "\(context)"))
            var own: [(Int, Call)] = []
            for _ in 0..<(5 + random.below(11)) {
                let call = Call.allCases[random.below(Call.allCases.count)]
                if !place.leftOut.contains(number) { own.append((number, call)) }
                number += 1
            }
            calls.append(own)
        }
        (self.contexts, self.calls) = (contexts, calls)
    }

    var listing: [String] {
        calls.enumerated().map { context, calls in
            "context \(context): " + calls.map { "\($0.number) \($0.call)" }.joined(separator: ", ")
        }
    }

    var callNumbers: [Int] { calls.flatMap { $0.map(\.number) } }

    var bodies: [@Sendable () throws -> Void] {
        contexts.indices.map { number in
            let worker = Worker(contexts[number], number, uris, log, place)
            let calls = calls[number]
            return { for call in calls { try worker.make(call.call, call.number) } }
        }
    }

    /// Makes the calls of one context.
    private final class Worker: @unchecked Sendable {
        // @unchecked Sendable: one thread uses it.
        private let context: NSManagedObjectContext
        private let number: Int
        private let ids: [NSManagedObjectID]
        private let log: Log
        private let place: Place
        private var own: [String] = []

        init(_ context: NSManagedObjectContext, _ number: Int, _ uris: [URL], _ log: Log, _ place: Place) {
            (self.context, self.number, self.log, self.place) = (context, number, log, place)
            ids = uris.compactMap { context.persistentStoreCoordinator?.managedObjectID(forURIRepresentation: $0) }
        }

        func make(_ call: Call, _ serial: Int) throws {
            switch call {
            case .add: try add(in: context)
            case .addInChild:
                let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
                child.parent = context
                try add(in: child)
            // The register begins with 0.
            case .write: try write(serial + 1) { self.context.object(with: self.ids[1]).count = serial + 1 }
            case .writeByBatch: try writeByBatch(serial + 1)
            case .read: try read { self.context.refreshAllObjects() }
            case .readHeld:
                context.performAndWait { context.refreshAllObjects() }
                try read {}
            case .readAsynchronously: try readAsynchronously()
            case .insert, .insertWithID: try insert(serial, hasID: call == .insertWithID)
            case .delete: try deleteOwn()
            case .follow, .unfollow:
                context.performAndWait {
                    context.automaticallyMergesChangesFromParent = call == .follow
                    // Earlier saves are not merged any more.
                    context.refreshAllObjects()
                }
            case .refresh: context.performAndWait { context.refreshAllObjects() }
            case .reset: context.performAndWait { context.reset() }
            case .undo, .discard:
                context.performAndWait {
                    context.undoManager = UndoManager()
                    context.object(with: ids[0]).count += 1000
                    context.processPendingChanges()
                    if call == .undo { context.undo() }
                    context.rollback()
                    context.undoManager = nil
                }
            }
        }

        private func add(in target: NSManagedObjectContext) throws {
            for _ in 0..<100 {
                do {
                    // In one block: a merge between the two saves of a child's change would make it one of the new value.
                    try context.performAndWait {
                        try target.performAndWait {
                            try target.existingObject(with: ids[0]).count += 1
                            try target.save()
                        }
                        if target !== context { try context.save() }
                    }
                    log.additions.add(1, ordering: .relaxed)
                    return
                } catch let error as CocoaError where error.code == .managedObjectMerge {
                    for used in [target, context] {
                        used.performAndWait {
                            used.rollback()
                            used.refreshAllObjects()
                        }
                    }
                }
            }
            place.find("100 attempts were in vain")
        }

        private func write(_ value: Int, _ change: () throws -> Void) throws {
            let start = log.now()
            try context.performAndWait {
                context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
                defer { context.mergePolicy = NSMergePolicy.error }
                try change()
                try context.save()
            }
            note(Access(value: value, start: start, end: log.now()))
        }

        private func writeByBatch(_ value: Int) throws {
            let start = log.now()
            let update = NSBatchUpdateRequest(entityName: "Box")
            update.propertiesToUpdate = ["count": value]
            update.predicate = NSPredicate(format: "name == 'register'")
            try context.performAndWait { _ = try context.execute(update) }
            note(Access(value: value, start: start, end: log.now()))
            context.performAndWait { context.refreshAllObjects() }
        }

        private func note(_ access: Access) { log.writes.withLock { $0.append(access) } }

        private func read(_ prepare: () -> Void) throws {
            let start = log.now()
            let value = try context.performAndWait {
                prepare()
                return try context.existingObject(with: ids[1]).count
            }
            let access = Access(value: value, start: start, end: log.now())
            log.reads.withLock { $0.append(access) }
        }

        private func readAsynchronously() throws {
            let end = Waiter()
            let mine = own
            let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
            let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { [place] result in
                let names = (result.finalResult ?? []).map(\.name)
                if let error = result.operationError { place.find("a fetch fails: \(error)") }
                if !mine.allSatisfy(names.contains) { place.find("a fetch finds \(names), not all of \(mine)") }
                end.call()
            }
            try context.performAndWait { _ = try context.execute(fetch) }
            end.sleep()
        }

        private func insert(_ serial: Int, hasID: Bool) throws {
            try context.performAndWait {
                let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                box.setValue("\(number).\(serial)", forKey: "name")
                if hasID { try context.obtainPermanentIDs(for: [box]) }
                try context.save()
            }
            own.append("\(number).\(serial)")
            log.names.withLock { _ = $0.insert("\(number).\(serial)") }
        }

        private func deleteOwn() throws {
            guard let name = own.popLast() else { return }
            try context.performAndWait {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
                request.predicate = NSPredicate(format: "name == %@", name)
                let found = try context.fetch(request)
                if found.count != 1 { place.find("\(found.count) boxes are called \(name)") }
                found.forEach(context.delete)
                try context.save()
            }
            log.names.withLock { _ = $0.remove(name) }
        }
    }

    // MARK: - Judging

    func judge() throws {
        let stored = try place.isInMemory ? stacks[0].counts() : place.stack().counts()
        let additions = log.additions.load(ordering: .relaxed)
        place.expect(stored["counter"] == additions, "the counter is \(stored["counter"] ?? -1), not \(additions)")
        let names = log.names.withLock { $0 }.union(["counter", "register"])
        place.expect(Set(stored.keys) == names, "the boxes are \(stored.keys.sorted()), not \(names.sorted())")
        judgeRegister(stored["register"] ?? -1)
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
        for context in contexts {
            context.performAndWait {
                guard context.automaticallyMergesChangesFromParent, stacks.count == 1 else { return }
                // A batch is not merged by itself.
                guard !calls.contains(where: { $0.contains { $0.call == .writeByBatch } }) else { return }
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

    private func judgeRegister(_ last: Int) {
        let writes = log.writes.withLock { $0 } + [Access(value: 0, start: 0, end: 0)]
        var reads = log.reads.withLock { $0 }
        reads.append(Access(value: last, start: .max - 1, end: .max))
        for read in reads {
            guard let source = writes.first(where: { $0.value == read.value }) else {
                place.find("a read gives \(read.value), which nothing has written")
                continue
            }
            place.expect(source.start < read.end, "a read gives \(read.value) before it is written")
            if let newer = writes.first(where: { source.end < $0.start && $0.end < read.start }) {
                place.find("a read gives \(read.value) after \(newer.value) has been written")
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
}
