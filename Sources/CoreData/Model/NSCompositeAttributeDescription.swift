import StrataPredicates

/// An attribute made of further attributes.
///
/// Its value is a dictionary with the elements' names as keys.
///
/// Any thread may read it once a coordinator uses its model; until then it belongs to whoever builds the model.
///
/// ```swift
/// let street = NSAttributeDescription()
/// (street.name, street.type) = ("street", .string)
/// let address = NSCompositeAttributeDescription()
/// address.name = "address"
/// address.elements = [street]
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
