import CoreData
import StrataLocks
import Synchronization

/// Asynchronous fetches are held while they read, and end in any order, while others save.
///
/// Each must return what was stored at its beginning, or what is stored at its end, and nothing that has gone.
extension SocietyProgram {
    func readBeside(_ stream: inout SeededStream) throws -> String? {
        // A store in memory holds its lock while it reads.
        guard run.kind == .sqlite else { return nil }
        var held: [SocietyRead] = []
        defer { for read in held { read.release() } }
        for _ in 0..<(3 + stream.below(5)) {
            // A coordinator has at least two threads for these fetches.
            if held.count < 2, stream.chance(0.5) {
                let read = SocietyRead(try reader(&stream), SocietyQuery.draw(&stream), stored)
                note("begin a fetch of \(read.query)")
                held.append(read)
                try read.begin()
            } else if stream.chance(0.6) {
                if stream.chance(0.6) {
                    try changeRowsByBatch(&stream)
                } else {
                    _ = try letOthersSave(3, .all, &stream)
                }
            } else if !held.isEmpty {
                if let trouble = try end(held.remove(at: stream.below(held.count)), &stream) { return trouble }
            }
        }
        while !held.isEmpty {
            if let trouble = try end(held.remove(at: stream.below(held.count)), &stream) { return trouble }
        }
        return nil
    }

    /// A context on the store, or a child of such a context.
    private func reader(_ stream: inout SeededStream) throws -> SocietyDesk {
        let desk = desk()
        guard stream.chance(0.3) else { return desk }
        let context = NSManagedObjectContext(.privateQueue)
        context.parent = desk.context
        return SocietyDesk(context) { [unowned self] in ids[$0] }
    }

    private func end(_ read: SocietyRead, _ stream: inout SeededStream) throws -> String? {
        note("end the fetch")
        // Only the parent saves this, and the child is not notified.
        var hasSaved = false
        if let parent = read.desk.context.parent, stream.chance(0.7) {
            var seen = stored
            let above = SocietyDesk(parent) { [unowned self] in ids[$0] }
            try make(.newPerson(next(), style: nil, rank: Int64(stream.below(4))), at: above, &seen)
            try above.perform { try parent.save() }
            settle(seen, above)
            hasSaved = true
        }
        read.release()
        let answer = try read.answer()
        // The rows that the fetch has read may be older than the cached ones.
        let finder = desk()
        for (serial, person) in stored.people {
            let rank = try finder.perform { try finder.person(serial).rank }
            if rank != person.rank {
                return "after a fetch that was held \(serial) is found with rank \(rank), expected \(person.rank)"
            }
        }
        // The result may be that of the beginning, unless one of its objects has gone, or the context's own tree has
        // saved.
        let (old, new) = (read.query.answer(read.begun), read.query.answer(stored))
        let isOfBeginning = !hasSaved && answer == old && old.allSatisfy { stored.people[$0] != nil }
        if answer != new, !isOfBeginning {
            return
                "a fetch that was held, of \(read.query), gives \(answer), expected \(new), or at its beginning \(old)"
        }
        return try check(read.desk, stored, "after a fetch that was held") ?? checkStore("after a fetch that was held")
    }

    private func changeRowsByBatch(_ stream: inout SeededStream) throws {
        if stream.chance(0.5) { return try deleteByBatch(&stream) }
        note("batch update of all ranks")
        let request = NSBatchUpdateRequest(entityName: "Person")
        request.propertiesToUpdate = ["rank": NSExpression(format: "rank + 1")]
        let context = stack.context()
        try context.performAndWait { _ = try context.execute(request) }
        for serial in stored.people.keys { stored.people[serial]?.rank += 1 }
    }

    private func deleteByBatch(_ stream: inout SeededStream) throws {
        let serial = stream.pick(stored.people.keys.sorted())
        note("batch deletion of \(serial)")
        let context = stack.context()
        var after = stored
        after.deletePerson(serial)
        try context.performAndWait {
            _ = try context.execute(NSBatchDeleteRequest(objectIDs: [ids[serial]].compactMap { $0 }))
        }
        stored = after
    }
}

/// A fetch that stops when it begins to read, and waits until it is released.
private final class SocietyRead {
    let desk: SocietyDesk
    let query: SocietyQuery
    private let gate = Gate()
    private var outcome: Outcome?

    /// The stored society at its beginning.
    let begun: Society

    init(_ desk: SocietyDesk, _ query: SocietyQuery, _ begun: Society) {
        (self.desk, self.query, self.begun) = (desk, query, begun)
    }

    /// Starts the fetch, and waits until it reads.
    func begin() throws {
        let (context, request, gate, outcome) = (
            desk.context, UncheckedRequest(query.request(Person.self)), gate, Outcome()
        )
        self.outcome = outcome
        Task.detached {
            do {
                let serials = try await context.fetch(request.value) { progress in
                    // The rows are counted in the same transaction in which they are read.
                    if progress.expectedRows != nil { gate.stopOnce() }
                } _: {
                    $0.map(\.serial)
                }
                outcome.end(.success(serials))
            } catch { outcome.end(.failure(error)) }
            // If there is nothing to read, the fetch ends without reaching the gate.
            gate.stopNobody()
        }
        guard gate.waitForArrival() else { throw StressError("a fetch does not begin to read") }
    }

    func release() { gate.open() }

    /// The result of the fetch.
    func answer() throws -> [Int64] { try outcome?.wait().get() ?? [] }

    /// The end of the fetch, which a task reports.
    private final class Outcome: Sendable {
        private let result = Locked<Result<[Int64], any Error>?>(nil)
        private let ended = DispatchSemaphore(value: 0)

        func end(_ end: Result<[Int64], any Error>) {
            result.withLock { $0 = end }
            ended.signal()
        }

        func wait() throws -> Result<[Int64], any Error> {
            guard ended.wait(timeout: .now() + 20) == .success, let end = result.withLock({ $0 }) else {
                throw StressError("a fetch that was released does not end")
            }
            return end
        }
    }

    /// The place where the reading thread waits when it reaches it for the first time.
    private final class Gate: Sendable {
        private let arrived = DispatchSemaphore(value: 0)
        private let opened = DispatchSemaphore(value: 0)
        private let isFirst = Atomic(true)

        func stopOnce() {
            guard isFirst.exchange(false, ordering: .relaxed) else { return }
            arrived.signal()
            _ = opened.wait(timeout: .now() + 20)
        }

        func stopNobody() { arrived.signal() }

        func waitForArrival() -> Bool { arrived.wait(timeout: .now() + 20) == .success }

        func open() { opened.signal() }
    }

    /// Carries a request to the only task that uses it.
    private struct UncheckedRequest: @unchecked Sendable {
        // @unchecked Sendable: it is made for one task, and only this task uses it.
        let value: NSFetchRequest<Person>

        init(_ value: NSFetchRequest<Person>) { self.value = value }
    }
}
