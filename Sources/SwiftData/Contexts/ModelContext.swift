import CoreData
import Foundation

/// The objects that one part of a program works with, and their changes until they are saved.
///
/// A context and its objects are used where the context was made, for instance in one actor. It follows the saves of
/// the other contexts of its container: objects without changes show the new values, and unsaved changes stay.
///
/// ```swift
/// let context = ModelContext(container)
/// context.insert(Trip(name: "Italy"))
/// try context.save()
/// ```
public final class ModelContext: Equatable, SendableMetatype {
    /// The container, which lives as long as its contexts.
    public var container: ModelContainer { managed.container }
    let managed: ManagedContext

    /// The objects with changes, which live until the changes are saved or given up.
    private var changed: [ObjectIdentifier: any PersistentModel] = [:]
    /// The objects whose values are not in their managed objects yet; `nil` if no insertion runs.
    private var arriving: [any PersistentModel]?
    /// The members of the to-many relationship that was set last.
    var memberList: MemberList?
    /// The model objects that were made for reads of to-one relationships, for the next reads of the same rows.
    ///
    /// Only this context holds them, not its objects, so that no two objects hold each other.
    private var kept = KeptModels()
    private var isSaveScheduled = false
    /// Whether the context lives because a save without a call has failed.
    private var isKept = false

    /// Makes a context that works with the stores of a container.
    ///
    /// - Parameter container: The container.
    public init(_ container: ModelContainer) {
        managed = ManagedContext(container)
        managed.serve(self)
    }

    /// Makes a context with the objects and changes of one that the program has not kept.
    init(managed: ManagedContext) {
        self.managed = managed
        onQueue { holdChanged() }
    }

    /// Holds exactly the objects with changes.
    func holdChanged() {
        letGoOfChanged()
        for object in managed.insertedObjects.union(managed.updatedObjects).union(managed.deletedObjects) {
            changed[ObjectIdentifier(object)] = managed.registeredModel(of: object)
        }
        if !changed.isEmpty { scheduleSave() }
    }

    /// Lets go of the objects that had changes.
    private func letGoOfChanged() {
        awaitChanges()
        changed = [:]
        letGoOfRead()
    }

    /// Lets go of the objects that are kept for further reads.
    private func letGoOfRead() {
        // The end of an object runs code of the program, which may read here.
        let former = (memberList, kept)
        (memberList, kept) = (nil, KeptModels())
        withExtendedLifetime(former) {}
    }

    /// Keeps a model object for further reads of its row, until the next save at the latest.
    func keep(_ model: AnyObject) {
        let former = kept.add(model)
        withExtendedLifetime(former) {}
    }

    /// Wants to know of the next change of each object.
    private func awaitChanges() {
        for model in changed.values { model.backing.isKnownAsChanged = false }
    }

    /// Whether changes are saved without a call.
    ///
    /// Default false, and true for the main context, which saves after the job that made the first change.
    public var autosaveEnabled: Bool {
        get { managed.autosaveEnabled }
        set {
            onQueue {
                managed.autosaveEnabled = newValue
                awaitChanges()
            }
        }
    }

    /// The author, whom the history names.
    public var author: String? {
        get { onQueue { managed.transactionAuthor } }
        set { onQueue { managed.transactionAuthor = newValue } }
    }

    /// The author of changes in this context, for custom stores.
    public var editingState: EditingState { onQueue { managed.editingState } }

    /// The recorder of changes, by which they can be undone; none by default.
    ///
    /// The changes until the next ``processPendingChanges()``, fetch or save are one step. The manager is used where the
    /// context is used. An object whose insertion is undone leaves the context with its values; one whose deletion is
    /// undone comes back, as a new object if the deletion was saved. A roll-back empties the manager.
    public var undoManager: CoreData.UndoManager? {
        get { onQueue { managed.undoManager } }
        set {
            onQueue {
                managed.undoManager = newValue
                newValue?.setScope(of: managed) { [weak managed] isStep, work in
                    if let managed { managed.undo(isStep: isStep, work) } else { work() }
                }
            }
        }
    }

    /// Whether there are unsaved changes; new objects that were deleted again are none.
    public var hasChanges: Bool { onQueue { managed.hasChangesForStores } }

    /// The objects that were inserted since the last save.
    public var insertedModelsArray: [any PersistentModel] { sorted(managed.insertedObjects) }

