/// A class whose objects are kept in a store.
///
/// ``Model()`` makes a class conform.
///
/// An object belongs to the context that it was inserted into or fetched with, and is used where that context is used.
///
/// ```swift
/// @Model
/// final class Landmark {
///     var name: String
///     init(name: String) { self.name = name }
/// }
/// ```
public protocol PersistentModel: AnyObject, Observable, Hashable, Identifiable, SendableMetatype {
    /// The topmost model class from which the class inherits.
    associatedtype Root: PersistentModel = Self

    /// Makes an object whose values are in a backing.
    ///
    /// - Parameter backingData: The values.
    init(backingData: any BackingData<Self>)

    /// The values of the object.
    var persistentBackingData: any BackingData<Self> { get set }

    /// The stored properties, in the order of their declaration.
    static var schemaMetadata: [Schema.PropertyMetadata] { get }
}

/// A value of a to-many relationship.
///
/// ```swift
/// func count<Members: RelationshipCollection & Collection>(_ members: Members) -> Int { members.count }
/// ```
public protocol RelationshipCollection {
    /// The class of the related objects.
    associatedtype PersistentElement: PersistentModel
}

extension Array: RelationshipCollection where Element: PersistentModel {
    /// The class of the members.
    public typealias PersistentElement = Element
}

extension Optional: RelationshipCollection where Wrapped: RelationshipCollection {
    /// The class of the members.
    public typealias PersistentElement = Wrapped.PersistentElement
}

extension PersistentModel {
    /// The identifier of the object: temporary until the first save, permanent afterwards.
    public var persistentModelID: PersistentIdentifier { persistentBackingData.persistentModelID ?? backing.identifier }

    /// The context of the object; `nil` before it is inserted, and after its deletion was saved.
    public var modelContext: ModelContext? { backing.modelContext }

    /// Whether the object has changes that are not saved.
    public var hasChanges: Bool { backing.hasChanges }

    /// Whether the object was deleted from its context, and the deletion is not saved yet.
    public var isDeleted: Bool { backing.isDeleted }

    /// The identifier of the object.
    public var id: PersistentIdentifier { persistentModelID }

    /// Compares the identity of the objects.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: Self, rhs: Self) -> Bool { lhs === rhs }

    /// Hashes the identity of the object.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// Makes the values of an object that no context has.
    ///
    /// - Returns: A backing without values.
    public static func createBackingData<P: PersistentModel>() -> some BackingData<P> {
        (ModelMaking.take(for: P.self) as? ModelBacking<P>) ?? ModelBacking<P>(for: P.self)
    }

    /// The backing in the form that contexts use.
    var backing: ModelState {
        // The link needs no cast.
        guard let backing = persistentBackingData._link.state else {
            fatalError("SwiftData: \(Self.self) has a backing that was not made by this library.")
        }
        return backing
    }

    /// Gives a constant with an initial value the value of the row.
    ///
    /// The initialiser that ``Model()`` writes calls it before any code of the program sees the object.
    ///
    /// - Parameters:
    ///   - value: The value of the row.
    ///   - name: The name of the constant.
    ///   - type: The class that declares it.
    public func _restoreConstant<Value>(_ value: Value, named name: String, of type: Self.Type) {
        ConstantStorage.write(value, named: name, of: type, to: self)
    }

    // MARK: - Values

    /// The value of an attribute.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    @_disfavoredOverload
    public func getValue<Value: Decodable>(forKey key: KeyPath<Self, Value>) -> Value {
        persistentBackingData.getValue(forKey: key)
    }

    /// The object of a to-one relationship that always has one.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    public func getValue<Value: PersistentModel>(forKey key: KeyPath<Self, Value>) -> Value {
        persistentBackingData.getValue(forKey: key)
    }

    /// The object of a to-one relationship.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    public func getValue<Value: PersistentModel>(forKey key: KeyPath<Self, Value?>) -> Value? {
        persistentBackingData.getValue(forKey: key)
    }

    /// The objects of a to-many relationship.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    public func getValue<Value, OtherModel>(forKey key: KeyPath<Self, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        persistentBackingData.getValue(forKey: key)
    }

    /// The objects of a to-many relationship whose class is decodable itself.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    public func getValue<Value, OtherModel>(forKey key: KeyPath<Self, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        persistentBackingData.getValue(forKey: key)
    }

    /// The value of a transformable attribute.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    public func getTransformableValue<Value>(forKey key: KeyPath<Self, Value>) -> Value {
        persistentBackingData.getTransformableValue(forKey: key)
    }

    /// Sets an attribute.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    @_disfavoredOverload
    public func setValue<Value: Encodable>(forKey key: KeyPath<Self, Value>, to newValue: Value) {
        persistentBackingData.setValue(forKey: key, to: newValue)
    }

    /// Sets a to-one relationship that always has an object.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    public func setValue<Value: PersistentModel>(forKey key: KeyPath<Self, Value>, to newValue: Value) {
        persistentBackingData.setValue(forKey: key, to: newValue)
        joinContext(by: key, of: [newValue])
    }

    /// Sets a to-one relationship.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    public func setValue<Value: PersistentModel>(forKey key: KeyPath<Self, Value?>, to newValue: Value?) {
        persistentBackingData.setValue(forKey: key, to: newValue)
        if let newValue { joinContext(by: key, of: [newValue]) }
    }

    /// Sets a to-many relationship.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    public func setValue<Value, OtherModel>(forKey key: KeyPath<Self, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        let added = addedMembers(by: key, in: newValue)
        persistentBackingData.setValue(forKey: key, to: newValue)
        joinContext(by: key, of: added)
    }

    /// Sets a to-many relationship whose class is encodable itself.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    public func setValue<Value, OtherModel>(forKey key: KeyPath<Self, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        let added = addedMembers(by: key, in: newValue)
        persistentBackingData.setValue(forKey: key, to: newValue)
        joinContext(by: key, of: added)
    }

    /// The members that a to-many relationship of an object without a context has not had before.
    private func addedMembers<Value: RelationshipCollection>(by key: PartialKeyPath<Self>, in newValue: Value)
        -> ArraySlice<AnyObject>
    {
        guard !backing.isKnownToContexts else { return [] }
        let former = backing.values[Self.record.property(key).name] as? Value
        return MemberDifference(from: former?.objects ?? [], to: newValue.objects).added
    }

    /// Inserts this object into the context of an object that reaches it by the inverse from now on.
    private func joinContext(by key: PartialKeyPath<Self>, of others: some Collection<AnyObject>) {
        guard !others.isEmpty, !backing.isKnownToContexts else { return }
        let property = Self.record.property(key)
        for case let other as any PersistentModel in others {
            guard let context = other.modelContext else { continue }
            let entity = context.container.model.entitiesByName[Self.record.entityName]
            guard entity?.relationshipsByName[property.name]?.inverseRelationship != nil else { continue }
            context.insert(self)
            return
        }
    }

    /// Sets a transformable attribute.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    public func setTransformableValue<Value>(forKey key: KeyPath<Self, Value>, to newValue: Value) {
        persistentBackingData.setTransformableValue(forKey: key, to: newValue)
    }
}
