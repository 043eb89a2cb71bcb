import CoreData
import StrataLocks

/// One society from its beginning, through several drills.
///
/// A drill works in its own contexts, knows the expected outcome, and leaves the stored society to the next drill.
final class SocietyProgram: SteppedProgram {
    /// The kinds of drill.
    enum Drill: String, CaseIterable {
        case edits
        case conflicts
        case refusals
        case deletions
        case merges
        case children
        case strangers
        case pins
        case batches
        case upserts
        case reads
        case chains
        case upward
        case undoing
        case following
        case contests
        case leftovers
    }

    let run: Run
    let stack: NSPersistentStoreCoordinator
    /// The stored society.
    var stored = Society()
    private(set) var ids: [Int64: NSManagedObjectID] = [:]
    private var lastSerial: Int64 = 0
    private(set) var script: [String] = []
    private(set) var places: [Int] = []
    var branches: [String: Int] = [:]
    var isOver: Bool { false }

    /// Begins with an empty store.
    init(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        (self.run, self.stack) = (run, stack)
        let context = stack.context()
        try context.performAndWait {
            for entity in ["Person", "Club", "Tool", "Badge"] {
                try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity)).forEach(context.delete)
            }
            try context.save()
        }
    }

    func call(_ stream: inout SeededStream) throws -> String? {
        places.append(0)
        let drill = run.options.only.flatMap(Drill.init) ?? stream.pick(Drill.allCases)
        script.append(drill.rawValue)
        branches["drills", default: 0] += 1
        branches[drill.rawValue, default: 0] += 1
        if stored.people.count < 5, let trouble = try populate(&stream) { return trouble }
        let trouble =
            switch drill {
            case .edits: try edit(&stream)
            case .conflicts: try conflict(&stream)
            case .refusals: try refuse(&stream)
            case .deletions: try delete(&stream)
            case .merges: try merge(&stream)
            case .children: try nest(&stream)
            case .strangers: try countBesideStrangers(&stream)
            case .pins: try pin(&stream)
            case .batches: try changeByBatch(&stream)
            case .upserts: try upsert(&stream)
            case .reads: try readBeside(&stream)
            case .chains: try chain(&stream)
            case .upward: try moveUp(&stream)
            case .undoing: try undoBeside(&stream)
            case .following: try follow(&stream)
            case .contests: try contest(&stream)
            case .leftovers: try leave(&stream)
            }
        return trouble ?? stored.disagreement
    }

    /// Adds to the listing that a failure prints.
    func note(_ text: String) { script[script.count - 1] += "; \(text)" }

    // MARK: - Contexts

    /// Returns a new serial number.
    func next() -> Int64 {
        lastSerial += 1
        return lastSerial
    }

    /// A new context on the store.
    func desk(_ policy: NSMergePolicy = .error, undoes: Bool = false) -> SocietyDesk {
        let context = stack.context(policy)
        if undoes { context.undoManager = UndoManager() }
        return SocietyDesk(context) { [unowned self] in ids[$0] }
    }

    /// Makes a change at a desk, and in the society that the desk must show.
    func make(_ edit: SocietyEdit, at desk: SocietyDesk, _ seen: inout Society) throws {
        note("\(edit)")
        edit.change(&seen)
        try desk.perform { try desk.make(edit) }
    }

    /// Draws a change.
    func draw(_ seen: Society, _ scope: SocietyEdit.Scope, _ stream: inout SeededStream) -> SocietyEdit {
        SocietyEdit.draw(seen, scope, next, &stream)
    }

    /// Draws some changes and makes them.
    func makeSome(
        _ most: Int,
        _ scope: SocietyEdit.Scope,
        at desk: SocietyDesk,
        _ seen: inout Society,
        _ stream: inout SeededStream
    ) throws {
        for _ in 0..<(1 + stream.below(most)) {
            try make(draw(seen, scope, &stream), at: desk, &seen)
        }
    }

    /// Sets the stored society after a save at a desk, and learns the IDs of new objects.
    func settle(_ society: Society, _ desk: SocietyDesk) {
        for serial in Array(society.people.keys) + Array(society.clubs.keys) + Array(society.tools.keys) {
            if let id = desk.heldID(serial) { ids[serial] = id }
        }
        stored = society
    }

    /// Learns an ID.
    func learn(_ serial: Int64, _ id: NSManagedObjectID) { ids[serial] = id }

    /// Makes some changes in another context, and saves them.
    ///
    /// - Returns: The context.
    func letOthersSave(_ most: Int, _ scope: SocietyEdit.Scope, _ stream: inout SeededStream) throws -> SocietyDesk {
        let other = desk()
        var seen = stored
        note("others:")
        try makeSome(most, scope, at: other, &seen, &stream)
        try other.perform { try other.context.save() }
        settle(seen, other)
        note("end of others")
        return other
    }

    // MARK: - Looking

    /// Compares everything that a desk shows.
    ///
    /// - Returns: The fault, with the moment; `nil` if there is none.
    func check(_ desk: SocietyDesk, _ wanted: Society, _ moment: String) throws -> String? {
        let shown = try desk.perform { try desk.picture() }
        return (shown.difference(from: wanted) ?? shown.disagreement).map { "\(moment): \($0)" }
    }

    /// Compares the stored society with what a new context shows.
    func checkStore(_ moment: String) throws -> String? { try check(desk(), stored, "\(moment), to a new context") }

    /// Fetches a random query in one of several ways.
    func ask(_ desk: SocietyDesk, _ seen: Society, _ stream: inout SeededStream) throws -> String? {
        var query = SocietyQuery.draw(&stream)
        var answer: [Int64]
        switch stream.below(5) {
        case 0:
            answer = try desk.perform {
                try desk.context.fetch(query.request(NSManagedObjectID.self, .managedObjectIDResultType))
                    .map { (try desk.context.existingObject(with: $0) as? Person)?.serial ?? 0 }
            }
        case 1: answer = try SocietyAnswer.fetchedAsynchronously(query, desk.context)
        case 2:
            (query.limit, query.offset) = (0, 0)
            let count = try desk.perform { try desk.context.count(for: query.request(Person.self)) }
            let wanted = query.answer(seen).count
            return count == wanted ? nil : "a fetch of \(query) counts \(count), expected \(wanted)"
        default: answer = try desk.perform { try desk.context.fetch(query.request(Person.self)).map(\.serial) }
        }
        if run.isSabotaged("wrong-order") { answer.reverse() }
        branches["questions", default: 0] += 1
        let wanted = query.answer(seen)
        return answer == wanted ? nil : "a fetch of \(query) answers \(answer), expected \(wanted)"
    }

    private func populate(_ stream: inout SeededStream) throws -> String? {
        let desk = desk()
        var seen = stored
        for _ in 0..<30 { try make(draw(seen, .all, &stream), at: desk, &seen) }
        try desk.perform { try desk.context.save() }
        settle(seen, desk)
        return try check(desk, seen, "after the first save") ?? checkStore("after the first save")
    }
}

/// An asynchronous fetch that is awaited.
enum SocietyAnswer {
    static func fetchedAsynchronously(_ query: SocietyQuery, _ context: NSManagedObjectContext) throws -> [Int64] {
        let answer = Locked<Result<[Int64], any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        let request = NSAsynchronousFetchRequest(fetchRequest: query.request(Person.self)) { result in
            let end: Result<[Int64], any Error> =
                result.operationError.map(Result.failure) ?? .success((result.finalResult ?? []).map(\.serial))
            answer.withLock { $0 = end }
            done.signal()
        }
        try context.performAndWait { _ = try context.execute(request) }
        guard done.wait(timeout: .now() + 20) == .success else {
            throw StressError("an asynchronous fetch does not end")
        }
        return try answer.withLock { try $0?.get() ?? [] }
    }
}
