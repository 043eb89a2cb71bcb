import CoreData
import Foundation

/// The part of a backing that does not depend on the class.
protocol AnyModelBacking: AnyObject {
    var context: ModelContext? { get }
    var object: NSManagedObject? { get }
    var identifier: PersistentIdentifier { get }
    /// Whether it has an object of a context, or has had a saved one.
    var isKnownToContexts: Bool { get }
    var hasChanges: Bool { get }
    var isDeleted: Bool { get }

    /// The values without a context, by the names of the properties.
    var values: [String: Any] { get }

    /// Takes the values of the part of a new object that its superclass describes.
    func takeValues(of other: any AnyModelBacking)

    /// Moves the values into an object of a context.
    func attach(_ object: NSManagedObject, in managed: ManagedContext, as model: any PersistentModel)

    /// Reads and writes the values in another object of the context from now on.
    func move(to object: NSManagedObject)

    /// Copies the values that it had without a context into its object.
    func transferValues()

    /// Copies the loaded values out of its object, which is going to be gone.
    func keepValues()

    /// Leaves the context. The values are those that were kept.
    func detach()

    /// Reads and writes the values in the object that it has left, which is in the context again.
    ///
    /// Nothing happens if it has another object, or has left another one.
    func reattach(_ object: NSManagedObject, in managed: ManagedContext)

    /// Notes that the row of the object has gone, so that its values cannot be read.
    func loseRow()
}

/// The values of a model object: in memory without a context, in a managed object with one.
final class ModelBacking<Model: PersistentModel>: BackingData, AnyModelBacking {
    private var managed: ManagedContext?
    private(set) var object: NSManagedObject?
    var context: ModelContext? { managed?.modelContext }
    private weak var model: Model?
    private let record = ModelRecord.of(Model.self)
    /// The values without a context, by the names of the properties; those of relationships are model objects.
    private(set) var values: [String: Any] = [:]
    private lazy var temporaryIdentifier = PersistentIdentifier.temporary(entityName: record.entityName)
    /// The identifier of an object whose row is gone.
    private var lastIdentifier: PersistentIdentifier?
    /// The attributes that were not loaded when the object left its context; their values are unknown.
    private var unloaded: Set<String> = []
    private var hasLostRow = false
    /// The object that it has left, which undo may bring back.
    private weak var former: NSManagedObject?

    var metadata: Any = ()

    init(for modelType: Model.Type) {}

    init(object: NSManagedObject, managed: ManagedContext) {
        self.object = object
        self.managed = managed
        hasLostRow = object.isWithoutRow
    }

    var persistentModelID: PersistentIdentifier? {
        get { identifier }
        set { lastIdentifier = newValue }
    }

    var identifier: PersistentIdentifier {
        // The identifier of a new object stays the same from its creation to its first save.
        if let object {
            return object.objectID.isTemporaryID ? temporaryIdentifier : PersistentIdentifier(object.objectID)
        }
        return lastIdentifier ?? temporaryIdentifier
    }

    var isKnownToContexts: Bool { object != nil || lastIdentifier != nil }

    var hasChanges: Bool {
        guard let object, let managed else { return false }
        return managed.performAndWait { object.hasChanges }
    }

    var isDeleted: Bool {
        guard let object, let managed else { return false }
        return managed.performAndWait { object.isDeleted }
    }

    func attach(_ object: NSManagedObject, in managed: ManagedContext, as model: any PersistentModel) {
        if let property = record.properties.first(where: { unloaded.contains($0.name) }) {
            stop(property, "cannot be inserted again, because its value was not loaded before its deletion")
        }
        self.object = object
        self.managed = managed
        self.model = model as? Model
    }

    /// Notes the object that reads its values here.
    func serve(_ model: Model) { self.model = model }

    func transferValues() {
        guard let object, let context else { return }
        let values = values
        self.values = [:]
        for property in record.properties {
            // The value of a constant is in the model object itself.
            guard let value = property.isConstant ? model.flatMap({ property.value(of: $0) }) : values[property.name]
            else { continue }
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

    func takeValues(of other: any AnyModelBacking) { values.merge(other.values) { own, _ in own } }

    func move(to object: NSManagedObject) { self.object = object }

    func keepValues() {
        guard let object else { return }
        (values, unloaded) = ([:], [])
        for property in record.properties where !property.isConstant {
            guard case .attribute = property.kind else { continue }
            if !object.isFault, !hasLostRow, let value = try? property.value(of: object) ?? property.absentValue {
                values[property.name] = value
            } else {
                unloaded.insert(property.name)
            }
        }
    }

    func detach() {
        guard let object else { return }
        // An object in a custom store has an ID before its first save succeeds, but no permanent identifier.
        let last = PersistentIdentifier(object.objectID)
        if !last.isTemporary { lastIdentifier = last }
        former = managed?.undoManager == nil ? nil : object
        self.object = nil
        managed = nil
        hasLostRow = false
    }

    func reattach(_ object: NSManagedObject, in managed: ManagedContext) {
        guard self.object == nil, former === object else { return }
        (values, unloaded, former) = ([:], [], nil)
        self.object = object
        self.managed = managed
    }

    func loseRow() { hasLostRow = true }

    // MARK: - Reading

    func getValue<Value: Decodable>(forKey key: KeyPath<Model, Value>) -> Value { attribute(key) }

    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        guard let value: Value = related(property) else { stop(property, "has no object, and is not optional") }
        return value
    }

    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>) -> Value? {
        related(record.property(key))
    }

    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement { collection(key) }

    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement { collection(key) }

