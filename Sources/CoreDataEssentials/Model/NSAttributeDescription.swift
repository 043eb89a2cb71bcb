import StrataPredicates
import StrataRows

/// An attribute: one value of a basic type, or one object that a transformer turns into data.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let price = NSAttributeDescription()
/// (price.name, price.type, price.isOptional, price.defaultValue) = ("price", .integer64, false, 0)
/// ```
open class NSAttributeDescription: NSPropertyDescription, @unchecked Sendable {
    // @unchecked Sendable: like the superclass; every stored property is guarded by `assertMutable`.

    /// The kind of value.
    ///
    /// Default ``AttributeType/undefined``, which only a transient attribute may keep.
    ///
    /// ```swift
    /// let openedAt = NSAttributeDescription()
    /// (openedAt.name, openedAt.type) = ("openedAt", .date)
    /// ```
    open var type: AttributeType = .undefined { willSet { assertMutable() } }

    /// The kind of value, in the older spelling of ``type``.
    open var attributeType: NSAttributeType {
        get { type.rawValue }
        set { type = AttributeType(rawValue: newValue) }
    }

    /// The name of the class that holds the values, such as `NSString`.
    ///
    /// It is derived from ``type`` unless it was set, which is useful for transformable attributes.
    open var attributeValueClassName: String? {
        get { explicitValueClassName ?? type.valueClassName }
        set {
            assertMutable()
            explicitValueClassName = newValue
        }
    }

    private var explicitValueClassName: String?

    /// The initial value in a new object.
    ///
    /// Default `nil`, for none. The value of a transformable attribute is passed to its value transformer when the
    /// model is first used, so the transformer has to be registered by then. If it is not registered, or refuses the
    /// value, then there is no default value.
    ///
    /// ```swift
    /// let price = NSAttributeDescription()
    /// (price.name, price.type, price.defaultValue) = ("price", .integer64, 0)
    /// ```
    open var defaultValue: Any? { willSet { assertMutable() } }

    /// The name of the ``ValueTransformer`` of a transformable attribute.
    ///
    /// Default `nil`: the value is archived, as by ``NSSecureUnarchiveFromDataTransformer``.
    open var valueTransformerName: String? { willSet { assertMutable() } }

    /// Whether large data may be kept in a file beside the store.
    ///
    /// Default `false`.
    open var allowsExternalBinaryDataStorage: Bool = false { willSet { assertMutable() } }

    /// Whether the persistent history keeps the value of a deleted object.
    ///
    /// Default `false`.
    open var preservesValueInHistoryOnDeletion: Bool = false { willSet { assertMutable() } }

    override func adopt(_ other: NSPropertyDescription) {
        super.adopt(other)
        guard let other = other as? NSAttributeDescription else { return }
        type = other.type
        explicitValueClassName = other.explicitValueClassName
        defaultValue = other.defaultValue
        valueTransformerName = other.valueTransformerName
        allowsExternalBinaryDataStorage = other.allowsExternalBinaryDataStorage
        preservesValueInHistoryOnDeletion = other.preservesValueInHistoryOnDeletion
    }
}
