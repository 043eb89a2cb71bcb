import CoreData
import Foundation

/// The values of a model object without the types of its class: in memory without a context, in a managed object with
/// one.
class ModelState: GlancedObject {
    /// The record of the class; it lives as long as the process, so no references are counted.
    final unowned(unsafe) let record: ModelRecord
    /// The state of an object that is in no context, or was in none; `nil` until it is needed.
    private final var inMemory: ValuesInMemory?
    /// Whether the model object is being made, so that its initial values are of no interest.
    final var isBeingMade = false

    required init(_ record: ModelRecord) {
        self.record = record
        super.init()
    }

    /// The context of the object.
    final var managed: ManagedContext? {
        // No code leads it to an object of another context.
        context.map { unsafeDowncast($0, to: ManagedContext.self) }
    }

    final var modelContext: ModelContext? { managed?.modelContext }

    /// The values without a context, by the names of the properties; those of relationships are model objects.
    final var values: [String: Any] { inMemory?.values ?? [:] }

    /// The same, made if it is missing.
    private final var writableInMemory: ValuesInMemory {
        if let inMemory { return inMemory }
        let made = ValuesInMemory()
        inMemory = made
        return made
    }

    final var metadata: Any {
        get { inMemory?.metadata ?? () }
        set { writableInMemory.metadata = newValue }
    }

    // MARK: - Identity

    final var persistentModelID: PersistentIdentifier? {
        get { identifier }
        set { writableInMemory.lastIdentifier = newValue }
    }

    final var identifier: PersistentIdentifier {
        // The identifier of a new object stays the same from its creation to its first save.
        if let object {
            return object.objectID.isTemporaryID ? temporaryIdentifier : PersistentIdentifier(object.objectID)
        }
        return inMemory?.lastIdentifier ?? temporaryIdentifier
    }

    private final var temporaryIdentifier: PersistentIdentifier {
        let inMemory = writableInMemory
        if let known = inMemory.temporaryIdentifier { return known }
        let identifier = PersistentIdentifier.temporary(entityName: record.entityName)
        inMemory.temporaryIdentifier = identifier
        return identifier
    }

    /// Whether it has an object of a context, or has had a saved one.
    final var isKnownToContexts: Bool { object != nil || inMemory?.lastIdentifier != nil }

    final var hasChanges: Bool { inScope { object, _ in object.hasChanges } ?? false }

    final var isDeleted: Bool { inScope { object, _ in object.isDeleted } ?? false }

    /// Runs a short block inside the scope of the context; the result is nil if no context has the object.
    private final func inScope<Result>(_ body: (NSManagedObject, ManagedContext) -> Result) -> Result? {
        var result: Result?
        // No code leads a link of this class to an object of another context.
        _ = performAtOnce { result = body($0, unsafeDowncast($1, to: ManagedContext.self)) }
        return result
    }

    // MARK: - Entering and leaving contexts

    /// Moves the values into an object of a context.
    final func attach(_ object: NSManagedObject, in managed: ManagedContext) {
        if let property = record.properties.first(where: { inMemory?.unloaded.contains($0.name) == true }) {
            stop(property, "cannot be inserted again, because its value was not loaded before its deletion")
        }
        lead(to: object, of: managed)
    }

    /// Copies the values that it had without a context into its object.
    ///
    /// - Parameter model: The model object, which has the values of constants.
    final func transferValues(of model: any PersistentModel) {
        guard let object, let context = modelContext else { return }
        let values = values
        inMemory?.values = [:]
        for property in record.properties {
            // The value of a constant is in the model object itself.
            guard let value = property.isConstant ? property.value(of: model) : values[property.name] else { continue }
            switch property.kind {
            case .attribute:
                object.setValue(stored(value, property), forKey: property.name)
            case .toOne:
                if let other = value as? any PersistentModel {
                    object.setValue(context.adopt(other), forKey: property.name)
                }
            case .toMany:
                // Members that inverses have brought in the meantime stay.
                let members = object.mutableSetValue(forKey: property.name)
                for other in property.members(value) { members.add(context.adopt(other)) }
            }
        }
    }

    /// Takes the values of the part of a new object that its superclass describes.
    final func takeValues(of other: ModelState) {
        guard !other.values.isEmpty else { return }
        writableInMemory.values.merge(other.values) { own, _ in own }
    }

    /// Reads and writes the values in another object of the context from now on.
    final func move(to object: NSManagedObject) {
        leave()
        lead(to: object, of: context)
    }

    /// Notes in the managed object that this is not where it leads to any more; used inside the scope.
    private final func leave() { (object as? ModelObject)?.loseModel() }

    /// Notes in the managed object that the model object may have another backing.
    final func loseModel() { _ = inScope { _, _ in leave() } }

