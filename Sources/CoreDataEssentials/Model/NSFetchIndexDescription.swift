import StrataLocks
import StrataPredicates
import Synchronization

/// The kind of a fetch index.
///
/// ```swift
/// let name = NSAttributeDescription()
/// (name.name, name.type) = ("name", .string)
/// let element = NSFetchIndexElementDescription(property: name, collationType: .binary)
/// print(element.collationType == .binary)
/// ```
public enum NSFetchIndexElementType: UInt, Sendable {
    /// An ordinary B-tree.
    case binary = 0

    /// An R-tree over numbers, which requires that all elements of the index are of this kind.
    case rTree = 1
}

/// An index that the store keeps to speed up fetches of one entity.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let name = NSAttributeDescription()
/// (name.name, name.type) = ("name", .string)
/// let tag = NSEntityDescription()
/// tag.properties = [name]
/// tag.indexes = [
///     NSFetchIndexDescription(name: "byName", elements: [NSFetchIndexElementDescription(property: name, collationType: .binary)])
/// ]
/// ```
open class NSFetchIndexDescription: NSObject, NSCopying, ModelElement, LinkTarget, @unchecked Sendable {
    // @unchecked Sendable: it is mutable only until `isFrozen`, while one thread builds the model, and immutable
    // afterwards.

    private let frozen = AtomicCell<Bool>(false)
    let anchor = LinkAnchor()
    let entityLink = ModelLink<NSEntityDescription>()

    /// Creates an index.
    ///
    /// - Parameters:
    ///   - name: The index's name.
    ///   - elements: The columns of the index, in order.
    public required init(name: String, elements: [NSFetchIndexElementDescription]?) {
        self.name = name
        super.init()
        self.elements = elements ?? []
        attachElements()
    }

    /// The index's name.
    ///
    /// The indexes of an entity should have different names. If several have the same name, as Xcode's models may, then
    /// a store appends numbers to all but the first.
    open var name: String { willSet { assertMutable() } }

    /// The columns of the index, in order.
    ///
    /// All have the same kind.
    open var elements: [NSFetchIndexElementDescription] = [] {
        willSet { assertMutable() }
        didSet { attachElements() }
    }

    /// The entity of the index, or `nil` before it has been added to one.
    open var entity: NSEntityDescription? { entityLink.target }

    /// The predicate for the rows in the index.
    ///
    /// Default `nil`, for all.
    open var partialIndexPredicate: NSPredicate? { willSet { assertMutable() } }

    /// Returns a copy that can be changed and belongs to no entity.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: An `NSFetchIndexDescription`.
    open func copy(with zone: NSZone? = nil) -> Any {
        duplicate { $0 }
    }

    /// Returns a copy whose elements refer to the properties that `substitute` returns.
    func duplicate(
        replacing substitute: (NSPropertyDescription) -> NSPropertyDescription
    ) -> NSFetchIndexDescription {
        let copy = type(of: self).init(name: name, elements: elements.map { $0.duplicate(replacing: substitute) })
        copy.partialIndexPredicate = partialIndexPredicate
        return copy
    }

    /// Whether `object` is an index with the same name and contents, in any entity.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSFetchIndexDescription else { return false }
        return other === self || ModelEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the name, which should not change while a set contains the index.
    open override var hash: Int { name.hashValue }

    private func attachElements() {
        for element in elements {
            element.indexLink.target = self
        }
    }

    // MARK: - Freezing

    var isFrozen: Bool { frozen.load(ordering: .acquiring) }

    var subject: String { "fetch index \"\(name)\" of entity \"\(entity?.name ?? "")\"" }

    func freeze() {
        entityLink.freeze()
        for element in elements {
            element.freeze()
        }
        frozen.store(true, ordering: .releasing)
    }
}

/// One column of a fetch index.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let price = NSAttributeDescription()
/// (price.name, price.type) = ("price", .integer64)
/// let element = NSFetchIndexElementDescription(property: price, collationType: .binary)
/// element.isAscending = false
/// ```
open class NSFetchIndexElementDescription: NSObject, NSCopying, ModelElement, @unchecked Sendable {
    // @unchecked Sendable: it is mutable only until `isFrozen`, while one thread builds the model, and immutable
    // afterwards.

    private let frozen = AtomicCell<Bool>(false)
    let indexLink = ModelLink<NSFetchIndexDescription>()

    /// Creates an element.
    ///
    /// - Parameters:
    ///   - property: An attribute, a relationship, or a description of an expression.
    ///   - collationType: The kind of index.
    public required init(property: NSPropertyDescription, collationType: NSFetchIndexElementType) {
        self.property = property
        self.collationType = collationType
        super.init()
    }

    /// The property in the index.
    open private(set) var property: NSPropertyDescription?

    /// The name of ``property``; `nil` for an expression without a name.
    open var propertyName: String? {
        guard let name = property?.name, !name.isEmpty else { return nil }
        return name
    }

    /// The kind of index.
    ///
    /// Default ``NSFetchIndexElementType/binary``.
    open var collationType: NSFetchIndexElementType { willSet { assertMutable() } }

    /// Whether the column is sorted in ascending order.
    ///
    /// Default `true`.
    open var isAscending: Bool = true { willSet { assertMutable() } }

    /// The index that contains this element.
    open var indexDescription: NSFetchIndexDescription? { indexLink.target }

    /// Returns a copy that can be changed and belongs to no index.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: An `NSFetchIndexElementDescription`.
    open func copy(with zone: NSZone? = nil) -> Any {
        duplicate { $0 }
    }

    func duplicate(
        replacing substitute: (NSPropertyDescription) -> NSPropertyDescription
    ) -> NSFetchIndexElementDescription {
        // The initialiser takes a property, so a property always exists.
        let property = property.map(substitute) ?? NSPropertyDescription()
        let copy = type(of: self).init(property: property, collationType: collationType)
        copy.isAscending = isAscending
        return copy
    }

    /// Whether `object` is an element with the same property, kind and direction.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSFetchIndexElementDescription else { return false }
        return other === self || ModelEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the property's name, which should not change while a set contains the element.
    open override var hash: Int { propertyName.hashValue }

    // MARK: - Freezing

    var isFrozen: Bool { frozen.load(ordering: .acquiring) }

    var subject: String { "element \"\(propertyName ?? "")\" of \(indexDescription?.subject ?? "a fetch index")" }

    func freeze() {
        indexLink.freeze()
        // An expression belongs only to the index; attributes and relationships are frozen with their entity.
        if property?.owner == nil { property?.freeze() }
        frozen.store(true, ordering: .releasing)
    }
}