    /// The objects that were changed since the last save.
    public var changedModelsArray: [any PersistentModel] { sorted(managed.updatedObjects) }

    /// The objects that were deleted since the last save.
    public var deletedModelsArray: [any PersistentModel] { sorted(managed.deletedObjects) }

    private func sorted(_ objects: @autoclosure () -> Set<NSManagedObject>) -> [any PersistentModel] {
        onQueue {
            // The changes that delete rules and inverses make count as well.
            managed.processPendingChanges()
            return managed.ordered(objects()).map { model(of: $0) }
        }
    }

    // MARK: - Changes

    /// Takes in an object and all objects that it reaches and that no context has.
    ///
    /// An object that is in the context stays as it is; a deleted one that was not saved comes back.
    ///
    /// - Parameter model: The object.
    public func insert<Model: PersistentModel>(_ model: Model) { onQueue { _ = adopt(model) } }

    /// Marks an object as deleted.
    ///
    /// Its row goes with the next save.
    ///
    /// - Parameter model: The object. One that no context has is left alone.
    public func delete<Model: PersistentModel>(_ model: Model) {
        onQueue {
            guard let object = model.backing.object else { return }
            precondition(model.backing.modelContext === self, Self.foreign(model))
            letGoOfRead()
            if object.isInserted {
                // There is no row to delete. The object is as it was before its insertion.
                model.backing.keepValues()
                managed.delete(object)
                managed.processPendingChanges()
                model.backing.detach()
                changed[ObjectIdentifier(object)] = nil
            } else {
                changed[ObjectIdentifier(object)] = model
                managed.delete(object)
            }
            scheduleSave()
        }
    }

    /// Deletes all objects of a class that satisfy a predicate, by the delete rules.
    ///
    /// Their rows go with the next save.
    ///
    /// - Parameters:
    ///   - model: The class.
    ///   - predicate: The condition; `nil` for all objects.
    ///   - includeSubclasses: Whether objects of subclasses are deleted, too.
    /// - Throws: The errors of ``fetch(_:)``.
    public func delete<T: PersistentModel>(
        model: T.Type,
        where predicate: Predicate<T>? = nil,
        includeSubclasses: Bool = true
    ) throws {
        var descriptor = FetchDescriptor(predicate: predicate)
        descriptor.includesSubclasses = includeSubclasses
        for object in try fetch(descriptor) { delete(object) }
    }

    /// Gives up all unsaved changes.
    public func rollback() {
        onQueue {
            // The values of new objects go with the roll-back, and are noted before.
            let new = changed.values.filter { $0.backing.object?.isInserted == true }
            for model in new { model.backing.keepValues() }
            managed.rollback()
            for model in new { model.backing.detach() }
            letGoOfChanged()
            endKeeping()
        }
    }

    /// Runs a block, and saves.
    ///
    /// If the block throws, then nothing is saved, and its changes stay in the context.
    ///
    /// - Parameter block: The changes.
    /// - Throws: The errors of the block and of ``save()``.
    public func transaction(block: () throws -> Void) throws {
        try block()
        try save()
    }

    /// Brings inverses and the undo manager up to date.
    public func processPendingChanges() { onQueue { managed.processPendingChanges() } }

    /// Writes the unsaved changes into the stores.
    ///
    /// Without changes it does nothing. A new object with a unique value that a row has takes over that row.
    ///
    /// If another context has changed the same property of an object since, then that is no error: the later save wins.
    ///
    /// - Throws: Core Data's errors of validation (1550–1699) and of stores (134000–134999). The changes stay in the
    ///   context then.
    public func save() throws {
        try onQueue {
            guard managed.hasChangesForStores else { return letGoOfDiscarded() }
            NotificationCenter.default.post(name: Self.willSave, object: self)
            // The changes that delete rules and inverses make are saved as well.
            managed.processPendingChanges()
            letGoOfDiscarded()
            managed.savedTokens = [:]
            let (inserted, updated, deleted) = (managed.insertedObjects, managed.updatedObjects, managed.deletedObjects)
            let deletedIdentifiers = Set(
                deleted.filter { !$0.objectID.isTemporaryID }.map { PersistentIdentifier($0.objectID) }
            )
            let ended = deleted.flatMap { managed.models(of: $0) }
            for model in ended { model.backing.keepValues() }
            let claims = inserted.compactMap { managed.uniqueClaim(of: $0) }
            try managed.save()
            for model in ended { model.backing.detach() }
            let heirs = try claims.filter(\.object.objectID.isTemporaryID).compactMap { try managed.settle($0) }
            letGoOfChanged()
            endKeeping()
            NotificationCenter.default.post(
                name: Self.didSave,
                object: self,
                userInfo: [
                    // A new object that has taken over a row has changed that row.
                    NotificationKey.insertedIdentifiers.rawValue: Set(
                        inserted.filter { !$0.objectID.isTemporaryID }.map { PersistentIdentifier($0.objectID) }
                    ),
                    NotificationKey.updatedIdentifiers.rawValue: Set(
                        updated.union(heirs).map { PersistentIdentifier($0.objectID) }
                    ),
                    NotificationKey.deletedIdentifiers.rawValue: deletedIdentifiers,
                    NotificationKey.historyTokens.rawValue: historyTokens,
                ]
            )
        }
    }

