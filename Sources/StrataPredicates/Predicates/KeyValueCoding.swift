/// An object whose properties predicates, expressions and sort descriptors can read by name.
///
/// Managed objects and dictionaries are readable without it, and so are the stored properties of any other Swift value.
/// Conform to this protocol if a predicate must see computed properties, or for speed.
///
/// ```swift
/// final class Guest: KeyValueCoding {
///     let name = "Ada"
///     func value(forKey key: String) -> Any? { key == "name" ? name : nil }
/// }
/// print(NSPredicate(format: "name == %@", "Ada").evaluate(with: Guest()))
/// ```
public protocol KeyValueCoding {
    /// The value of the property with this name; `nil` if there is none.
    ///
    /// - Parameter key: The name of the property.
    /// - Returns: The value, boxed as predicates compare it, or `nil`.
    func value(forKey key: String) -> Any?
}