    /// Copies the loaded values out of its object, which is going to be gone.
    final func keepValues() {
        guard let object else { return }
        let inMemory = writableInMemory
        (inMemory.values, inMemory.unloaded) = ([:], [])
        for property in record.properties where !property.isConstant {
            guard case .attribute = property.kind else { continue }
            if !object.isFault, !hasLostRow, let value = try? property.value(of: object) ?? property.absentValue {
                inMemory.values[property.name] = value
            } else {
                inMemory.unloaded.insert(property.name)
            }
        }
    }

    /// Leaves the context, with the values that were kept.
    final func detach() {
        guard let object else { return }
        let inMemory = writableInMemory
        if !object.objectID.isTemporaryID {
            // An object in a custom store has an ID before its first save succeeds, but no permanent identifier.
            let last = PersistentIdentifier(object.objectID)
            if !last.isTemporary { inMemory.lastIdentifier = last }
        }
        inMemory.former = managed?.undoManager == nil ? nil : object
        leave()
        lead(to: nil, of: nil)
    }

    /// Reads and writes the values in the object that it has left, which is in the context again.
    ///
    /// Nothing happens if it has another object, or has left another one.
    final func reattach(_ object: NSManagedObject, in managed: ManagedContext) {
        guard let inMemory, self.object == nil, inMemory.former === object else { return }
        (inMemory.values, inMemory.unloaded, inMemory.former) = ([:], [], nil)
        lead(to: object, of: managed)
    }

    /// Notes that the row of the object has gone, so that its values cannot be read.
    final func loseRow() { hasLostRow = true }

    // MARK: - Reading

    /// Fills a fault.
    ///
    /// - Returns: Whether the object was a fault, and has its values now.
    final func fillFault() -> Bool {
        var isFilled = false
        _ = performAtOnce { object, _ in
            guard object.isFault, !hasLostRow else { return }
            object.willAccessValue(forKey: nil)
            isFilled = !object.isFault && !object.isWithoutRow
        }
        return isFilled
    }

    /// The value of an attribute; `nil` for none.
    final func value(of property: ModelProperty) -> Any? {
        let found = inScope { object, _ -> Any? in
            do {
                return try reading(property, object) { try property.value(of: object) }
            } catch {
                stop(property, "cannot be read: \(error)")
            }
        }
        if let found { return found }
        guard let inMemory else { return nil }
        if inMemory.unloaded.contains(property.name) {
            stop(property, "was not loaded before its object was deleted")
        }
        return inMemory.values[property.name]
    }

    /// The object of a to-one relationship.
    final func related(_ property: ModelProperty) -> (any PersistentModel)? {
        let found = inScope { object, managed -> (any PersistentModel)? in
            let other = reading(property, object) { object.value(forKey: property.name) as? NSManagedObject }
            return other.map { managed.model(of: $0) }
        }
        if let found { return found }
        return values[property.name] as? any PersistentModel
    }

    /// The object of an attached to-one relationship whose place is known, for what no glance has found.
    final func related(at place: borrowing _PropertyPlace) -> GlancedObject.Destination {
        var related = GlancedObject.Destination.unknown
        func read(_ object: NSManagedObject, _ context: NSManagedObjectContext) {
            guard !hasLostRow, !object.isFault, !object.isWithoutRow else { return }
            let other = NSManagedObject.managedReadOptional(object, place.property.untyped)
            // No code leads a link of this class to an object of another context.
            let managed = unsafeDowncast(context, to: ManagedContext.self)
            related = other.map { .found(managed.keptModel(of: $0)) } ?? .absent
        }
        return performAtOnce { read($0, $1) } ? related : .unknown
    }

    /// The objects of a to-many relationship, in the order of their keys; new ones come last.
    ///
    /// The result is `nil` if the object is in no context.
    final func members<Member: PersistentModel>(_ property: ModelProperty, as type: Member.Type) -> [Member]? {
        inScope { object, managed in
            if !hasLostRow, let known = managed.knownMembers(named: property.name, of: object) {
                // They were set as objects of this class.
                return unsafeBitCast(known, to: [Member].self)
            }
            let objects =
                reading(property, object) { object.value(forKey: property.name) as? Set<NSManagedObject> } ?? []
            return managed.models(of: managed.ordered(objects), as: Member.self)
        }
    }

    /// Reads, and stops the program if what was read is no value because the row has gone or could not be read.
    private final func reading<Result>(
        _ property: ModelProperty,
        _ object: NSManagedObject,
        _ body: () throws -> Result
    ) rethrows -> Result {
        let wasFault = object.isFault
        let result = try body()
        if hasLostRow || wasFault && object.isWithoutRow {
            stop(property, "cannot be read, because the object's row has gone")
        }
        var isUnread = object.isFault
        if case .toMany = property.kind { isUnread = isUnread || object.hasFault(forRelationshipNamed: property.name) }
        if isUnread { stop(property, "could not be read from the store") }
        return result
    }

