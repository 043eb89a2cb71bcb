import StrataPredicates
import Synchronization

/// What attributes, relationships, fetched properties and computed columns have in common.
///
/// A description can be changed until a coordinator uses its model. After that every setter stops the program, and
/// any thread may read it; change a copy of the model instead.
///
/// ```swift
/// let properties = entity.propertiesByName
/// print(properties["name"]?.isOptional ?? true)
/// ```
open class NSPropertyDescription: NSObject, NSCopying, ModelElement, @unchecked Sendable {
    // @unchecked Sendable: mutable only until `isFrozen`, while one thread builds the model; immutable afterwards.

    private let frozen = Atomic<Bool>(false)
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
    /// Stops the program when the property has not been added to an entity.
    open var entity: NSEntityDescription {
        guard let owner else {
            fatalError("\(subject) belongs to no entity yet; add it to an entity's `properties` first.")
        }
        return owner
    }

    /// The entity that declares this property, or `nil` when there is none.
    package var owner: NSEntityDescription? { entityLink.target }

    /// The property's name: letters, digits and underscores, and none of the names that managed objects use themselves.
    ///
    /// ```swift
    /// let name = NSAttributeDescription()
    /// (name.name, name.type) = ("name", .string)
    /// ```
    open var name: String = "" { willSet { assertMutable() } }

    /// The name an earlier version of the model used, for inferred migration.
    ///
    /// Defaults to ``name``.
    open var renamingIdentifier: String? {
        get { explicitRenamingIdentifier ?? (name.isEmpty ? nil : name) }
        set {
            assertMutable()
            explicitRenamingIdentifier = newValue
        }
    }

    private(set) var explicitRenamingIdentifier: String?

    // MARK: - Facts

    /// Whether an object may be saved without a value.
    ///
    /// Default `true`. Checked by validation, on saving.
    ///
    /// ```swift
    /// let name = NSAttributeDescription()
    /// (name.name, name.type, name.isOptional) = ("name", .string, false)
    /// ```
    open var isOptional: Bool = true { willSet { assertMutable() } }

    /// Whether the value lives in memory only and never reaches a store.
    ///
    /// Default `false`.
    open var isTransient: Bool = false { willSet { assertMutable() } }

    /// Whether the store keeps an index on this property alone.
    ///
    /// Default `false`. Prefer ``NSEntityDescription/indexes``.
    open var isIndexed: Bool = false { willSet { assertMutable() } }

    /// Facts of your own.
    ///
    /// Empty by default. Not part of the version hash, nor of equality. May be set and read on any thread, also while the
    /// model is in use.
    open var userInfo: [AnyHashable: Any]? {
        get { ownFacts.facts }
        set { ownFacts.facts = newValue }
    }

    private let ownFacts = UserInfo()

    /// Text mixed into ``versionHash``, to force a new version when nothing else changed.
    open var versionHashModifier: String? { willSet { assertMutable() } }

    /// 32 bytes that differ when the property's persistent shape differs.
    open var versionHash: Data { VersionHash.hash(of: self) }

    // MARK: - Validation

    /// The predicates that a value must fulfil to be saved.
    ///
    /// `SELF` is the value.
    open private(set) var validationPredicates: [NSPredicate] = []

    /// What to report when the predicate at the same index fails: an error code (`Int`) or a message (`String`).
    open private(set) var validationWarnings: [Any] = []

    /// Replaces the validation predicates and what to report when one fails.
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

    /// Whether `object` is a property of the same kind, name and facts.
    ///
    /// Properties of entities of different names are never equal. ``userInfo`` does not count.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPropertyDescription else { return false }
        return other === self || ModelEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``; it follows from the name, which should not change while a set has it.
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

    /// Takes over all that describes `other`, but for the entity it belongs to.
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

    /// The property's name and, when it has one, its entity's.
    open override var description: String { "\(type(of: self)) \(owner.map { "\($0.name ?? "")." } ?? "")\(name)" }
}

extension NSPropertyDescription {
    /// Whether the property's value is part of the row that a store keeps, or of a join table.
    package var isPersistent: Bool {
        !isTransient && (self is NSAttributeDescription || self is NSRelationshipDescription)
    }
}
