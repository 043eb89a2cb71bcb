/// Declares a property whose value is stored by its managed object.
///
/// The property's name is the name of an attribute or relationship of the object's entity:
///
/// ```swift
/// @ManagedObject
/// final class Stage: NSManagedObject {
///     @Managed var name: String
///     @Managed var width: Double
/// }
/// ```
///
/// The macro writes a getter and a setter that access the property's place in the object's row directly, without
/// looking up its name.
///
/// The type may be one of these, optional or not:
/// - the type of the model's attribute (`String`, `Int16`, `Date`, …), or a `RawRepresentable` type with such a raw
///   value
/// - a managed object's class for a to-one relationship, or a collection of one for a to-many relationship
/// - a class of Foundation (`NSNumber`, `NSDate`, …)
/// - the class, array or dictionary that a transformable attribute holds
///
/// If there is an attribute `name`, then a property `primitiveName` is its primitive value. If the entity lacks the
/// property, or stores it as another type, then the first use stops the program with a message that has both names.
///
/// The property must be a `var` of a class or of an extension of a class. It must have a type and no initial value:
/// default values belong to the model.
@attached(accessor)
@attached(peer, names: prefixed(_managed_))
public macro Managed() = #externalMacro(module: "StrataMacros", type: "ManagedMacro")

/// Declares a property whose value is stored by its managed object, under another name in the model.
///
/// ```swift
/// @ManagedObject
/// final class Review: NSManagedObject {
///     @Managed("descriptionText") var summary: String?
/// }
/// ```
///
/// - Parameter name: The name of the attribute or relationship in the model: a plain string literal.
///
/// See ``Managed()`` for the possible properties.
@attached(accessor)
@attached(peer, names: prefixed(_managed_))
public macro Managed(_ name: String) = #externalMacro(module: "StrataMacros", type: "ManagedMacro")

/// Declares a property whose value is stored by its managed object, with traits for the model that is made from its
/// class.
///
/// ```swift
/// @ManagedObject
/// final class Ticket: NSManagedObject {
///     @Managed(.unique, .length(1...40)) var code: String
/// }
/// ```
///
/// - Parameters:
///   - trait: A trait of the property in the model.
///   - more: Further traits.
///
/// See ``Managed()`` for the possible properties, and `NSManagedObjectModel(for:)` for the model. A property with
/// ``ManagedTrait/derived(from:)`` or ``ManagedTrait/fetched(where:)`` can only be read.
@attached(accessor)
@attached(peer, names: prefixed(_managed_))
public macro Managed(_ trait: ManagedTrait<Any>, _ more: ManagedTrait<Any>...) =
    #externalMacro(module: "StrataMacros", type: "ManagedMacro")

/// Declares a property with another name in the model, and with traits for the model that is made from its class.
///
/// ```swift
/// @ManagedObject
/// final class Poster: NSManagedObject {
///     @Managed("descriptionText", .length(0...500)) var summary: String?
/// }
/// ```
///
/// - Parameters:
///   - name: The name of the attribute or relationship in the model: a plain string literal.
///   - trait: A trait of the property in the model.
///   - more: Further traits.
@attached(accessor)
@attached(peer, names: prefixed(_managed_))
public macro Managed(_ name: String, _ trait: ManagedTrait<Any>, _ more: ManagedTrait<Any>...) =
    #externalMacro(module: "StrataMacros", type: "ManagedMacro")

/// Lists the ``Managed()`` properties of a class, so that Swift key paths can be turned into names of the model.
///
/// The macro overrides `managedProperties` with the names, key paths and types of the `@Managed` properties in the
/// class's own body, after those that the superclass lists. So `\Venue.city` works in sort descriptors and in
/// `#Predicate`, and no object has to be made to find the names. Properties that an extension declares are not
/// listed.
///
/// The class can be an entity of a model in Swift: see `NSManagedObjectModel(for:)`.
///
/// ```swift
/// @ManagedObject
/// final class Singer: NSManagedObject {
///     @Managed var name: String
/// }
/// let byName = NSSortDescriptor(keyPath: \Singer.name, ascending: true)
/// ```
@attached(member, names: named(managedProperties), named(managedEntity))
public macro ManagedObject() = #externalMacro(module: "StrataMacros", type: "ManagedObjectMacro")

/// Lists the ``Managed()`` properties of a class, and gives traits to its entity in the model that is made from the
/// class.
///
/// ```swift
/// @ManagedObject(.abstract, .unique("name"))
/// class Place: NSManagedObject {
///     @Managed var name: String
/// }
/// ```
///
/// - Parameters:
///   - trait: A trait of the entity in the model.
///   - more: Further traits.
@attached(member, names: named(managedProperties), named(managedEntity))
public macro ManagedObject(_ trait: ManagedEntityTrait, _ more: ManagedEntityTrait...) =
    #externalMacro(module: "StrataMacros", type: "ManagedObjectMacro")

/// Writes a method that changes a to-many relationship, like the methods that Xcode generates.
///
/// ```swift
/// @ManagedObject
/// final class Volume: NSManagedObject {
///     @Managed(.inverse(\Page.volume)) var pages: Set<Page>
///
///     @ManagedAccessor func addToPages(_ value: Page)
///     @ManagedAccessor func removeFromPages(_ values: NSSet)
/// }
///
/// @ManagedObject
/// final class Page: NSManagedObject {
///     @Managed var volume: Volume?
/// }
/// ```
///
/// The macro replaces `@NSManaged` before such a method. The method names are those of Xcode: `addToPages(_:)` and
/// `removeFromPages(_:)` with an object, a set, an ordered set or an array. Ordered relationships also have
/// `insertIntoPages(_:at:)`, `removeFromPages(at:)` and `replacePages(at:with:)` with one position or an
/// `NSIndexSet`. The relationship's name is the text after the verb, beginning with a small letter.
@attached(body)
public macro ManagedAccessor() = #externalMacro(module: "StrataMacros", type: "ManagedAccessorMacro")

/// Writes a method that changes a to-many relationship, which has another name in the model.
///
/// ```swift
/// @ManagedObject
/// final class Folder: NSManagedObject {
///     @Managed("leaves", .inverse(\Sheet.folder)) var sheets: Set<Sheet>
///
///     @ManagedAccessor("leaves") func addToSheets(_ value: Sheet)
/// }
///
/// @ManagedObject
/// final class Sheet: NSManagedObject {
///     @Managed var folder: Folder?
/// }
/// ```
///
/// - Parameter name: The name of the relationship in the model: a plain string literal.
///
/// See ``ManagedAccessor()``.
@attached(body)
public macro ManagedAccessor(_ name: String) = #externalMacro(module: "StrataMacros", type: "ManagedAccessorMacro")