    // MARK: - Writing

    final func setAttribute(_ property: ModelProperty, _ newValue: Any) {
        if change({ object, _ in object.setValue(stored(newValue, property), forKey: property.name) }) { return }
        let inMemory = writableInMemory
        inMemory.values[property.name] = newValue
        inMemory.unloaded.remove(property.name)
    }

    final func setRelated(_ property: ModelProperty, _ newValue: (any PersistentModel)?) {
        let isDone = change { object, context in
            object.setValue(newValue.map { context.adopt($0) }, forKey: property.name)
        }
        if !isDone { writableInMemory.values[property.name] = newValue }
    }

    final func setMembers<Value: RelationshipCollection>(_ property: ModelProperty, _ newValue: Value) {
        let isDone = change { object, context in
            context.setMembers(newValue.objects, named: property.name, of: object)
        }
        if !isDone { writableInMemory.values[property.name] = newValue }
    }

    /// Changes the object.
    ///
    /// - Returns: Whether a context has the object.
    private final func change(_ body: (NSManagedObject, ModelContext) -> Void) -> Bool {
        // When the scope is free, the object may have left the context.
        while let modelContext {
            if modelContext.change(self, { body($0, modelContext) }) { return true }
        }
        return false
    }

    private final func stored(_ value: Any, _ property: ModelProperty) -> Any? {
        guard case .attribute(let form) = property.kind else { return nil }
        do {
            return try form.stored(value)
        } catch {
            stop(property, "cannot be stored: \(error)")
        }
    }

    final func stop(_ property: ModelProperty, _ problem: String) -> Never {
        fatalError("SwiftData: \(record.type).\(property.name) \(problem) (\(identifier)).")
    }
}

/// The state of a model object that is in no context, or was in none.
private final class ValuesInMemory {
    var values: [String: Any] = [:]
    var temporaryIdentifier: PersistentIdentifier?
    /// The identifier of an object whose row is gone.
    var lastIdentifier: PersistentIdentifier?
    /// The attributes that were not loaded when the object left its context; their values are unknown.
    var unloaded: Set<String> = []
    /// The object that it has left, which undo may bring back.
    weak var former: NSManagedObject?
    var metadata: Any = ()
}

/// The values of an object of a model class.
final class ModelBacking<Model: PersistentModel>: ModelState, BackingData {
    convenience init(for modelType: Model.Type) { self.init(Model.record) }

    var _link: _ModelLink { _ModelLink(self) }

    // MARK: - Reading

    func getValue<Value: Decodable>(forKey key: KeyPath<Model, Value>) -> Value { attribute(key) }

    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        guard let value = related(property) as? Value else { stop(property, "has no object, and is not optional") }
        return value
    }

    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>) -> Value? {
        related(record.property(key)) as? Value
    }

    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement { collection(key) }

    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement { collection(key) }

    func getTransformableValue<Value>(forKey key: KeyPath<Model, Value>) -> Value { attribute(key) }

    private func attribute<Value>(_ key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        if let value = value(of: property) {
            if let value = value as? Value { return value }
        } else if let none = property.absentValue as? Value {
            return none
        } else if let value = property.defaultValue as? Value {
            // Apple's framework leaves the columns of a new enumeration or structure empty in a migration.
            return value
        }
        stop(property, "has no value of type \(Value.self)")
    }

    private func collection<Value: RelationshipCollection>(_ key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        let members = members(property, as: Value.PersistentElement.self)
        if members == nil, let value = values[property.name] as? Value, !value.isAbsent { return value }
        guard let value = (members ?? []) as? Value else { stop(property, "is a collection of type \(Value.self)") }
        return value
    }

    // MARK: - Writing

    func setValue<Value: Encodable>(forKey key: KeyPath<Model, Value>, to newValue: Value) {
        if !isBeingMade { setAttribute(record.property(key), newValue) }
    }

    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>, to newValue: Value) {
        if !isBeingMade { setRelated(record.property(key), newValue) }
    }

    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>, to newValue: Value?) {
        if !isBeingMade { setRelated(record.property(key), newValue) }
    }

    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        if !isBeingMade { setMembers(record.property(key), newValue) }
    }

    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        if !isBeingMade { setMembers(record.property(key), newValue) }
    }

    func setTransformableValue<Value>(forKey key: KeyPath<Model, Value>, to newValue: Value) {
        if !isBeingMade { setAttribute(record.property(key), newValue) }
    }
}
