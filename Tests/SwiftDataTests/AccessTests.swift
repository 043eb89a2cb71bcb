import CoreData
import Expectations
import Foundation
import Observation
import StrataLocks
import Testing

@testable import SwiftData

/// A model whose getters read other properties, and which has values that glances do not read.
@Model final class Gauge {
    var label: String
    var level: Int
    var limit: Int?
    var raw: Data
    @Transient var notes = 0
    var twin: Gauge?
    var isFull: Bool { level >= (limit ?? .max) }
    var text: String { "\(label) \(level)\(isFull ? " full" : "")" }

    init(_ label: String, level: Int) {
        self.label = label
        self.level = level
        raw = Data([1])
    }
}

/// A model with initial values, one of which is another model object.
@Model final class Rack {
    var name: String
    var weight: Int = 7
    var shelf: Shelf? = Shelf(number: 1)

    init(name: String) { self.name = name }
}

@Model final class Shelf {
    var number: Int

    init(number: Int) { self.number = number }
}

/// A model whose properties begin with nil, and one of whose getters uses the name of Apple's macro for the backing.
@Model final class Hollow {
    var text: String?
    var count: Int?
    var shelf: Shelf?
    var textOfBacking: String? { _$backingData.getValue(forKey: \.text) }

    init() {}

    func replaceBacking() { _$backingData = Hollow.createBackingData() }
}

/// A model whose initialiser takes initial values back.
@Model final class Cleared {
    var text: String?
    var count: Int? = 5
    var shelf: Shelf? = Shelf(number: 3)

    init(isKept: Bool) {
        if !isKept { (count, shelf) = (nil, nil) }
    }
}

/// A backing of another library, which keeps one text.
private final class SingleText: BackingData {
    private(set) var text = "from elsewhere"
    var persistentModelID: PersistentIdentifier?
    var metadata: Any = ()

    init(for modelType: Hollow.Type) {}

