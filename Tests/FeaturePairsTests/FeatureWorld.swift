import CoreData
import Expectations
import TestSupport

/// Something is not as the reference says.
struct FeatureDifference: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

private final class ResultsDelegate: NSObject, NSFetchedResultsControllerDelegate {}

/// One store, the context that operations are about, and others that change the store beside it.
final class FeatureWorld: @unchecked Sendable {
    // @unchecked Sendable: one thread at a time uses it; blocks of contexts run while it waits.
    let kind: StoreKind
    let stack: Stack
    let context: NSManagedObjectContext
    let other: NSManagedObjectContext
    /// Another coordinator on the same store, when it is needed.
    private var neighbour: NSPersistentStoreCoordinator?
    var reference = FeatureReference()
    /// The serial number of the item that operations are about.
    var focus = 0
    private var lastSerial = 0
    /// The objects that the context's program holds.
    private var held: [Int: NSManagedObject] = [:]
    /// The serial numbers of stored objects, by the URIs of their IDs.
    private var serials: [URL: Int] = [:]
    var token: NSPersistentHistoryToken?
    private var controller: NSFetchedResultsController<NSManagedObject>?
    /// A controller with a delegate follows the context.
    private let delegate = ResultsDelegate()
    private var moves = 0

    /// Whether the store has a history and pinned versions, and can be shared.
    var isDatabase: Bool { kind != .memory }

    init(_ kind: StoreKind) throws {
        self.kind = kind
        stack = try Stack(kind, model: FeatureModel.first, options: Self.options(kind))
        context = stack.context("here")
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        context.undoManager = UndoManager()
        other = stack.context("elsewhere")
        other.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    }

    static func options(_ kind: StoreKind) -> [AnyHashable: Any] {
        switch kind {
        case .memory: [:]
        case .sqlite: [NSPersistentHistoryTrackingKey: true, NSSQLitePragmasOption: ["synchronous": "OFF"]]
        case .postgreSQL: [NSPersistentHistoryTrackingKey: true]
        }
    }

    // MARK: - Beginning

    /// Makes two items with what is related to them, and saves all, or all but the item in focus.
    func begin(isStored: Bool) throws {
        var state = FeatureState()
        func note(_ entity: String, _ values: [String: Any] = [:]) -> Int {
            let serial = next()
            state.records[serial] = FeatureState.Record(entity: entity)
            state.set(serial, "serial", serial)
            for (key, value) in values { state.set(serial, key, value) }
            return serial
        }
        let owners = (0..<3).map { _ in note("Owner", ["title": "title"]) }
        let tags = (0..<4).map { _ in note("Tag") }
        _ = note("Vault")
        for place in 0..<3 {
            let before = state
            let item = note(place == 1 ? "Special" : "Item", ["number": place])
            state.connect(item, "owner", owners[0])
            for part in (0..<(place == 2 ? 3 : 1)).map({ _ in note("Part") }) { state.connect(item, "parts", part) }
            for tag in tags[place % 2...place] { state.connect(item, "tags", tag) }
            focus = item
            if place == 2, !isStored {
                try build(before, on: FeatureState())
                try context.saveAndWait()
                try build(state, on: before)
                var stored = before
                stored.derive()
                state.derive()
                reference.begin(stored, state)
            } else if place == 2 {
                try build(state, on: FeatureState())
                try context.saveAndWait()
                state.derive()
                reference.begin(state, state)
            }
        }
        context.performAndWait { context.undoManager?.removeAllActions() }
        try watchResults()
        token = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        try checkStore()
    }

