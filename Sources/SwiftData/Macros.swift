/// Makes a class a model: its stored properties are kept in a store.
///
/// ```swift
/// @Model
/// final class Trip {
///     var name: String
///     var start: Date
///     @Relationship(deleteRule: .cascade) var stops: [Stop] = []
///
///     init(name: String, start: Date) {
///         self.name = name
///         self.start = start
///     }
/// }
/// ```
///
/// A class may inherit from another model; both are marked then. The objects of both are in one table, and a fetch of the
/// superclass finds those of its subclasses. The schema needs the subclasses by name.
///
/// A property is left out if it is computed, static, lazy or marked with ``Transient()``. A constant has the value of its
/// row in an object that is fetched, even if it has an initial value.
@attached(
    member,
    conformances: Observable,
    PersistentModel,
    Sendable,
    names: named(_$backingData),
    named(_$storage),
    named(persistentBackingData),
    named(schemaMetadata),
    named(init),
    named(_$observers),
    named(_$observationRegistrar),
    named(_SwiftDataNoType),
    named(access),
    named(withMutation),
    named(_$Root),
    named(_$isJoined),
    named(_$link)
)
@attached(memberAttribute)
@attached(extension, conformances: Observable, PersistentModel, Sendable)
public macro Model() = #externalMacro(module: "StrataMacros", type: "ModelMacro")

/// Gives options to an attribute of a model.
///
/// - Parameters:
///   - options: The options, such as `.unique`.
///   - originalName: The attribute's name in earlier versions of the schema.
///   - hashModifier: A text that makes this version of the attribute differ from another one.
@attached(peer)
public macro Attribute(
    _ options: Schema.Attribute.Option...,
    originalName: String? = nil,
    hashModifier: String? = nil
) = #externalMacro(module: "StrataMacros", type: "AttributeMacro")

/// Gives options to a relationship of a model.
///
/// - Parameters:
///   - options: The options, such as `.unique`.
///   - deleteRule: The fate of the related objects if the object is deleted.
///   - minimumModelCount: The smallest number of related objects; 0 for no limit.
///   - maximumModelCount: The largest number of related objects; 0 for no limit.
///   - originalName: The relationship's name in earlier versions of the schema.
///   - inverse: The relationship of the other class that leads back. It is named on one side only.
///   - hashModifier: A text that makes this version of the relationship differ from another one.
@attached(peer)
public macro Relationship(
    _ options: Schema.Relationship.Option...,
    deleteRule: Schema.Relationship.DeleteRule = .nullify,
    minimumModelCount: Int? = 0,
    maximumModelCount: Int? = 0,
    originalName: String? = nil,
    inverse: AnyKeyPath? = nil,
    hashModifier: String? = nil
) = #externalMacro(module: "StrataMacros", type: "RelationshipMacro")

/// Leaves a property out of the schema.
@attached(peer)
public macro Transient() = #externalMacro(module: "StrataMacros", type: "TransientMacro")

/// Names groups of properties whose values are together unique among the objects of a model.
///
/// - Parameter constraints: The groups.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "UniqueMacro")

/// Names groups of properties by which a store finds objects quickly.
///
/// - Parameter indices: The groups.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Names groups of properties by which a store finds objects quickly, with the kind of each index.
///
/// - Parameter indices: The groups.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: Schema.Index<T>.Types<T>...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Gives an actor a separate context.
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor() = #externalMacro(module: "StrataMacros", type: "ModelActorMacro")

/// Writes the accessors of a stored property of a model. ``Model()`` adds it.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_), prefixed(_$place_), prefixed(_$key_))
public macro _PersistedProperty() = #externalMacro(module: "StrataMacros", type: "PersistedPropertyMacro")

/// Writes the accessors of a transformable property of a model. ``Model()`` adds it.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_))
public macro _TransformablePersistedProperty() =
    #externalMacro(module: "StrataMacros", type: "TransformablePersistedPropertyMacro")
