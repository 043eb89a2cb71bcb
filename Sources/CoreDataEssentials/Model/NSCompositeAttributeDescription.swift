import StrataPredicates

/// An attribute made of further attributes.
///
/// Its value is a dictionary with the elements' names as keys. It is nil if no element has a value. A store does not
/// distinguish nil from an empty dictionary, so such a dictionary reads as nil. If one element of a nil attribute is
/// set, by ``NSManagedObject/setValue(_:forKeyPath:)`` as in `address.street`, then the attribute has a value, and its
/// other elements stay nil. Predicates can compare the whole attribute with nil, and use its elements.
///
/// A new object starts with a value if the attribute has a ``NSAttributeDescription/defaultValue`` or is not optional.
/// Elements that the default value names have its values (`NSNull` for nil); the others have their own default values.
/// An optional attribute without a default value starts as nil, whatever default values its elements have.
///
/// An element that is not optional needs a value only if the attribute has one. An attribute that is not optional may
/// still be nil if each of its elements is optional: a save only checks the elements.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let street = NSAttributeDescription()
/// (street.name, street.type) = ("street", .string)
/// let address = NSCompositeAttributeDescription()
/// address.name = "address"
/// address.elements = [street]
/// address.defaultValue = ["street": "Main Street"]
/// ```
open class NSCompositeAttributeDescription: NSAttributeDescription, @unchecked Sendable {
    // @unchecked Sendable: like the superclass; every stored property is guarded by `assertMutable`.

    /// Creates a composite attribute without elements.
    public required init() {
        super.init()
        type = .composite
    }

    /// The elements, which may be composite attributes themselves.
    open var elements: [NSAttributeDescription] = [] { willSet { assertMutable() } }

    override func adopt(_ other: NSPropertyDescription) {
        super.adopt(other)
        guard let other = other as? NSCompositeAttributeDescription else { return }
        elements = other.elements.map(\.duplicate)
    }

    override func freeze() {
        for element in elements {
            element.freeze()
        }
        super.freeze()
    }
}

extension NSAttributeDescription {
    /// A mutable copy with its static type.
    fileprivate var duplicate: NSAttributeDescription {
        let copy = Swift.type(of: self).init()
        copy.adopt(self)
        return copy
    }
}
