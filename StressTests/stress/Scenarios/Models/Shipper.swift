import CoreData
import Foundation
import Observation
import StrataLocks
import SwiftData

/// A worker with a context, and the plain list of what the context must show.
final class Shipper {
    private let worker: Worker
    private let container: ModelContainer
    private let board: Board
    private var context: ModelContext
    /// The objects in the context, with the values that they must show.
    private var fleet: [Int: (barge: Barge, values: BargeValues)] = [:]
    /// The objects without a context; what they were once attached to does not matter.
    private var detached: [Int: (barge: Barge, values: BargeValues)] = [:]
    /// The values that the store must have.
    private var stored: [Int: BargeValues] = [:]
    private var wharfs: [Int: Wharf] = [:]
    private var beacons: [Beacon] = []
    private var count = 0
    private var nextCode: Int
    /// The objects that a sabotage keeps alive.
    private var kept: [Barge] = []
    /// The memory that a sabotage leaks.
    private var leaked: [[UInt8]] = []

    init(_ worker: Worker, _ container: ModelContainer, _ board: Board, _ context: ModelContext? = nil) throws {
        (self.worker, self.container, self.board) = (worker, container, board)
        self.context = context ?? ModelContext(container)
        // Codes are unique in the store, and each worker has a range.
        nextCode = worker.number * 1_000_000
        try begin()
    }

    /// Reads what all workers share.
    private func begin() throws {
        wharfs = Dictionary(
            uniqueKeysWithValues: try context.fetch(FetchDescriptor<Wharf>()).map { ($0.number, $0) }
        )
        beacons = try context.fetch(FetchDescriptor<Beacon>(sortBy: [SortDescriptor(\.owner)]))
    }

    /// Works until the end.
    ///
    /// - Returns: The values that the store must have of this worker.
    func work() throws -> [Int: BargeValues] {
        var steps = 0
        while !worker.isOver {
            try step()
            worker.tally.count("steps")
            steps += 1
            if steps % 40 == 0 { try checkAll() }
            if steps % 150 == 0 { try renew() }
        }
        worker.beat("the last save")
        try save()
        try checkAll()
        return stored
    }

    private func step() throws {
        if worker.run.isSabotaged("leak") { leaked.append([UInt8](repeating: 1, count: 1 << 18)) }
        switch worker.stream.index([12, 10, 24, 6, 6, 12, 6, 6, 6, 12, 8]) {
        case 0: make()
        case 1: insert()
        case 2: change()
        case 3: try delete()
        case 4: try upsert()
        case 5: try save()
        case 6: try rollBack()
        case 7: try undo()
        case 8: changeDetached()
        case 9: observe()
        default: readBeacons()
        }
    }

    // MARK: - Steps

    private func make() {
        worker.beat("making a model")
        guard detached.count < 20 else { return }
        nextCode += 1
        let barge = Barge(code: nextCode, name: "new \(nextCode)")
        detached[nextCode] = (barge, BargeValues(name: "new \(nextCode)"))
        check(detached[nextCode], "after its creation")
    }

    private func insert() {
        worker.beat("inserting a model")
        guard fleet.count < 60, let code = any(of: detached), let entry = detached.removeValue(forKey: code) else {
            return
        }
        context.insert(entry.barge)
        fleet[code] = entry
        check(fleet[code], "after its insertion")
    }

    private func change() {
        worker.beat("changing a model")
        guard let code = any(of: fleet), var entry = fleet[code] else { return }
        changeValues(&entry)
        let number = worker.stream.below(wharfs.count + 1)
        entry.barge.wharf = wharfs[number]
        entry.values.wharf = wharfs[number]?.number
        fleet[code] = entry
        check(entry, "after a change")
    }

    /// The calls of an observer.
    private final class Calls: Sendable {
        private let count = Locked(0)
        var isCalled: Bool { count.withLock { $0 > 0 } }
        func note() { count.withLock { $0 += 1 } }
    }

    /// Observes a model and the one that it leads to, and changes it.
    private func observe() {
        worker.beat("observing a model")
        guard let code = any(of: fleet), var entry = fleet[code] else { return }
        let calls = Calls()
        withObservationTracking {
            _ = entry.barge.level
            _ = entry.barge.wharf?.number
        } onChange: {
            calls.note()
        }
        if !worker.run.isSabotaged("silent") { changeValues(&entry) }
        fleet[code] = entry
        if !calls.isCalled { find("the observer of \(code) was not called") }
        check(entry, "after a change that was observed")
    }

