import StrataLocks
import StrataPredicates
import Synchronization

/// The common superclass of attributes, relationships, fetched properties and computed columns.
///
/// A description can be changed until a coordinator uses its model. After that every setter stops the program, and
/// any thread may read it; change a copy of the model instead.
///
/// ```swift
/// let properties = entity.propertiesByName
/// print(properties["name"]?.isOptional ?? true)
/// ```
open class NSPropertyDescription: NSObject, NSCopying, ModelElement, @unchecked Sendable {
    // @unchecked Sendable: it is mutable only until `isFrozen`, while one thread builds the model, and immutable
    // afterwards.

    private let frozen = AtomicCell<Bool>(false)
    let entityLink = ModelLink<NSEntityDescription>()

    /// Creates a property with an empty name that belongs to no entity.
    public required override init() {
        super.init()
    }

    // MARK: - Identity

    /// The entity that declares this property.
    ///
    /// An inherited property keeps the entity that declares it.
    ///
    /// If the property has not been added to an entity, then the program stops.
    open var entity: NSEntityDescription {
        guard let owner else {
            fatalError("\(subject) belongs to no entity yet; add it to an entity's `properties` first.")
        }
        return owner
    }

    /// The entity that declares this property, or `nil` if there is none.
    package var owner: NSEntityDescription? { entityLink.target }

    /// The property's name: letters, digits and underscores; names that managed objects use are not allowed.
    ///
    /// ```swift
    /// let name = NSAttributeDescription()
    /// (name.name, name.type) = ("name", .string)
    /// ```
    open var name: String = "" { willSet { assertMutable() } }

    /// The name in an earlier version of the model, for inferred migration.
    ///
    /// Defaults to ``name``.
    open var renamingIdentifier: String? {
        get { explicitRenamingIdentifier ?? (name.isEmpty ? nil : name) }
        set {
            assertMutable()
            explicitRenamingIdentifier = newValue
        }
    }

    package private(set) var explicitRenamingIdentifier: String?

    // MARK: - Facts

    /// Whether an object may be saved without a value.
    ///
    /// Default `true`. Validation checks it during a save.
    ///
    /// ```swift
    /// let name = NSAttributeDescription()
    /// (name.name, name.type, name.isOptional) = ("name", .string, false)
    /// ```
    open var isOptional: Bool = true { willSet { assertMutable() } }

    /// Whether the value is kept in memory only and never written to a store.
    ///
    /// Default `false`.
    open var isTransient: Bool = false { willSet { assertMutable() } }

    /// Whether the store keeps an index on only this property.
    ///
    /// Default `false`. Prefer ``NSEntityDescription/indexes``.
    open var isIndexed: Bool = false { willSet { assertMutable() } }

    /// The application's facts about the property.
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

    /// A hash of 32 bytes that changes with the property's persistent form.
    open var versionHash: Data { VersionHash.hash(of: self) }

    // MARK: - Validation

    /// The predicates that a value must fulfil to be saved.
    ///
    /// `SELF` is the value.
    open private(set) var validationPredicates: [NSPredicate] = []

    /// The reports for predicates that fail, at the same indexes: an error code (`Int`) or a message (`String`) each.
    open private(set) var validationWarnings: [Any] = []

    /// Replaces the validation predicates and their reports.
    ///
    /// ```swift
    /// let price = NSAttributeDescription()
    /// (price.name, price.type) = ("price", .integer64)
    /// price.setValidationPredicates([NSPredicate(format: "SELF >= 0")], withValidationWarnings: ["A price is not negative."])
    /// ```
    ///
    /// - Parameters:
    ///   - validationPredicates: The predicates, or `nil` for none. `SELF` is the value.
    ///   - validationWarnings: An error code (`Int`) or a message (`String`) for each predicate. The counts must match.
    open func setValidationPredicates(
        _ validationPredicates: [NSPredicate]?,
        withValidationWarnings validationWarnings: [Any]?
    ) {
        assertMutable()
        let predicates = validationPredicates ?? []
        let warnings = validationWarnings ?? []
        precondition(
            predicates.count == warnings.count,
            "\(subject) was given \(predicates.count) predicates, but \(warnings.count) warnings; give one for each."
        )
        self.validationPredicates = predicates
        self.validationWarnings = warnings
    }

    // MARK: - Comparing

    /// Whether `object` is a property of the same kind, with the same name and facts.
    ///
    /// Properties of entities with different names are never equal. ``userInfo`` is ignored.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPropertyDescription else { return false }
        return other === self || ModelEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the name, which should not change while a set contains the property.
    open override var hash: Int { name.hashValue }

    // MARK: - Copying

    /// Returns a copy that can be changed and belongs to no entity.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A property of the same class.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = type(of: self).init()
        copy.adopt(self)
        return copy
    }

    /// Copies all facts of `other`, except its entity.
    func adopt(_ other: NSPropertyDescription) {
        name = other.name
        explicitRenamingIdentifier = other.explicitRenamingIdentifier
        isOptional = other.isOptional
        isTransient = other.isTransient
        isIndexed = other.isIndexed
        userInfo = other.userInfo
        versionHashModifier = other.versionHashModifier
        validationPredicates = other.validationPredicates
        validationWarnings = other.validationWarnings
    }

    // MARK: - Freezing

    var isFrozen: Bool { frozen.load(ordering: .acquiring) }

    var subject: String {
        owner.map { "property \"\(name)\" of entity \"\($0.name ?? "")\"" } ?? "property \"\(name)\""
    }

    /// Makes the property immutable.
    ///
    /// Subclasses freeze their own parts and links first.
    func freeze() {
        entityLink.freeze()
        frozen.store(true, ordering: .releasing)
    }

    /// The property's name and, if it has one, its entity's.
    open override var description: String { "\(type(of: self)) \(owner.map { "\($0.name ?? "")." } ?? "")\(name)" }
}

extension NSPropertyDescription {
    /// Whether the property's value is part of the row that a store keeps, or of a join table.
    package var isPersistent: Bool {
        !isTransient && (self is NSAttributeDescription || self is NSRelationshipDescription)
    }
}