    func getValue<Value: Decodable>(forKey key: KeyPath<Hollow, Value>) -> Value { text as! Value }
    func getValue<Value: PersistentModel>(forKey key: KeyPath<Hollow, Value>) -> Value { fatalError() }
    func getValue<Value: PersistentModel>(forKey key: KeyPath<Hollow, Value?>) -> Value? { nil }
    func getValue<Value, OtherModel>(forKey key: KeyPath<Hollow, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement { fatalError() }
    func getValue<Value, OtherModel>(forKey key: KeyPath<Hollow, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement { fatalError() }
    func getTransformableValue<Value>(forKey key: KeyPath<Hollow, Value>) -> Value { fatalError() }
    func setValue<Value: Encodable>(forKey key: KeyPath<Hollow, Value>, to newValue: Value) {
        text = newValue as! String
    }
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Hollow, Value>, to newValue: Value) {}
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Hollow, Value?>, to newValue: Value?) {}
    func setValue<Value, OtherModel>(forKey key: KeyPath<Hollow, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement {}
    func setValue<Value, OtherModel>(forKey key: KeyPath<Hollow, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {}
    func setTransformableValue<Value>(forKey key: KeyPath<Hollow, Value>, to newValue: Value) {}
}

@ModelActor
private actor GaugeKeeper {
    func raise(_ identifier: PersistentIdentifier, by step: Int, times: Int) throws -> String {
        let gauge = try require(self[identifier, as: Gauge.self])
        for _ in 0..<times { gauge.level += step }
        try modelContext.save()
        return gauge.text
    }
}

private final class Places: Sendable {
    let label = _PropertyPlace("label")
    let level = _PropertyPlace("level")
    let limit = _PropertyPlace("limit")
    let raw = _PropertyPlace("raw")
    let twin = _PropertyPlace("twin")
}

@Suite("SwiftData: accesses of properties")
struct AccessTests {
    private func container(_ place: Place) throws -> ModelContainer {
        try ModelContainer(for: Gauge.self, configurations: place.configuration)
    }

    /// A context with a saved gauge.
    private func gauge(_ place: Place) throws -> (ModelContext, Gauge) {
        let context = ModelContext(try container(place))
        let gauge = Gauge("a", level: 1)
        context.insert(gauge)
        try context.save()
        return (context, gauge)
    }

    /// Places of the test alone: those of the class follow the container that was used last.
    private let places = Places()

    /// The way to a gauge's values, after glances have learnt where they are.
    private func link(_ gauge: Gauge) throws -> Unmanaged<GlancedObject> {
        _ = gauge._getValue(forKey: \.label, at: places.label, by: _ModelLink())
        _ = gauge._getValue(forKey: \.level, at: places.level, by: _ModelLink())
        _ = gauge._getValue(forKey: \.limit, at: places.limit, by: _ModelLink())
        return try require(gauge._$link.target)
    }

    /// What glances see: the label, the level and the limit.
    private func glances(_ link: Unmanaged<GlancedObject>) -> [String] {
        let label = String.managedGlance(link, places.label.property.untyped)
        let level = Int.managedGlance(link, places.level.property.untyped)
        let limit = Int.managedGlanceOptional(link, places.limit.property.untyped)
        return [label ?? "-", level.map { "\($0)" } ?? "-", limit.map { "\($0 ?? 0)" } ?? "-"]
    }

    // MARK: - What a glance finds

    @Test(arguments: Place.allCases)
    func `a glance sees values in memory, and null only as nil`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let link = try link(gauge)
        expectEqual(glances(link), ["a", "1", "0"])
        gauge.limit = 5
        expectEqual(glances(link), ["a", "1", "5"])
        expectEqual(Int.managedGlance(link, places.limit.property.untyped), 5)
        context.rollback()
        expectEqual(Int.managedGlance(link, places.limit.property.untyped), nil)
        expectEqual(gauge.limit, nil)
    }

    @Test(arguments: Place.allCases)
    func `a glance finds the object of a to-one relationship if both are in memory`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let twin = Gauge("b", level: 2)
        context.insert(twin)
        gauge.twin = twin
        try context.save()
        for _ in 0..<2 {
            // The first access finds the place.
            let found: Gauge? = gauge._getValue(forKey: \.twin, at: places.twin, by: gauge._$link)
            expect(found === twin)
        }
        let target = try require(gauge._$link.target)
        /// Whether a glance sees the twin; `nil` if a block has to find out.
        func seesTwin() -> Bool? {
            switch GlancedObject.destination(at: target, places.twin.property.untyped, { $0.takeUnretainedValue() }) {
            case .unknown: nil
            case .absent: false
            case .found(let object): object === twin.backing.object
            }
        }
        expectEqual(seesTwin(), true)
        gauge.twin = nil
        expectEqual(seesTwin(), false)
        context.rollback()
        expectEqual(seesTwin(), true)
        expectEqual(context.managed.performAndWait { seesTwin() }, nil)
        // An object without a row has no place in the store where a glance could look for it.
        gauge.twin = Gauge("c", level: 3)
        expectEqual(seesTwin(), nil)
        expectEqual(gauge.twin?.label, "c")
        context.managed.performAndWait { context.managed.refreshAllObjects() }
        expectEqual(gauge.twin?.label, "c")
    }