    /// Makes the objects that a state has more than a former one.
    private func build(_ state: FeatureState, on former: FeatureState) throws {
        try context.performAndWait {
            let new = state.records.filter { former.records[$0.key] == nil }.sorted { $0.key < $1.key }
            for (serial, record) in new {
                let object = insert(record.entity, serial, in: context)
                if let number = record.values["number"].flatMap(Int.init) { object.setValue(number, forKey: "number") }
            }
            for (serial, record) in new {
                let object = try self.object(serial, in: context)
                for name in ["owner", "parts", "tags"] {
                    guard let links = record.links[name] else { continue }
                    let members = try links.map { try self.object($0, in: context) }
                    switch FeatureLink.named[name]?.kind {
                    case .one: object.setValue(members.first, forKey: name)
                    case .ordered: object.setValue(NSOrderedSet(array: members), forKey: name)
                    default: for member in members { object.mutableSetValue(forKey: name).add(member) }
                    }
                }
            }
            context.processPendingChanges()
        }
    }

    /// Turns to another item if the one in focus is neither stored nor shown any more.
    func refocus() {
        guard reference.seen.records[focus] == nil, reference.stored.records[focus] == nil else { return }
        focus = reference.seen.all("Item").last ?? focus
    }

    /// A number that nothing in this world has had.
    func next() -> Int {
        lastSerial += 1
        return lastSerial
    }

    // MARK: - Objects

