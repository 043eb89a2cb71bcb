import StrataLocks
import StrataPredicates
import StrataRows
import Synchronization

/// An entity, which is for a managed object what a class is for an object.
///
/// A description can be changed until a coordinator uses its model. After that every setter stops the program, and
/// any thread may read it; change a copy of the model instead.
///
/// ```swift
/// let name = NSAttributeDescription()
/// (name.name, name.type) = ("name", .string)
/// let tag = NSEntityDescription()
/// tag.name = "Tag"
/// tag.properties = [name]
/// tag.uniquenessConstraints = [["name"]]
/// ```
open class NSEntityDescription: NSObject, NSCopying, ModelElement, LinkTarget, @unchecked Sendable {
    // @unchecked Sendable: it is mutable only until `isFrozen`, while one thread builds the model, and immutable
    // afterwards.

    let anchor = LinkAnchor()
    let modelLink = ModelLink<NSManagedObjectModel>()
    let superentityLink = ModelLink<NSEntityDescription>()

    /// The data that freezing computed; it also marks the entity as frozen.
    private let facts = OnceReference<EntityFacts>()
    /// The layout, which is immortal.
    ///
    /// It is read for every new object, so its references are not counted.
    private let layoutAddress = AtomicCell<UnsafeRawPointer?>(nil)

    /// Creates an entity without a name.
    public required override init() {
        super.init()
    }

    // MARK: - Identity

    /// The entity's name: letters, digits and underscores.
    ///
    /// By convention it starts with a capital letter.
    ///
    /// ```swift
    /// let venue = NSEntityDescription()
    /// venue.name = "Venue"
    /// venue.managedObjectClassName = "Guide.Venue"
    /// ```
    open var name: String? { willSet { assertMutable() } }

    /// The class of the entity's objects; `NSManagedObject` by default.
    ///
    /// A bare name (`Venue`), a module-qualified one (`Guide.Venue`), or one in the current module (`.Venue`).
    // The type is implicitly unwrapped as in Apple's framework, where `nil` resets it.
    open var managedObjectClassName: String! {
        get { explicitClassName ?? "NSManagedObject" }
        set {
            assertMutable()
            explicitClassName = newValue
        }
    }

    private var explicitClassName: String?

    /// The entity's model.
    ///
    /// If it belongs to no model, then the program stops.
    open var managedObjectModel: NSManagedObjectModel {
        guard let model else { fatalError("\(subject) belongs to no model yet; add it to a model's `entities` first.") }
        return model
    }

    /// The entity's model, or `nil`.
    package var model: NSManagedObjectModel? { modelLink.target }

    /// The name in an earlier version of the model, for inferred migration.
    ///
    /// Defaults to ``name``.
    open var renamingIdentifier: String? {
        get { explicitRenamingIdentifier ?? name }
        set {
            assertMutable()
            explicitRenamingIdentifier = newValue
        }
    }

    package private(set) var explicitRenamingIdentifier: String?

    // MARK: - Facts

    /// Whether no object has exactly this entity, but only its sub-entities.
    ///
    /// Default `false`.
    open var isAbstract: Bool = false { willSet { assertMutable() } }

    /// The application's facts about the entity.
    ///
    /// Empty by default. They are not part of the version hash, nor of equality. May be set and read on any thread,
    /// also while the model is in use.
    open var userInfo: [AnyHashable: Any]? {
        get { ownFacts.facts }
        set { ownFacts.facts = newValue }
    }

    private let ownFacts = UserInfo()

    /// A text in ``versionHash`` that makes a new version even if nothing else changed.
    open var versionHashModifier: String? { willSet { assertMutable() } }

    /// A hash of 32 bytes that changes with the entity's persistent form.
    open var versionHash: Data { facts.load()?.versionHash ?? VersionHash.hash(of: self) }

    /// The combinations of attributes, as names or descriptions, that must be unique among all objects.
    ///
    /// Default none.
    ///
    /// ```swift
    /// print(model.entitiesByName["City"]?.uniquenessConstraints ?? [])
    /// ```
    open var uniquenessConstraints: [[Any]] = [] { willSet { assertMutable() } }

    /// The indexes that the store keeps for fetches of this entity.
    ///
    /// Default none. They are not part of the version hash.
    ///
    /// ```swift
    /// let price = NSAttributeDescription()
    /// (price.name, price.type) = ("price", .integer64)
    /// let venue = NSEntityDescription()
    /// venue.properties = [price]
    /// let element = NSFetchIndexElementDescription(property: price, collationType: .binary)
    /// venue.indexes = [NSFetchIndexDescription(name: "byPrice", elements: [element])]
    /// ```
    open var indexes: [NSFetchIndexDescription] = [] {
        willSet { assertMutable() }
        didSet {
            for index in oldValue where index.entity === self {
                index.entityLink.target = nil
            }
            for index in indexes {
                index.entityLink.target = self
            }
        }
    }

    /// Whether ``indexes`` contains all indexes that a compiler would make, so that a store makes no others.
    package var listsAllIndexes = false { willSet { assertMutable() } }

