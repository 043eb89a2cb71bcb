/// The values of one model object.
///
/// ```swift
/// let backing = trip.persistentBackingData
/// let name = backing.getValue(forKey: \Trip.name)
/// ```
public protocol BackingData<Model> {
    /// The class of the object.
    associatedtype Model: PersistentModel

    /// Makes a backing without values.
    ///
    /// - Parameter modelType: The class of the object.
    init(for modelType: Model.Type)

    /// The identifier of the object.
    var persistentModelID: PersistentIdentifier? { get set }

    /// Data that custom stores may keep with the values.
    var metadata: Any { get set }

    /// The way by which accessors read and write the values; it leads nowhere by default.
    var _link: _ModelLink { get }

    /// The value of an attribute.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    @_disfavoredOverload
    func getValue<Value: Decodable>(forKey key: KeyPath<Model, Value>) -> Value
    /// The object of a to-one relationship that always has one.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>) -> Value
    /// The object of a to-one relationship.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>) -> Value?
    /// The objects of a to-many relationship.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement
    /// The objects of a to-many relationship whose class is decodable itself.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement
    /// The value of a transformable attribute.
    ///
    /// - Parameter key: The key path of the property.
    /// - Returns: The value.
    func getTransformableValue<Value>(forKey key: KeyPath<Model, Value>) -> Value

    /// Sets an attribute.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    @_disfavoredOverload
    func setValue<Value: Encodable>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    /// Sets a to-one relationship that always has an object.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    /// Sets a to-one relationship.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>, to newValue: Value?)
    /// Sets a to-many relationship.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement
    /// Sets a to-many relationship whose class is encodable itself.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement
    /// Sets a transformable attribute.
    ///
    /// - Parameters:
    ///   - key: The key path of the property.
    ///   - newValue: The value.
    func setTransformableValue<Value>(forKey key: KeyPath<Model, Value>, to newValue: Value)
}

extension BackingData {
    /// A link that leads nowhere, so that accessors call `getValue(forKey:)` and `setValue(forKey:to:)`.
    public var _link: _ModelLink { _ModelLink() }

    /// The same values for the accessors of the class itself, of a backing that its superclass was given.
    ///
    /// The initialiser that ``Model()`` writes for a subclass uses it.
    ///
    /// - Returns: A backing with the same values.
    public func _generateCurrentClassBackingData<CurrentClass: PersistentModel>() -> any BackingData<CurrentClass> {
        // A backing finds properties by whole key paths, whatever class they begin with.
        unsafeBitCast(self as any BackingData<Model>, to: (any BackingData<CurrentClass>).self)
    }

    /// The same values for the accessors of a class from which the class inherits.
    ///
    /// - Parameter givenType: The class of the object.
    /// - Returns: A backing with the same values.
    public func _superClassBackingData<SuperClass: PersistentModel>(of givenType: any PersistentModel.Type)
        -> any BackingData<SuperClass>
    {
        _generateCurrentClassBackingData()
    }

    /// Takes the values that an initialiser of the superclass has set.
    ///
    /// - Parameter above: The values of the superclass.
    /// - Returns: The values of both for the accessors of the superclass.
    public func _joined<SuperClass: PersistentModel>(with above: any BackingData<SuperClass>)
        -> any BackingData<SuperClass>
    {
        guard let own = self as? ModelState, let other = above as? ModelState else {
            fatalError("SwiftData: \(Model.self) has a backing that was not made by this library.")
        }
        own.takeValues(of: other)
        return _superClassBackingData(of: Model.self)
    }
}