    func getTransformableValue<Value>(forKey key: KeyPath<Model, Value>) -> Value { attribute(key) }

    private func attribute<Value>(_ key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        let value: Any?
        if let object, let managed {
            value = managed.performAndWait {
                do {
                    return try reading(property, object) { try property.value(of: object) }
                } catch {
                    stop(property, "cannot be read: \(error)")
                }
            }
        } else {
            if unloaded.contains(property.name) { stop(property, "was not loaded before its object was deleted") }
            value = values[property.name]
        }
        if let value {
            if let value = value as? Value { return value }
        } else if let none = property.absentValue as? Value {
            return none
        }
        stop(property, "has no value of type \(Value.self)")
    }

    /// Reads, and stops the program if what was read is no value because the row has gone or could not be read.
    private func reading<Result>(
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

    private func stored(_ value: Any, _ property: ModelProperty) -> Any? {
        guard case .attribute(let form) = property.kind else { return nil }
        do {
            return try form.stored(value)
        } catch {
            stop(property, "cannot be stored: \(error)")
        }
    }

    private func related<Value: PersistentModel>(_ property: ModelProperty) -> Value? {
        guard let object, let managed else { return values[property.name] as? Value }
        return managed.performAndWait {
            let other = reading(property, object) { object.value(forKey: property.name) as? NSManagedObject }
            return other.flatMap { managed.model(of: $0) as? Value }
        }
    }

    private func collection<Value: RelationshipCollection>(_ key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        let members: [Value.PersistentElement]
        if let object, let managed {
            members = managed.performAndWait {
                let objects =
                    reading(property, object) { object.value(forKey: property.name) as? Set<NSManagedObject> } ?? []
                return objects.map { (PersistentIdentifier($0.objectID), $0) }.sorted { $0.0 < $1.0 }
                    .compactMap { managed.model(of: $0.1) as? Value.PersistentElement }
            }
        } else {
            members = property.members(values[property.name] as Any).compactMap { $0 as? Value.PersistentElement }
        }
        guard let value = members as? Value else { stop(property, "is a collection of type \(Value.self)") }
        return value
    }

    // MARK: - Writing

    func setValue<Value: Encodable>(forKey key: KeyPath<Model, Value>, to newValue: Value) {
        setAttribute(key, newValue)
    }

    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>, to newValue: Value) {
        setRelated(record.property(key), newValue)
    }

    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>, to newValue: Value?) {
        setRelated(record.property(key), newValue)
    }

    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement { setCollection(key, newValue) }

    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        setCollection(key, newValue)
    }

    func setTransformableValue<Value>(forKey key: KeyPath<Model, Value>, to newValue: Value) {
        setAttribute(key, newValue)
    }

    private func setAttribute(_ key: PartialKeyPath<Model>, _ newValue: Any) {
        let property = record.property(key)
        guard let object, let context else {
            values[property.name] = newValue
            unloaded.remove(property.name)
            return
        }
        context.change(object, model) { object.setValue(stored(newValue, property), forKey: property.name) }
    }

    private func setRelated(_ property: ModelProperty, _ newValue: (any PersistentModel)?) {
        guard let object, let context else {
            values[property.name] = newValue
            return
        }
        context.change(object, model) { object.setValue(newValue.map { context.adopt($0) }, forKey: property.name) }
    }

    private func setCollection(_ key: PartialKeyPath<Model>, _ newValue: Any) {
        let property = record.property(key)
        guard let object, let context else {
            values[property.name] = newValue
            return
        }
        context.change(object, model) {
            let members = property.members(newValue).map { context.adopt($0) }
            object.setValue(Set(members), forKey: property.name)
        }
    }

    private func stop(_ property: ModelProperty, _ problem: String) -> Never {
        fatalError("SwiftData: \(Model.self).\(property.name) \(problem) (\(identifier)).")
    }
}