    private func changeDetached() {
        worker.beat("changing a model without a context")
        guard let code = any(of: detached), var entry = detached[code] else { return }
        changeValues(&entry)
        detached[code] = entry
        check(entry, "after a change without a context")
    }

    private func changeValues(_ entry: inout (barge: Barge, values: BargeValues)) {
        for _ in 0..<(1 + worker.stream.below(3)) {
            entry.values.level += 1
            entry.barge.level += 1
        }
        entry.values.name = "name \(entry.values.level) of some length"
        entry.barge.name = entry.values.name
        entry.values.note = worker.stream.chance(0.3) ? nil : "note \(entry.values.level)"
        entry.barge.note = entry.values.note
    }

    /// Deletes an object; after that was saved, the object is one without a context.
    private func delete() throws {
        worker.beat("deleting a model")
        guard let code = any(of: fleet), let entry = fleet.removeValue(forKey: code) else { return }
        let isStored = stored[code] != nil
        context.delete(entry.barge)
        if isStored {
            if !entry.barge.isDeleted { find("\(code) is not deleted") }
            // A deletion that is not saved may be rolled back.
            if worker.stream.chance(0.3) { return try rollBack() }
            try save()
        }
        detached[code] = (entry.barge, alone(entry.values))
        check(detached[code], "after its deletion")
    }

    /// Saves a new object with the unique value of a stored row, which takes over the row.
    private func upsert() throws {
        try save()
        worker.beat("an upsert")
        guard let code = any(of: fleet), let former = fleet[code] else { return }
        let barge = Barge(code: code, name: "heir \(code)")
        context.insert(barge)
        // The row keeps the values that the new object does not have.
        var values = former.values
        (values.name, values.level) = ("heir \(code)", 0)
        fleet[code] = (barge, values)
        try save()
        check(fleet[code], "after an upsert")
        check((former.barge, values), "after an upsert of another object")
    }