    @discardableResult
    func insert(_ entity: String, _ serial: Int, in context: NSManagedObjectContext) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        object.setValue(serial, forKey: "serial")
        if context === self.context { held[serial] = object }
        return object
    }

    /// The object of a number in a context: the one that is held there, or the one that a fetch finds.
    func object(_ serial: Int, in context: NSManagedObjectContext) throws -> NSManagedObject {
        if context === self.context, let object = held[serial], object.managedObjectContext === context,
            !object.isDeleted
        {
            return object
        }
        for entity in ["Thing", "Owner", "Part", "Tag", "Vault"] {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity)
            request.predicate = NSPredicate(format: "serial == %d", serial)
            guard let object = try context.fetch(request).first else { continue }
            if context === self.context { held[serial] = object }
            return object
        }
        throw FeatureDifference("\(context.name ?? "") does not find \(serial)")
    }

    /// Releases the objects that the program holds.
    func letGo() { held = [:] }

    // MARK: - Contexts

    /// Saves what is pending.
    func save() throws {
        try context.saveAndWait()
        reference.save()
    }

    /// Runs a block in another context, and saves it.
    ///
    /// - Returns: The notification of the save.
    func save(in context: NSManagedObjectContext, _ body: (NSManagedObjectContext) throws -> Void) throws
        -> Notification?
    {
        let messages = NotificationCenter.default
        // The block runs on this thread, during the save.
        nonisolated(unsafe) var notification: Notification?
        let watch = messages.addObserver(forName: .NSManagedObjectContextDidSave, object: context, queue: nil) {
            notification = $0
        }
        defer { messages.removeObserver(watch) }
        try context.performAndWait {
            context.refreshAllObjects()
            try body(context)
            try context.save()
        }
        return notification
    }

    /// A context of another coordinator on the same store.
    func neighbourContext() throws -> NSManagedObjectContext {
        let coordinator = try neighbour ?? openNeighbour()
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.name = "neighbour"
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        return context
    }

    private func openNeighbour() throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: FeatureModel.first)
        let url = try require(stack.coordinator.persistentStores.first?.url)
        try coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: url,
            options: Self.options(kind)
        )
        neighbour = coordinator
        return coordinator
    }

    /// Merges what the history has reported since the last look at it.
    func mergeHistory() throws {
        let transactions = try self.transactions()
        context.performAndWait {
            for transaction in transactions {
                context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
            }
        }
    }

    // MARK: - Stores

    /// Saves what is pending, and makes contexts and coordinators forget the store.
    func leaveStore() throws -> (url: URL, store: NSPersistentStore) {
        if !reference.pending.isEmpty { try save() }
        try checkStore()
        forget()
        other.performAndWait { other.reset() }
        neighbour = nil
        let store = try require(stack.coordinator.persistentStores.first)
        return (try require(store.url), store)
    }

    /// Makes the context forget everything, and go on.
    func reset() throws {
        forget()
        try watchResults()
    }

    private func forget() {
        controller = nil
        context.performAndWait { context.reset() }
        letGo()
        reference.discard()
    }

    func reopen() throws {
        let (url, store) = try leaveStore()
        try stack.coordinator.remove(store)
        try open(at: url)
    }

    private func open(at url: URL) throws {
        var options = Self.options(kind)
        options[NSMigratePersistentStoresAutomaticallyOption] = true
        options[NSInferMappingModelAutomaticallyOption] = true
        // The way back from a migration loses the attribute that it has added.
        options[NSPersistentStoreAllowsLossyMigrationOption] = true
        try stack.coordinator.addPersistentStore(type: kind.type, configuration: nil, at: url, options: options)
        token = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        try watchResults()
    }

    /// Migrates the store to a model with another attribute, and back.
    func migrate() throws {
        let (url, store) = try leaveStore()
        try stack.coordinator.remove(store)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: FeatureModel.next)
        var options = Self.options(kind)
        options[NSMigratePersistentStoresAutomaticallyOption] = true
        options[NSInferMappingModelAutomaticallyOption] = true
        let migrated = try coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: url,
            options: options
        )
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = coordinator
        try compare(reader, reference.stored, "migrated")
        try coordinator.remove(migrated)
        try open(at: url)
    }

    /// Moves the store to one of another type, and back to a new one of its own type; contexts keep their objects.
    func move() throws {
        if !reference.pending.isEmpty { try save() }
        try checkStore()
        neighbour = nil
        for type in [kind == .memory ? StoreKind.sqlite : .memory, kind] {
            moves += 1
            let store = try require(stack.coordinator.persistentStores.first)
            let url = stack.folder.appendingPathComponent("moved-\(moves).sqlite")
            try stack.coordinator.migratePersistentStore(store, to: url, options: Self.options(type), type: type.type)
            try compare(stack.context("reader"), reference.stored, "moved to \(type)")
        }
        token = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
    }

    // MARK: - Looking

    /// A controller of fetched results, which follows the context.
    private func watchResults() throws {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
        request.sortDescriptors = [
            NSSortDescriptor(key: "number", ascending: true), NSSortDescriptor(key: "serial", ascending: false),
        ]
        let controller = NSFetchedResultsController(
            fetchRequest: request,
            managedObjectContext: context,
            sectionNameKeyPath: nil,
            cacheName: nil
        )
        controller.delegate = delegate
        try context.performAndWait { try controller.performFetch() }
        self.controller = controller
    }

    /// All that a context shows.
    func picture(in context: NSManagedObjectContext) throws -> FeatureState {
        try context.performAndWait {
            var state = FeatureState()
            for entity in ["Thing", "Owner", "Part", "Tag", "Vault"] {
                for object in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity)) {
                    let serial = object.value(forKey: "serial") as? Int ?? -1
                    if state.records[serial] != nil { throw FeatureDifference("\(serial) is there twice") }
                    state.records[serial] = record(of: object)
                    if !object.objectID.isTemporaryID { serials[object.objectID.uriRepresentation()] = serial }
                }
            }
            return state
        }
    }

    private func record(of object: NSManagedObject) -> FeatureState.Record {
        var record = FeatureState.Record(entity: object.entity.name ?? "")
        for key in object.entity.attributesByName.keys {
            if let value = object.value(forKey: key) { record.values[key] = FeatureState.text(value) }
        }
        func serial(_ member: Any) -> Int { (member as? NSManagedObject)?.value(forKey: "serial") as? Int ?? -1 }
        for key in object.entity.relationshipsByName.keys {
            switch object.value(forKey: key) {
            case let members as NSOrderedSet:
                if members.count > 0 { record.links[key] = members.array.map(serial) }
            case let members as Set<NSManagedObject>:
                if !members.isEmpty { record.links[key] = members.map(serial).sorted() }
            case let target as NSManagedObject: record.links[key] = [serial(target)]
            default: break
            }
        }
        return record
    }

    private func compare(_ context: NSManagedObjectContext, _ wanted: FeatureState, _ moment: String) throws {
        let shown = try picture(in: context)
        let stored = context === self.context ? reference.stored : nil
        if let difference = shown.difference(from: wanted, stored: stored) {
            throw FeatureDifference("\(moment): \(difference)")
        }
    }

    /// Compares what the context shows, and its answers, with the reference.
    func checkContext() throws {
        try compare(context, reference.seen, "the context")
        let isPending = !reference.pending.isEmpty
        try context.performAndWait {
            if isPending, !context.hasChanges { throw FeatureDifference("the context has no changes") }
            let results = (controller?.fetchedObjects ?? []).map { $0.value(forKey: "serial") as? Int ?? -1 }
            let wanted = reference.seen.all("Item").sorted {
                let (one, other) = (reference.seen.records[$0], reference.seen.records[$1])
                let numbers = (Int(one?.values["number"] ?? "") ?? -1, Int(other?.values["number"] ?? "") ?? -1)
                return numbers.0 == numbers.1 ? $0 > $1 : numbers.0 < numbers.1
            }
            if results != wanted { throw FeatureDifference("the results are \(results), expected \(wanted)") }
        }
    }

    /// Compares the store with the reference, as a new context of the coordinator reads it, and the history.
    func checkStore() throws {
        try compare(stack.context("reader"), reference.stored, "the store")
        try checkHistory("the history")
    }

    /// Compares the stored state as another coordinator reads it, and looks for damage.
    func checkWhole() throws {
        if isDatabase { try compare(neighbourContext(), reference.stored, "another coordinator") }
        let lines = try stack.coordinator.state().lines
        let problems = lines.filter { $0.hasPrefix("problem") }
        if !problems.isEmpty { throw FeatureDifference("verify: \(problems)") }
        let files = lines.count { $0.hasPrefix("file of") }
        let large = reference.stored.records.values.count(where: Self.isLarge)
        if kind == .sqlite, files < large {
            throw FeatureDifference("there are \(files) external files, expected \(large)")
        }
    }

    private static func isLarge(_ record: FeatureState.Record) -> Bool {
        (record.values["blob"]?.split(separator: " ").first.flatMap { Int($0) } ?? 0) > 140_000
    }

    // MARK: - History

    private func transactions() throws -> [NSPersistentHistoryTransaction] {
        try other.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
            let result = try other.execute(request) as? NSPersistentHistoryResult
            return result?.result as? [NSPersistentHistoryTransaction] ?? []
        }
    }

    /// Compares the transactions since the last look with the saves that the reference has seen.
    private func checkHistory(_ moment: String) throws {
        defer { reference.saves = [] }
        guard isDatabase else { return }
        let transactions = try self.transactions()
        token = transactions.last?.token ?? token
        let shown = transactions.map { transaction in
            (transaction.changes ?? []).map(described).sorted()
        }
        let wanted = reference.saves.map { save in
            save.after.changes(from: save.before).map { serial, change in
                switch change {
                case .inserted: "\(serial) inserted"
                case .deleted: "\(serial) deleted"
                case .updated(let keys): "\(serial) updated \(keys.sorted())"
                }
            }.sorted()
        }
        guard shown != wanted else { return }
        for (own, others) in zip(shown, wanted) where own != others {
            let more = own.filter { !others.contains($0) }
            let less = others.filter { !own.contains($0) }
            throw FeatureDifference("\(moment) has \(more), not \(less)")
        }
        throw FeatureDifference("\(moment) has \(shown.count) transactions, expected \(wanted.count): \(shown)")
    }

    private func described(_ change: NSPersistentHistoryChange) -> String {
        let serial = serials[change.changedObjectID.uriRepresentation()].map(String.init) ?? "unknown"
        switch change.changeType {
        case .insert: return "\(serial) inserted"
        case .delete: return "\(serial) deleted"
        case .update:
            let names = (change.updatedProperties ?? []).map(\.name).filter { !FeatureState.derived.contains($0) }
            return "\(serial) updated \(names.sorted())"
        }
    }
}
