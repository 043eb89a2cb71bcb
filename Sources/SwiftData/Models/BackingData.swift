/// The values of one model object.
public protocol BackingData<Model> {
    /// The class of the object.
    associatedtype Model: PersistentModel

    /// Makes a backing without values.
    init(for modelType: Model.Type)

    /// The identifier of the object.
    var persistentModelID: PersistentIdentifier? { get set }

    /// Data that custom stores may keep with the values.
    var metadata: Any { get set }

    @_disfavoredOverload
    func getValue<Value: Decodable>(forKey key: KeyPath<Model, Value>) -> Value
    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>) -> Value
    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>) -> Value?
    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement
    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement
    func getTransformableValue<Value>(forKey key: KeyPath<Model, Value>) -> Value

    @_disfavoredOverload
    func setValue<Value: Encodable>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>, to newValue: Value?)
    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement
    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement
    func setTransformableValue<Value>(forKey key: KeyPath<Model, Value>, to newValue: Value)
}