    /// Groups of attributes (or of their names) that are indexed together.
    ///
    /// Prefer ``indexes``, which have names.
    open var compoundIndexes: [[Any]] = [] { willSet { assertMutable() } }

    // MARK: - Inheritance

    /// The entity from which this one inherits.
    ///
    /// Set it by adding this entity to the parent's ``subentities``.
    ///
    /// ```swift
    /// let (place, venue) = (NSEntityDescription(), NSEntityDescription())
    /// place.subentities = [venue]
    /// print(venue.superentity === place)
    /// ```
    open var superentity: NSEntityDescription? { superentityLink.target }

    /// The entities that inherit directly from this one.
    ///
    /// Setting it sets their ``superentity``.
    ///
    /// ```swift
    /// let (place, bar, museum) = (NSEntityDescription(), NSEntityDescription(), NSEntityDescription())
    /// place.isAbstract = true
    /// place.subentities = [bar, museum]
    /// ```
    open var subentities: [NSEntityDescription] = [] {
        willSet { assertMutable() }
        didSet { adoptSubentities(replacing: oldValue) }
    }

    /// The direct sub-entities by name.
    open var subentitiesByName: [String: NSEntityDescription] {
        facts.load()?.subentitiesByName ?? EntityFacts.byName(subentities) { $0.name }
    }

    private func adoptSubentities(replacing old: [NSEntityDescription]) {
        for child in old where child.superentity === self {
            child.superentityLink.target = nil
        }
        for child in subentities {
            // A child has only one parent, so it leaves the previous one.
            if let parent = child.superentity, parent !== self {
                parent.subentities.removeAll { $0 === child }
            }
            child.superentityLink.target = self
        }
    }

    /// The super-entity, its super-entity, and so on.
    ///
    /// The list ends if there is a cycle.
    package var ancestors: [NSEntityDescription] {
        var found: [NSEntityDescription] = []
        var seen: Set<ObjectIdentifier> = [ObjectIdentifier(self)]
        var next = superentity
        while let entity = next, seen.insert(ObjectIdentifier(entity)).inserted {
            found.append(entity)
            next = entity.superentity
        }
        return found
    }

    /// Whether this is `entity`, or one of its sub-entities at any depth.
    ///
    /// - Parameter entity: An entity of the same model.
    /// - Returns: Whether it is.
    /// - Complexity: O(1) once the model is in use.
    open func isKindOf(entity: NSEntityDescription) -> Bool {
        if self === entity { return true }
        if let mine = facts.load(), let theirs = entity.facts.load() {
            return mine.model === theirs.model && theirs.subtree.contains(mine.number)
        }
        return ancestors.contains { $0 === entity }
    }

    // MARK: - Properties

    /// The properties that the entity itself declares, in the order in which they were given.
    package private(set) var ownProperties: [NSPropertyDescription] = []

    /// The entity's properties: first the inherited ones, then its own.
    ///
    /// An inherited property is the same object as in the super-entity. Setting the list sets the entity's own
    /// properties; inherited properties are removed from the new list.
    ///
    /// ```swift
    /// let name = NSAttributeDescription()
    /// (name.name, name.type) = ("name", .string)
    /// let venue = NSEntityDescription()
    /// venue.properties = [name]
    /// ```
    open var properties: [NSPropertyDescription] {
        get { facts.load()?.properties ?? ancestors.reversed().flatMap(\.ownProperties) + ownProperties }
        set {
            assertMutable()
            adoptProperties(newValue)
        }
    }

    private func adoptProperties(_ properties: [NSPropertyDescription]) {
        let inherited = Set(ancestors.flatMap(\.ownProperties).map(ObjectIdentifier.init))
        let own = properties.filter { !inherited.contains(ObjectIdentifier($0)) }
        for property in own {
            if let owner = property.owner, owner !== self {
                fatalError(
                    "\(property.subject) was added to \(subject); a property belongs to one entity, so add a copy."
                )
            }
        }
        for property in ownProperties {
            property.entityLink.target = nil
        }
        ownProperties = own
        for property in own {
            property.entityLink.target = self
        }
    }

    /// The properties by name, including the inherited ones.
    open var propertiesByName: [String: NSPropertyDescription] {
        facts.load()?.propertiesByName ?? EntityFacts.byName(properties) { $0.name }
    }

    /// The attributes by name, including the inherited ones.
    ///
    /// ```swift
    /// print(entity.attributesByName["price"]?.defaultValue ?? "none")
    /// ```
    open var attributesByName: [String: NSAttributeDescription] {
        facts.load()?.attributesByName
            ?? EntityFacts.byName(properties.compactMap { $0 as? NSAttributeDescription }) { $0.name }
    }

    /// The relationships by name, including the inherited ones.
    ///
    /// ```swift
    /// print(entity.relationshipsByName["city"]?.destinationEntity?.name ?? "")
    /// ```
    open var relationshipsByName: [String: NSRelationshipDescription] {
        facts.load()?.relationshipsByName
            ?? EntityFacts.byName(properties.compactMap { $0 as? NSRelationshipDescription }) { $0.name }
    }