    /// Lets new objects that delete rules have deleted leave the context, with their values.
    ///
    /// There is no row to delete, so no save ends them.
    private func letGoOfDiscarded() {
        for object in managed.discardedObjects {
            for model in managed.models(of: object) {
                model.backing.keepValues()
                model.backing.detach()
            }
            changed[ObjectIdentifier(object)] = nil
        }
    }

    /// The places in the histories after the last save, by the identifiers of the stores that it has written to.
    private var historyTokens: [String: any HistoryToken] {
        let saved = managed.observers.values?.savedTransactions ?? [:]
        return saved.reduce(into: managed.savedTokens) {
            $0[$1.key] = DefaultHistoryToken(tokenValue: [$1.key: $1.value])
        }
    }

    /// Posted before a save with changes, by the context.
    public static let willSave = Notification.Name("NSModelContextWillSaveNotification")
    /// Posted after a save with changes, by the context; the keys are those of ``NotificationKey``.
    public static let didSave = Notification.Name("NSModelContextDidSaveNotification")

    /// The keys of the notifications' information, by their raw values.
    ///
    /// ```swift
    /// let key = ModelContext.NotificationKey.insertedIdentifiers.rawValue
    /// let inserted = notification.userInfo?[key] as? Set<PersistentIdentifier>
    /// ```
    public enum NotificationKey: String, Sendable {
        /// Not used: contexts are not pinned to versions of the data.
        case queryGeneration
        /// Not used: contexts are not reset.
        case invalidatedAllIdentifiers
        /// The identifiers of the new objects, a `Set<PersistentIdentifier>`.
        case insertedIdentifiers
        /// The identifiers of the changed objects, a `Set<PersistentIdentifier>`.
        case updatedIdentifiers
        /// The identifiers of the deleted objects, a `Set<PersistentIdentifier>`.
        case deletedIdentifiers
        /// The places in the histories after the save, a `[String: any HistoryToken]` by the identifiers of the stores.
        case historyTokens
    }

    // MARK: - Identity

    /// The object of an identifier, which is read when it is used.
    ///
    /// If no row has the identifier, then reading a property stops the program. ``registeredModel(for:)`` and a fetch
    /// are safe ways to find out.
    ///
    /// - Parameter identifier: The identifier, of a store of this container.
    /// - Returns: The object.
    public func model(for identifier: PersistentIdentifier) -> any PersistentModel {
        onQueue {
            guard let id = objectID(identifier) else {
                fatalError("SwiftData: \(identifier.uri) belongs to no store of this container.")
            }
            let object = managed.object(with: id)
            return model(of: object)
        }
    }

    /// The object of an identifier if the context holds it.
    ///
    /// - Parameter identifier: The identifier.
    /// - Returns: The object; `nil` if the context does not hold it, or it has another class.
    public func registeredModel<T: PersistentModel>(for identifier: PersistentIdentifier) -> T? {
        onQueue {
            guard let id = objectID(identifier), let object = managed.registeredObject(for: id) else { return nil }
            return managed.registeredModel(of: object) as? T
        }
    }

