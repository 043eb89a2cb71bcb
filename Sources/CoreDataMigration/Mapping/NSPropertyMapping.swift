import CoreDataEssentials
import StrataPredicates

/// The rule that gives one property of a migrated object its value.
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

    /// The expression for the value; if it is `nil`, the default, then the property has its default value.
    ///
    /// The expression may use the variables `$source`, `$destination`, `$manager`, `$entityMapping`, `$propertyMapping`
    /// and `$entityPolicy`, and call `FUNCTION($manager, "…", …)` and `FUNCTION($entityPolicy, "…", …)`; see
    /// ``NSMigrationManager/function(named:)`` and ``NSEntityMigrationPolicy/function(named:)``. It is evaluated for
    /// the source object, so `title` and `$source.title` have the same meaning.
    open var valueExpression: NSExpression?

    /// A dictionary of the program; `nil` by default.
    open var userInfo: [AnyHashable: Any]?

    /// Makes a mapping without a name and without an expression.
    public override init() { super.init() }

    /// Whether `object` is a mapping of a property of the same name with an equal expression.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPropertyMapping else { return false }
        return other === self || MappingEquality.areEqual(self, other)
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the name, which should not change while a set contains the mapping.
    open override var hash: Int { name.hashValue }

    /// The name and the expression.
    open override var description: String {
        "<NSPropertyMapping \(name ?? "without a name") = \(valueExpression.map { "\($0)" } ?? "default")>"
    }
}

extension NSPropertyMapping: KeyValueCoding {
    /// The properties for value expressions: `name`, `valueExpression` and `userInfo`.
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
