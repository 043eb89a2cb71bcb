import CoreData
import Foundation

/// The part of a backing that does not depend on the class.
protocol AnyModelBacking: AnyObject {
    var context: ModelContext? { get }
    var object: NSManagedObject? { get }
    var identifier: PersistentIdentifier { get }
    var hasChanges: Bool { get }
    var isDeleted: Bool { get }

    /// Moves the values into an object of a context.
    func attach(_ object: NSManagedObject, in context: ModelContext, as model: any PersistentModel)

    /// Copies the values that it had without a context into its object.
    func transferValues()

    /// Copies the loaded values out of its object, which is going to be gone.
    func detach()
}

/// The values of a model object: in memory without a context, in a managed object with one.
final class ModelBacking<Model: PersistentModel>: BackingData, AnyModelBacking {
    private(set) var context: ModelContext?
    private(set) var object: NSManagedObject?
    private weak var model: Model?
    private let record = ModelRecord.of(Model.self)
    /// The values without a context, by the names of the properties; those of relationships are model objects.
    private var values: [String: Any] = [:]
    private lazy var temporaryIdentifier = PersistentIdentifier.temporary(entityName: record.entityName)
    /// The identifier of an object whose row is gone.
    private var lastIdentifier: PersistentIdentifier?

    var metadata: Any = ()

    init(for modelType: Model.Type) {}

    init(object: NSManagedObject, context: ModelContext) {
        self.object = object
        self.context = context
    }

    var persistentModelID: PersistentIdentifier? {
        get { identifier }
        set { lastIdentifier = newValue }
    }

    var identifier: PersistentIdentifier {
        if let object { return PersistentIdentifier(object.objectID) }
        return lastIdentifier ?? temporaryIdentifier
    }

    var hasChanges: Bool {
        guard let object, let context else { return false }
        return context.onQueue { object.hasChanges }
    }

    var isDeleted: Bool {
        guard let object, let context else { return false }
        return context.onQueue { object.isDeleted }
    }

    func attach(_ object: NSManagedObject, in context: ModelContext, as model: any PersistentModel) {
        self.object = object
        self.context = context
        self.model = model as? Model
    }

    /// Notes the object that reads its values here.
    func serve(_ model: Model) { self.model = model }

    func transferValues() {
        guard let object, let context else { return }
        let values = values
        self.values = [:]
        for property in record.properties {
            guard let value = values[property.name] else { continue }
            switch property.kind {
            case .attribute(let form):
                object.setValue(form.stored(value), forKey: property.name)
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

    func detach() {
        guard let object else { return }
        lastIdentifier = PersistentIdentifier(object.objectID)
        if !object.isFault {
            for property in record.properties {
                guard case .attribute = property.kind else { continue }
                values[property.name] = property.value(of: object) ?? property.absentValue
            }
        }
        self.object = nil
        context = nil
    }

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
        if let object, let context {
            value = context.onQueue { property.value(of: object) }
        } else {
            value = values[property.name]
        }
        if let value = value as? Value { return value }
        if let none = property.absentValue as? Value { return none }
        stop(property, "has no value of type \(Value.self)")
    }

    private func related<Value: PersistentModel>(_ property: ModelProperty) -> Value? {
        guard let object, let context else { return values[property.name] as? Value }
        return context.onQueue {
            (object.value(forKey: property.name) as? NSManagedObject).flatMap { context.model(of: $0) as? Value }
        }
    }

    private func collection<Value: RelationshipCollection>(_ key: KeyPath<Model, Value>) -> Value {
        let property = record.property(key)
        let members: [Value.PersistentElement]
        if let object, let context {
            members = context.onQueue {
                let objects = (object.value(forKey: property.name) as? Set<NSManagedObject>) ?? []
                return objects.sorted { PersistentIdentifier($0.objectID) < PersistentIdentifier($1.objectID) }
                    .compactMap { context.model(of: $0) as? Value.PersistentElement }
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
        guard let object, let context, case .attribute(let form) = property.kind else {
            values[property.name] = newValue
            return
        }
        context.change(object, model) { object.setValue(form.stored(newValue), forKey: property.name) }
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
