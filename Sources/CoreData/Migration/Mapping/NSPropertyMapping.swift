import StrataPredicates

/// How one property of a migrated object gets its value.
///
/// Belongs to an ``NSEntityMapping``. Not thread-safe; do not change it while a migration uses it.
///
/// ```swift
/// let name = NSPropertyMapping()
/// name.name = "name"
/// name.valueExpression = NSExpression(format: "$source.title")
/// ```
open class NSPropertyMapping: NSObject {
    /// The property of the destination entity; `nil`, the default, for a mapping that does nothing.
    open var name: String?

    /// What gives the value; `nil`, the default, leaves the property to its default value.
    ///
    /// The expression may use the variables `$source`, `$destination`, `$manager`, `$entityMapping`, `$propertyMapping`
    /// and `$entityPolicy`, and call `FUNCTION($manager, "…", …)` and `FUNCTION($entityPolicy, "…", …)`; see
    /// ``NSMigrationManager/function(named:)`` and ``NSEntityMigrationPolicy/function(named:)``.
    /// It is evaluated for the source object, so `title` and `$source.title` mean the same.
    open var valueExpression: NSExpression?

    /// Anything of yours; `nil` by default.
    open var userInfo: [AnyHashable: Any]?

    /// A mapping without a name and without an expression.
    public override init() { super.init() }

    /// Whether `object` is a mapping of a property of the same name with an equal expression.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPropertyMapping else { return false }
        return other === self || MappingEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``; it follows from the name, which should not change while a set has the mapping.
    open override var hash: Int { name.hashValue }

    /// The name and the expression.
    open override var description: String {
        "<NSPropertyMapping \(name ?? "without a name") = \(valueExpression.map { "\($0)" } ?? "default")>"
    }
}

extension NSPropertyMapping: KeyValueCoding {
    /// The properties as value expressions see them: `name`, `valueExpression` and `userInfo`.
    ///
    /// - Parameter key: `name`, `valueExpression` or `userInfo`.
    /// - Returns: The value; `nil` for no value and for any other name.
    public func value(forKey key: String) -> Any? {
        switch key {
        case "name": name
        case "valueExpression": valueExpression
        case "userInfo": userInfo
        default: nil
        }
    }
}