    private func save() throws {
        worker.beat("a save")
        let beacon = beacons[worker.number]
        count += 1
        beacon.count = count
        beacon.text = Beacon.text(count)
        board.begin(count, by: worker.number)
        try worker.time("save") { try context.save() }
        board.end(count, by: worker.number)
        worker.tally.count("saves")
        stored = fleet.mapValues(\.values)
        if worker.run.isSabotaged("stray-write"), worker.stream.chance(0.2), let code = any(of: fleet) {
            let other = ModelContext(container)
            try other.fetch(FetchDescriptor<Barge>(predicate: #Predicate { $0.code == code })).first?.level -= 1
            try other.save()
        }
    }

    private func rollBack() throws {
        worker.beat("a roll-back")
        context.rollback()
        for (code, entry) in fleet where stored[code] == nil {
            detached[code] = (entry.barge, alone(entry.values))
            fleet[code] = nil
            check(detached[code], "after a roll-back of its insertion")
        }
        try match("after a roll-back")
    }

    /// Some changes, an undo, and often a redo.
    private func undo() throws {
        try save()
        worker.beat("an undo")
        let manager = CoreData.UndoManager()
        context.undoManager = manager
        defer { context.undoManager = nil }
        let before = fleet.mapValues(\.values)
        // A merge between the changes would make them two steps.
        manager.beginUndoGrouping()
        for _ in 0..<3 { change() }
        context.processPendingChanges()
        manager.endUndoGrouping()
        let after = fleet.mapValues(\.values)
        guard before != after else { return }
        manager.undo()
        compare(before, "after an undo")
        guard worker.stream.chance(0.5) else {
            set(before)
            return
        }
        manager.redo()
        compare(after, "after a redo")
    }

    private func readBeacons() {
        worker.beat("reading beacons")
        for beacon in beacons where beacon.owner != worker.number {
            let least = board.saved(by: beacon.owner)
            let first = beacon.count
            let text = beacon.text
            let most = board.begun(by: beacon.owner)
            worker.tally.count("reads")
            if first < least || first > most {
                find("beacon \(beacon.owner) has \(first) after a save of \(least), and before one of \(most)")
            }
            let number = Int(text.split(separator: " ").last ?? "") ?? -1
            if text != Beacon.text(number) || number < first || number > board.begun(by: beacon.owner) {
                find("beacon \(beacon.owner) has the text \(text) after the count \(first)")
            }
        }
    }

    // MARK: - The list

    private func any<Value>(of entries: [Int: Value]) -> Int? {
        entries.isEmpty ? nil : worker.stream.pick(entries.keys.sorted())
    }

    /// The values of an object that has left its context: it has no relationships.
    private func alone(_ values: BargeValues) -> BargeValues {
        var values = values
        values.wharf = nil
        return values
    }

    private func find(_ text: String) { worker.tally.find("worker \(worker.number): \(text)") }

    private func check(_ entry: (barge: Barge, values: BargeValues)?, _ moment: String) {
        guard let (barge, values) = entry else { return }
        let shown = barge.modelContext == nil ? barge.shownAlone : barge.shown
        if shown != values { find("\(barge.code) shows \(shown) \(moment), not \(values)") }
    }

    private func compare(_ wanted: [Int: BargeValues], _ moment: String) {
        for (code, values) in wanted { check(fleet[code].map { ($0.barge, values) }, moment) }
    }

    private func set(_ values: [Int: BargeValues]) { for (code, value) in values { fleet[code]?.values = value } }

    /// Fetches all objects of this worker, and compares them with what the store must have.
    private func match(_ moment: String) throws {
        let (low, high) = (worker.number * 1_000_000, (worker.number + 1) * 1_000_000)
        let barges = try context.fetch(
            FetchDescriptor<Barge>(predicate: #Predicate { $0.code >= low && $0.code < high })
        )
        var found: [Int: (barge: Barge, values: BargeValues)] = [:]
        for barge in barges {
            guard let values = stored[barge.code] else {
                find("\(barge.code) shows up \(moment)")
                continue
            }
            if let known = fleet[barge.code], known.barge !== barge, known.barge.modelContext == nil {
                find("\(barge.code) has another object \(moment)")
            }
            found[barge.code] = (fleet[barge.code]?.barge ?? barge, values)
            check(found[barge.code], moment)
        }
        for code in stored.keys where found[code] == nil { find("\(code) shows nothing \(moment)") }
        fleet = found
    }

    private func checkAll() throws {
        worker.beat("a look at all models")
        for entry in fleet.values { check(entry, "at a look at all") }
        for entry in detached.values { check(entry, "at a look at all without a context") }
        for (number, wharf) in wharfs {
            // The values of other workers' objects may have gone.
            let members = Set(wharf.barges.map { ObjectIdentifier($0) })
            let found = Set(fleet.filter { members.contains(ObjectIdentifier($0.value.barge)) }.keys)
            let wanted = Set(fleet.filter { $0.value.values.wharf == number }.keys)
            if found != wanted { find("wharf \(number) shows \(found.sorted()), not \(wanted.sorted())") }
        }
    }

    // MARK: - Memory

    /// An object or a context that must not be alive any more.
    private struct Former {
        weak var object: AnyObject?
    }

    /// Lets go of all objects, and goes on with those that a fetch gives.
    ///
    /// Objects of an actor's context go; the context of a thread goes as well, and a new one takes its place.
    private func renew() throws {
        try save()
        worker.beat("letting go of all models")
        var former = fleet.values.map { Former(object: $0.barge) } + beacons.map { Former(object: $0) }
        former += detached.values.map { Former(object: $0.barge) }
        if worker.run.isSabotaged("kept-model") { kept = fleet.values.map(\.barge) }
        (fleet, detached, wharfs, beacons) = ([:], [:], [:], [])
        if worker.number % 2 == 0 {
            former.append(Former(object: context))
            context = ModelContext(container)
        }
        // A merge on the queue of the context may hold an object for a moment.
        var alive = former.compactMap(\.object).count
        for _ in 0..<1_000 where alive > 0 {
            usleep(5_000)
            alive = former.compactMap(\.object).count
        }
        if alive > 0 { find("\(alive) of \(former.count) objects are still alive") }
        worker.tally.count("renewals")
        try begin()
        try match("after all objects were let go of")
    }
}
