import StrataPredicates

/// An attribute made of further attributes.
///
/// Its value is a dictionary with the elements' names as keys. It is nil if no element has a value. Nothing tells that
/// from an empty dictionary, so such a dictionary reads as nil. If one element of an attribute that is nil is set, by
/// ``NSManagedObject/setValue(_:forKeyPath:)`` as in `address.street`, then the attribute has a value, and its other
/// elements stay nil. Predicates can compare the whole with nil, and look at its elements.
///
/// A new object starts with a value if the attribute has a ``NSAttributeDescription/defaultValue`` or is not optional.
/// The elements that the default value names have what it says (`NSNull` for nil), the others their own default values.
/// An optional attribute without a default value starts as nil, whatever default values its elements have.
///
/// An element that is not optional needs a value only where the attribute has one. An attribute that is not optional
/// may all the same be nil if each of its elements is optional: a save looks at the elements alone.
///
/// Any thread may read it once a coordinator uses its model; until then it belongs to whoever builds the model.
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
    // @unchecked Sendable: as the superclass; every stored property is guarded by `assertMutable`.

    /// Creates a composite attribute without elements.
    public required init() {
        super.init()
        type = .composite
    }

    /// The attributes it is made of, which may be composite themselves.
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
    /// A mutable copy, typed.
    fileprivate var duplicate: NSAttributeDescription {
        let copy = Swift.type(of: self).init()
        copy.adopt(self)
        return copy
    }
}