    @Test(arguments: Place.allCases)
    func `a glance sees no fault, and none that has left its context or lost its row`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let link = try link(gauge)
        context.managed.performAndWait { context.managed.refreshAllObjects() }
        expectEqual(glances(link), ["-", "-", "-"])
        expectEqual(gauge.text, "a 1")
        expectEqual(glances(link), ["a", "1", "0"])
        context.delete(gauge)
        expectEqual(glances(link), ["a", "1", "0"])
        try context.save()
        expectEqual(glances(link), ["-", "-", "-"])
        expectEqual(gauge.text, "a 1")
        context.insert(gauge)
        expectEqual(glances(link), ["a", "1", "0"])
        gauge.backing.loseRow()
        expectEqual(glances(link), ["-", "-", "-"])
    }

    @Test(arguments: Place.allCases)
    func `a glance does not overtake submitted blocks, and is refused inside the scope`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let link = try link(gauge)
        let (started, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let managed = context.managed
        managed.perform {
            started.signal()
            go.wait()
        }
        // This block waits behind the other one.
        nonisolated(unsafe) let object = gauge.backing.object
        managed.perform { object?.setValue("b", forKey: "label") }
        started.wait()
        expectEqual(glances(link), ["-", "-", "-"])
        go.signal()
        expectEqual(gauge.label, "b")
        try wait { glances(link) == ["b", "1", "0"] }
        let inside = managed.performAndWait { (glances(link), gauge.text) }
        expectEqual(inside.0, ["-", "-", "-"])
        expectEqual(inside.1, "b 1")
        expectEqual(glances(link), ["b", "1", "0"])
    }

    @Test(arguments: Place.allCases)
    func `a glance at an object whose context has ended finds nothing`(_ place: Place) throws {
        weak var ended: ModelContext?
        func end() throws -> (Gauge, Unmanaged<GlancedObject>) {
            let (context, gauge) = try self.gauge(place)
            let link = try self.link(gauge)
            context.delete(gauge)
            try context.save()
            ended = context
            return (gauge, link)
        }
        let (gauge, link) = try end()
        expect(ended == nil && gauge.modelContext == nil)
        expectEqual(glances(link), ["-", "-", "-"])
        expectEqual(gauge.text, "a 1")
    }

    @Test(arguments: Place.allCases)
    func `an object can be read while an automatic save takes it out of its context`(_ place: Place) throws {
        let container = try container(place)
        for number in 0..<30 {
            let context = ModelContext(container)
            let gauge = Gauge("\(number)", level: number)
            context.insert(gauge)
            try context.save()
            context.autosaveEnabled = true
            context.delete(gauge)
            // The save runs in the main actor, and detaches the object beside these reads.
            try wait {
                expectEqual([gauge.label, "\(gauge.level)", gauge.twin?.label], ["\(number)", "\(number)", nil])
                return gauge.modelContext == nil
            }
            gauge.level += 1
            expectEqual(gauge.level, number + 1)
        }
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Gauge>()), 0)
    }

    // MARK: - Short blocks

    @Test func `a short block runs on the thread that calls, and inside the scope directly`() throws {
        let managed = ModelContext(try container(.memory)).managed
        let thread = Thread.current
        expect(managed.performAtOnce { Thread.current === thread })
        expect(managed.performAndWait { managed.performAtOnce { managed.performAtOnce { true } } })
    }

    @Test func `a short block waits for the blocks that were submitted before`() throws {
        let managed = ModelContext(try container(.memory)).managed
        let steps = Locked<[Int]>([])
        let (started, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        managed.perform {
            started.signal()
            go.wait()
            steps.withLock { $0.append(1) }
        }
        managed.perform { steps.withLock { $0.append(2) } }
        started.wait()
        let thread = onThread { managed.performAtOnce { steps.withLock { $0.append(3) } } }
        go.signal()
        try thread.join()
        expectEqual(steps.withLock { $0 }, [1, 2, 3])
    }

    @Test func `a short block for which the busy context waits stops the program with a message`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let container = try ModelContainer(
                for: Gauge.self,
                configurations: ModelConfiguration(isStoredInMemoryOnly: true)
            )
            let (first, second) = (ModelContext(container).managed, ModelContext(container).managed)
            (first.name, second.name) = ("first", "second")
            let started = DispatchSemaphore(value: 0)
            second.performAndWait {
                first.perform {
                    started.signal()
                    second.performAndWait {}
                }
                started.wait()
                first.performAtOnce {}
            }
        }
        let message = result.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
        expect(message.contains("first") && message.contains("second"), "\(message)")
    }

    // MARK: - Writes

    @Test(arguments: Place.allCases)
    func `a glance writes from the second write of an event on`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let link = try link(gauge)
        func write(_ value: Int) -> Bool { Int.managedGlanceWrite(value, link, places.level.property.untyped) }
        expect(!write(2))
        gauge.level = 3
        expect(write(4))
        expectEqual(gauge.level, 4)
        expect(Int.managedGlanceWrite(9, link, places.limit.property.untyped))
        expect(Int.managedGlanceWrite(nil, link, places.limit.property.untyped))
        expectEqual(gauge.limit, nil)
        context.processPendingChanges()
        expect(!write(5))
        gauge.level = 6
        expect(write(7))
        try context.save()
        expect(!write(8))
        expectEqual(try stored(context), ["a 7"])
        gauge.level = 8
        context.autosaveEnabled = false
        // The context may have to schedule a save now.
        expect(!write(9))
        context.rollback()
        expect(!write(10))
        expectEqual(gauge.level, 7)
    }

    @Test func `data go by a block, because their release may run code of the program`() throws {
        let (_, gauge) = try gauge(.memory)
        _ = gauge._getValue(forKey: \.raw, at: places.raw, by: _ModelLink())
        let target = try require(gauge._$link.target)
        gauge.raw = Data([2])
        expectEqual(Data.managedGlance(target, places.raw.property.untyped), Data([2]))
        expect(!Data.managedGlanceWrite(Data([3]), target, places.raw.property.untyped))
        gauge.raw = Data([4])
        expectEqual(gauge.raw, Data([4]))
    }

    @Test(arguments: Place.allCases)
    func `several writes of one event are one step of undo, and a roll-back takes all back`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let manager = CoreData.UndoManager()
        context.undoManager = manager
        for level in 2...5 { gauge.level = level }
        gauge.label = "b"
        context.processPendingChanges()
        for level in 6...9 { gauge.level = level }
        expectEqual(gauge.text, "b 9")
        manager.undo()
        expectEqual(gauge.text, "b 5")
        manager.undo()
        expectEqual(gauge.text, "a 1")
        manager.redo()
        expectEqual(gauge.text, "b 5")
        context.rollback()
        expectEqual(gauge.text, "a 1")
        expect(!context.hasChanges)
    }

    @Test(arguments: Place.allCases)
    func `an object that an inverse has changed is held once it is written to`(_ place: Place) throws {
        let container = try ModelContainer(for: Sailor.self, configurations: place.configuration)
        let context = ModelContext(container)
        let crew = Crew(name: "Night")
        context.insert(crew)
        context.insert(Sailor("Ada", badge: 1))
        try context.save()
        let sailors = FetchDescriptor<Sailor>()
        func change() throws {
            let sailor = try require(try context.fetch(sailors).first)
            expectEqual(sailor.name, "Ada")
            // The inverse makes the row of the sailor writable; the context does not hold the sailor for that.
            crew.sailors = [sailor]
            for name in ["Eva", "Eve"] { sailor.name = name }
            sailor.visits = 3
        }
        try change()
        let again = try require(try context.fetch(sailors).first)
        expectEqual([again.name, "\(again.visits)", again.crew?.name], ["Eve", "3", "Night"])
    }

    /// The texts of what another context reads.
    private func stored(_ context: ModelContext) throws -> [String] {
        try ModelContext(context.container).fetch(FetchDescriptor<Gauge>(sortBy: [SortDescriptor(\.label)])).map(\.text)
    }

    // MARK: - Places

    @Test(arguments: Place.allCases)
    func `a value is the same wherever the context is used`(_ place: Place) async throws {
        let (context, gauge) = try gauge(place)
        // The test uses the context at one place at a time.
        nonisolated(unsafe) let (here, shared) = (context, gauge)
        func use(_ label: String, _ level: Int) {
            let before = shared.level
            for step in 1...3 { shared.level = before + step }
            shared.label = label
            expectEqual(shared.text, "\(label) \(level)")
        }
        use("outside", 4)
        here.managed.performAndWait { use("scope", 7) }
        await Task.detached { use("task", 10) }.value
        await MainActor.run { use("main", 13) }
        DispatchQueue(label: "another").sync { use("queue", 16) }
        try here.save()
        let identifier = shared.persistentModelID
        expectEqual(
            try await GaugeKeeper(modelContainer: here.container).raise(identifier, by: 2, times: 3),
            "queue 22"
        )
        // The save of the actor was merged before this.
        expectEqual(shared.text, "queue 22")
        expectEqual(try stored(here), ["queue 22"])
    }

    @Test(arguments: Place.allCases)
    func `a read after a save of another context sees it`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let other = ModelContext(context.container)
        let same = try require(try other.fetch(FetchDescriptor<Gauge>()).first)
        for level in 2...60 {
            same.level = level
            try other.save()
            expectEqual(gauge.level, level)
        }
    }

    @Test(arguments: Place.allCases)
    func `reads and writes beside merges of another thread are whole, and nothing is lost`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let container = context.container
        let (saves, long) = (40, String(repeating: "x", count: 40))
        let thread = onThread {
            let other = ModelContext(container)
            let same = try require(try other.fetch(FetchDescriptor<Gauge>()).first)
            for number in 1...saves {
                same.label = "\(long)\(number)"
                same.limit = number
                try other.save()
            }
        }
        var last = 0
        while last < saves {
            let label = gauge.label
            let number = Int(label.dropFirst(long.count)) ?? (label == "a" ? 0 : -1)
            try require(number >= last, "\(label) after \(last)")
            last = number
            // Unsaved changes stay, whatever is merged beside them.
            gauge.level += 1
        }
        try thread.join()
        let level = gauge.level
        try context.save()
        expectEqual([gauge.limit, level], [saves, try context.fetch(FetchDescriptor<Gauge>()).first?.level])
        expectEqual(try stored(context), ["\(long)\(saves) \(level)\(level >= saves ? " full" : "")"])
    }

    // MARK: - Observers

    @Test(arguments: Place.allCases)
    func `observers are called for each kind of write, and may read other properties`(_ place: Place) throws {
        let (context, gauge) = try gauge(place)
        let calls = Locked<[String]>([])
        nonisolated(unsafe) let observed = gauge
        func observe(_ name: String, _ read: () -> Void) {
            withObservationTracking(read) {
                let text = "\(name): \(observed.label) \(observed.limit ?? 0)"
                calls.withLock { $0.append(text) }
            }
        }
        gauge.level = 2
        observe("level") { _ = gauge.level }
        // This write is a glance, and the first one was none.
        gauge.level = 3
        gauge.level = 4
        observe("full") { _ = gauge.isFull }
        gauge.limit = 4
        expectEqual(calls.withLock { $0 }, ["level: a 0", "full: a 0"])
        try context.save()
        observe("merged") { _ = gauge.level }
        let other = ModelContext(context.container)
        let same = try require(try other.fetch(FetchDescriptor<Gauge>()).first)
        same.level = 9
        try other.save()
        expectEqual(gauge.text, "a 9 full")
        expectEqual(calls.withLock { $0 }.dropFirst(2), ["merged: a 4"])
    }

    private final class Observed {
        let observers = _ModelObservers()
    }

    @Test func `a registrar is made by the first access that is observed`() {
        let (observed, gauge) = (Observed(), Gauge("a", level: 1))
        let calls = Locked(0)
        func change() { observed.observers.withMutation(of: gauge, keyPath: \.level) { gauge.level += 1 } }
        observed.observers.access(gauge, keyPath: \.level)
        change()
        expect(observed.observers.registrarIfMade == nil)
        withObservationTracking {
            observed.observers.access(gauge, keyPath: \.level)
        } onChange: {
            calls.withLock { $0 += 1 }
        }
        let registrar = observed.observers.registrarIfMade
        expect(registrar != nil && registrar == observed.observers.registrar)
        expectEqual(calls.withLock { $0 }, 0)
        for _ in 0..<2 { change() }
        expectEqual([calls.withLock { $0 }, gauge.level], [1, 4])
    }

    @Test func `a thread knows whether it tracks accesses`() throws {
        expect(AccessTracking.isReliable)
        expect(!AccessTracking.isTracking)
        let thread = withObservationTracking {
            for _ in 0..<3 { expect(AccessTracking.isTracking) }
            withObservationTracking {
                expect(AccessTracking.isTracking)
            } onChange: {
            }
            expect(AccessTracking.isTracking)
            return onThread { expect(!AccessTracking.isTracking) }
        } onChange: {
        }
        try thread.join()
        expect(!AccessTracking.isTracking)
    }

    // MARK: - Fetched objects

    @Test(arguments: Place.allCases)
    func `a fetched object has the values of its row, and its initial values are no changes`(_ place: Place) throws {
        let context = ModelContext(try ModelContainer(for: Rack.self, configurations: place.configuration))
        let rack = Rack(name: "a")
        context.insert(rack)
        expectEqual([rack.weight, rack.shelf?.number], [7, 1])
        rack.weight = 9
        rack.shelf?.number = 5
        try context.save()
        let other = ModelContext(context.container)
        let read = try require(try other.fetch(FetchDescriptor<Rack>()).first)
        expect(!other.hasChanges)
        expectEqual([read.weight, read.shelf?.number], [9, 5])
        expect(!other.hasChanges)
        expectEqual(try other.fetchCount(FetchDescriptor<Shelf>()), 1)
        read.weight = 10
        try other.save()
        expectEqual(rack.weight, 10)
    }

    // MARK: - Backings

    @Test(arguments: Place.allCases)
    func `an object that begins with nil gets a backing when it is used`(_ place: Place) throws {
        let context = ModelContext(try ModelContainer(for: Hollow.self, configurations: place.configuration))
        let (hollow, written) = (Hollow(), Hollow())
        expect(hollow.text == nil && hollow.count == nil && hollow.shelf == nil)
        written.shelf = Shelf(number: 2)
        written.count = 4
        for hollow in [hollow, written] { context.insert(hollow) }
        try context.save()
        let other = ModelContext(context.container)
        let read = try other.fetch(FetchDescriptor<Hollow>(sortBy: [SortDescriptor(\.count)]))
        expectEqual(read.map(\.count), [nil, 4])
        expectEqual(read.map(\.text), [nil, nil])
        expectEqual(read.map { $0.shelf?.number }, [nil, 2])
        expect(!other.hasChanges)
    }

    @Test(arguments: Place.allCases)
    func `an initialiser takes initial values back`(_ place: Place) throws {
        let context = ModelContext(try ModelContainer(for: Cleared.self, configurations: place.configuration))
        for isKept in [true, false] {
            let cleared = Cleared(isKept: isKept)
            expectEqual([cleared.count, cleared.shelf?.number], isKept ? [5, 3] : [nil, nil])
            context.insert(cleared)
        }
        try context.save()
        for _ in 0..<2 {
            let read = try ModelContext(context.container).fetch(
                FetchDescriptor<Cleared>(sortBy: [SortDescriptor(\.count, order: .reverse)])
            )
            expectEqual(read.map(\.count), [5, nil])
            expectEqual(read.map { $0.shelf?.number }, [3, nil])
        }
    }

    @Test func `an object reads and writes a backing of another library, and its own one again`() {
        let (hollow, other) = (Hollow(), SingleText(for: Hollow.self))
        hollow.text = "own"
        let own = hollow.persistentBackingData
        hollow.persistentBackingData = other
        expectEqual(hollow.text, "from elsewhere")
        hollow.text = "there"
        expectEqual([hollow.text, other.text], ["there", "there"])
        expect(hollow.persistentBackingData as AnyObject === other)
        hollow.persistentBackingData = own
        expectEqual([hollow.text, other.text], ["own", "there"])
        expectEqual(hollow.textOfBacking, "own")
        hollow.replaceBacking()
        expectEqual([hollow.text, hollow.textOfBacking], [nil, nil])
    }

    // MARK: - Names of Apple's

    @Test func `accesses by the names that hand-written code uses see the same values`() throws {
        let (_, gauge) = try gauge(.memory)
        for step in 2...4 {
            gauge.setValue(forKey: \.level, to: step)
            expectEqual([gauge.level, gauge.getValue(forKey: \.level)], [step, step])
            gauge.level = step * 10
            expectEqual(gauge.persistentBackingData.getValue(forKey: \.level), step * 10)
        }
        let (first, second) = (gauge.persistentBackingData, Gauge("b", level: 5))
        gauge.persistentBackingData = second.persistentBackingData
        expectEqual(gauge.text, "b 5")
        gauge.persistentBackingData = first
        expectEqual(gauge.text, "a 40")
    }

    @Test func `a class in several containers finds its values in each`() throws {
        let (context, gauge) = try gauge(.memory)
        let (_, other) = try self.gauge(.memory)
        for step in 2...5 {
            gauge.level = step
            other.level = -step
            expectEqual([gauge.level, other.level], [step, -step])
            expectEqual([gauge.label, other.label], ["a", "a"])
        }
        context.delete(gauge)
        try context.save()
        expectEqual([gauge.level, other.level], [5, -5])
    }
}