    func objectID(_ identifier: PersistentIdentifier) -> NSManagedObjectID? {
        if identifier.isTemporary {
            return managed.insertedObjects.first {
                managed.registeredModel(of: $0)?.persistentModelID == identifier
            }?.objectID
        }
        if let store = container.snapshotStores.first(where: { $0.dataStoreIdentifier == identifier.storeIdentifier }) {
            return store.id(of: identifier)
        }
        return URL(string: identifier.uri).flatMap { container.coordinator.managedObjectID(forURIRepresentation: $0) }
    }

    /// The model object of a managed object: the one that exists, or a new one.
    func model(of object: NSManagedObject) -> any PersistentModel { managed.model(of: object) }

    /// The managed object of a model object, which is inserted if no context has it.
    func adopt(_ model: any PersistentModel) -> NSManagedObject {
        let backing = model.backing
        if let object = backing.object {
            precondition(backing.modelContext === self, Self.foreign(model))
            if object.isDeleted { managed.insert(object) }
            return object
        }
        let name = type(of: model).record.entityName
        guard let entity = container.model.entitiesByName[name] else {
            fatalError("SwiftData: \(type(of: model)) is not in the schema of this container.")
        }
        if let problem = container.schema.mismatch(of: type(of: model)) { fatalError("SwiftData: \(problem)") }
        let object = ModelObject(entity: entity, insertInto: managed)
        backing.attach(object, in: managed)
        managed.register(model, object)
        changed[ObjectIdentifier(object)] = model
        scheduleSave()
        awaitingValues { arriving?.append(model) }
        return object
    }

    /// Runs a block that takes objects in, and then gives them their values.
    ///
    /// The objects that they reach come one after the other, because a chain of them can be long.
    func awaitingValues(_ block: () -> Void) {
        guard arriving == nil else { return block() }
        arriving = []
        block()
        while let next = arriving?.popLast() { next.backing.transferValues(of: next) }
        arriving = nil
    }

    private static func foreign(_ model: any PersistentModel) -> String {
        "SwiftData: an object of \(type(of: model)) belongs to another context. Get it there by its persistentModelID."
    }

    /// Runs a change of an object, which lives until the change is saved.
    ///
    /// - Returns: Whether this context has the object; otherwise nothing is done.
    func change(_ state: ModelState, _ body: (NSManagedObject) -> Void) -> Bool {
        onQueue {
            guard let object = state.object, state.managed === managed else { return false }
            let model = managed.registeredModel(of: object)
            if let model { changed[ObjectIdentifier(object)] = model }
            body(object)
            scheduleSave()
            // Further writes need no notice until the context lets go of the object.
            state.isKnownAsChanged = model != nil
            return true
        }
    }

    /// Saves after the current job of the main actor, if changes are saved without a call.
    private func scheduleSave() {
        guard autosaveEnabled, !isSaveScheduled else { return }
        isSaveScheduled = true
        nonisolated(unsafe) let context = self  // All that the save uses is guarded by the context's queue.
        Task { @MainActor in
            if !context.saveBySchedule() { KeptContexts.shared.contexts[ObjectIdentifier(context)] = context }
        }
    }

    /// Saves without a call; `false` if the changes cannot be saved.
    ///
    /// They stay then, and are tried again with the next change. The context has to be kept until they are gone.
    private func saveBySchedule() -> Bool {
        onQueue {
            isSaveScheduled = false
            awaitChanges()
            guard autosaveEnabled else { return true }
            do {
                try save()
            } catch {
                isKept = true
            }
            return !isKept
        }
    }

    /// Lets go of a context whose changes could not be saved before.
    private func endKeeping() {
        guard isKept else { return }
        isKept = false
        let key = ObjectIdentifier(self)
        Task { @MainActor in KeptContexts.shared.contexts[key] = nil }
    }

    /// Compares the identity of the contexts.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: ModelContext, rhs: ModelContext) -> Bool { lhs === rhs }

    // MARK: - The queue

    /// Runs a block on the context's queue, where merges of other saves run, too.
    ///
    /// Afterwards the observers of properties that the block has changed without their setters are notified.
    func onQueue<Result>(_ body: () throws -> Result) rethrows -> Result {
        try managed.performAndWait {
            defer { managed.observers.values?.report() }
            return try body()
        }
    }
}

/// The contexts whose changes could not be saved without a call.
///
/// They live until a save or a roll-back.
@MainActor private final class KeptContexts {
    static let shared = KeptContexts()

    var contexts: [ObjectIdentifier: ModelContext] = [:]
}