    /// The relationships, including the inherited ones, whose destination is `entity`.
    ///
    /// - Parameter entity: The destination, compared by identity: its sub-entities and super-entities do not count.
    /// - Returns: The relationships, in the order of the entity's properties.
    /// - Complexity: O(*n*) in the number of properties.
    open func relationships(forDestination entity: NSEntityDescription) -> [NSRelationshipDescription] {
        properties.compactMap { $0 as? NSRelationshipDescription }.filter { $0.destinationEntity === entity }
    }

    /// The uniqueness constraints as attribute names.
    package var uniquenessConstraintNames: [[String]] {
        uniquenessConstraints.map { $0.map(Self.propertyName) }
    }

    /// The compound indexes as attribute names.
    package var compoundIndexNames: [[String]] {
        compoundIndexes.map { $0.map(Self.propertyName) }
    }

    private static func propertyName(_ nameOrDescription: Any) -> String {
        (nameOrDescription as? NSPropertyDescription)?.name ?? (nameOrDescription as? String) ?? "\(nameOrDescription)"
    }

    // MARK: - Comparing

    /// Whether `object` is an entity with the same name, facts and properties, in any model.
    ///
    /// ``userInfo`` is ignored.
    ///
    /// - Complexity: O(number of properties), unless it is this very entity.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSEntityDescription else { return false }
        return other === self || ModelEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the name, which should not change while a set contains the entity.
    open override var hash: Int { name.hashValue }

    // MARK: - Copying

    /// Returns a copy that can be changed and belongs to no model.
    ///
    /// Its own properties, indexes and sub-entities are copied with it. Inherited properties stay with the
    /// super-entity, and relationships still point at the original entities. To get a consistent copy, copy the whole
    /// model.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: An `NSEntityDescription`.
    /// - Complexity: O(*n*) in the number of properties of the entity and its sub-entities.
    open func copy(with zone: NSZone? = nil) -> Any {
        var copier = ModelCopier(unresolvedDestinations: .keep)
        return copier.copy(self)
    }

    /// Copies the plain facts of `other`; the copier copies the properties, indexes and links.
    func adoptFacts(of other: NSEntityDescription) {
        name = other.name
        explicitClassName = other.explicitClassName
        explicitRenamingIdentifier = other.explicitRenamingIdentifier
        isAbstract = other.isAbstract
        userInfo = other.userInfo
        versionHashModifier = other.versionHashModifier
        uniquenessConstraints = other.uniquenessConstraintNames
        compoundIndexes = other.compoundIndexNames
        listsAllIndexes = other.listsAllIndexes
    }

    // MARK: - Freezing

    var isFrozen: Bool { facts.load() != nil }

    var subject: String { "entity \"\(name ?? "")\"" }

    /// The data that freezing computed: numbers, and dictionaries of the properties.
    ///
    /// The model must be frozen.
    package var frozen: EntityFacts {
        guard let facts = facts.load() else {
            fatalError("\(subject) is not in use yet; it has no number before a coordinator takes its model.")
        }
        return facts
    }

    /// The layout of the properties in the entity's objects.
    ///
    /// The model must be frozen.
    package var layout: EntityLayout {
        guard let layout = layoutIfInUse else {
            fatalError("\(subject) is not in use yet; give its model to a coordinator before you make objects of it.")
        }
        return layout
    }

    /// The layout, if the model is frozen.
    @inline(__always)
    package var layoutIfInUse: EntityLayout? { unmanagedLayout?.takeUnretainedValue() }

    /// The layout, if the model is frozen, without a counted reference.
    @inline(__always)
    var unmanagedLayout: Unmanaged<EntityLayout>? {
        guard let address = layoutAddress.load(ordering: .acquiring) else { return nil }
        return Unmanaged.fromOpaque(address)
    }

    /// The class of the entity's objects.
    final let objectClass = ObjectClassCache()

    /// The class of the last inserted object of the entity, as a number.
    final let lastObjectType = AtomicCell<UInt>(0)

    /// Sets the layout, as the last step of freezing, and makes it immortal.
    func adopt(_ layout: EntityLayout) {
        layoutAddress.store(UnsafeRawPointer(Unmanaged.passRetained(layout).toOpaque()), ordering: .releasing)
    }

    /// Makes the entity, its own properties and its indexes immutable.
    func freeze(_ facts: EntityFacts) {
        modelLink.freeze()
        superentityLink.freeze()
        for property in ownProperties {
            property.freeze()
        }
        for index in indexes {
            index.freeze()
        }
        _ = self.facts.storeIfNil(facts)
    }

    /// The entity's name.
    open override var description: String { "\(type(of: self)) \(name ?? "")" }
}

extension NSEntityDescription {
    /// The entity's number, from 1, in depth-first order.
    ///
    /// The model must be frozen.
    package var entityNumber: Int { frozen.number }

    /// The entity at the top of the inheritance tree; this entity if it has no super-entity.
    ///
    /// The model must be frozen.
    package var rootEntity: NSEntityDescription { frozen.root }

    /// The numbers of this entity and of all its sub-entities, except the abstract ones.
    ///
    /// The model must be frozen.
    package var concreteNumbers: [Int] { frozen.concreteNumbers }
}
