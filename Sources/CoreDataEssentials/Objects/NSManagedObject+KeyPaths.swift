import Foundation
import StrataPredicates
import StrataRows

extension NSManagedObject {
    /// The value at the end of a path through relationships, such as `city.name`.
    ///
    /// The result is nil if a to-one relationship along the path is nil. A to-many relationship along the path gives
    /// the set of its members' values (an ordered set if it is ordered). With a collection operator it gives a
    /// number: `venues.@count`, `venues.@max.price`.
    ///
    /// ```swift
    /// print(city.value(forKeyPath: "venues.@sum.price") ?? 0)
    /// ```
    ///
    /// - Parameter keyPath: Names separated by dots, and operators such as `@sum`.
    /// - Returns: The value, or `nil` if a relationship along the path is nil; a set of values after a to-many
    ///   relationship.
    public final func value(forKeyPath keyPath: String) -> Any? {
        guard !keyPath.utf8.contains(UInt8(ascii: "@")) else {
            return NSExpression(forKeyPath: keyPath).expressionValue(with: self, context: nil)
        }
        return Self.value(of: self, keyPath.split(separator: ".").map(String.init)[...])
    }

    private static func value(of value: Any?, _ keys: ArraySlice<String>) -> Any? {
        guard let key = keys.first else { return value }
        switch value {
        case let object as NSManagedObject: return self.value(of: object.value(forKey: key), keys.dropFirst())
        case let members as NSOrderedSet:
            return NSOrderedSet(array: members.array.compactMap { self.value(of: $0, keys) })
        case let members as NSSet: return NSSet(array: members.allObjects.compactMap { self.value(of: $0, keys) })
        case let composite as [String: Any]: return self.value(of: composite[key], keys.dropFirst())
        case let entity as NSEntityDescription where key == "name": return self.value(of: entity.name, keys.dropFirst())
        case let text as String where key == "length" && keys.count == 1: return text.utf16.count
        case let data as Data where key == "length" && keys.count == 1: return data.count
        default: return nil
        }
    }

    /// Sets the property at the end of a path of to-one relationships, or an element of a composite attribute.
    ///
    /// Nothing happens if a relationship along the path is nil. If a composite attribute is nil, then it gets a value
    /// whose other elements are nil: `setValue("Main", forKeyPath: "address.street")`.
    ///
    /// - Parameters:
    ///   - value: The value, of the property's type; `nil` removes it.
    ///   - keyPath: The names of to-one relationships and of a property, separated by dots; after a composite
    ///     attribute, the names that lead to an element.
    public final func setValue(_ value: Any?, forKeyPath keyPath: String) {
        guard let dot = keyPath.firstIndex(of: ".") else { return setValue(value, forKey: keyPath) }
        let first = String(keyPath[..<dot])
        if case .composite(let index)? = layout.places[first] {
            return setElement(value, at: keyPath, of: layout.composites[index])
        }
        let object = self.value(forKey: first) as? NSManagedObject
        object?.setValue(value, forKeyPath: String(keyPath[keyPath.index(after: dot)...]))
    }
}
