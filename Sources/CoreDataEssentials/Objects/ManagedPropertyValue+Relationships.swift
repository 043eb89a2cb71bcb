import Foundation
import StrataPredicates
import StrataRows

// MARK: - To-one

extension NSManagedObject: ManagedScalar {
    /// A to-one relationship.
    public static var managedKind: ManagedValueKind { .toOne }

    /// Reads the destination.
    ///
    /// The program stops if there is none; then declare the property optional.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The object at the other end.
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
        guard let value = destination(object, property) else {
            fatalError(
                "CoreData: relationship \"\(property.name)\" of \(object.entity.name ?? "") is nil, but its property is not optional. Declare it as \(Self.self)?."
            )
        }
        return value
    }

    /// Sets the destination, and the inverse relationship on both sides.
    ///
    /// - Parameters:
    ///   - value: The object at the other end.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    public static func managedWrite(
        _ value: NSManagedObject,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        setDestination(value, of: object, property: property)
    }

    /// Reads the destination; nil if there is none.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The object at the other end, or `nil`.
    public static func managedReadOptional(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self?
    {
        destination(object, property)
    }

    /// Sets or removes the destination, and the inverse relationship on both sides.
    ///
    /// - Parameters:
    ///   - value: The object at the other end; `nil` for none.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    public static func managedWriteOptional(
        _ value: NSManagedObject?,
        _ object: NSManagedObject,
        _ property: borrowing AnyManagedProperty
    ) {
        setDestination(value, of: object, property: property)
    }

    @inline(__always)
    private static func destination(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self? {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.anyValue(forKey: property.name) as? Self }
        guard let reference = object.readableWords(place.index).reference(place.index, at: place.word) else {
            return nil
        }
        let destination: NSManagedObject?
        if let context = object.unmanagedContext {
            destination = context._withUnsafeGuaranteedRef { $0.object(for: reference, near: object) }
        } else {
            destination = object.destination(reference)
        }
        guard let found = destination else { return nil }
        // Usually it is of exactly this class, which one comparison shows.
        if Swift.type(of: found) == Self.self { return unsafeDowncast(found, to: Self.self) }
        guard let value = found as? Self else {
            fatalError(
                "CoreData: relationship \"\(property.name)\" of \(object.entity.name ?? "") is declared as \(Self.self), but its destination is of class \(Swift.type(of: found)). \(found.layout.classAdvice)"
            )
        }
        return value
    }

    private static func setDestination(
        _ value: NSManagedObject?,
        of object: NSManagedObject,
        property: borrowing AnyManagedProperty
    ) {
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.setAnyValue(value, forKey: property.name) }
        object.setToOne(value, object.layout.slots[place.index])
    }
}

// MARK: - To-many

/// A collection type that a to-many relationship may be declared as.
package protocol ManagedCollection: ManagedPropertyValue {
    associatedtype Member: NSManagedObject
    static func collection(of members: [Member]) -> Self
    var members: [NSManagedObject] { get }
}

extension ManagedCollection {
    fileprivate static func read(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
        guard let slot = toMany(object, property) else {
            _ = object.anyValue(forKey: property.name)
            return collection(of: [])
        }
        if let cached = object.cachedCollection(slot) as? Self { return cached }
        let value = collection(
            of: object.members(slot).map { member in
                guard let typed = member as? Member else {
                    fatalError(
                        "CoreData: relationship \"\(property.name)\" of \(object.entity.name ?? "") is declared as \(Self.self), but a member is of class \(Swift.type(of: member)). \(member.layout.classAdvice)"
                    )
                }
                return typed
            }
        )
        object.cacheCollection(value, slot)
        return value
    }

    fileprivate static func write(_ value: Self, to object: NSManagedObject, property: borrowing AnyManagedProperty) {
        guard let slot = toMany(object, property) else { return }
        object.setMembers(value.members, slot)
    }

    /// The relationship; nil only while a key path is being recorded.
    private static func toMany(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> ToManySlot? {
        // The look-up stops the program unless the entity has such a to-many relationship.
        let place = property.slot(in: object.unmanagedLayout, managedKind)
        guard place != .elsewhere else { return object.layout.toMany(named: property.name) }
        return object.layout.toMany[place.index]
    }
}

extension Set: ManagedPropertyValue where Element: NSManagedObject {
    /// A to-many relationship that is not ordered.
    public static var managedKind: ManagedValueKind { .toMany(isOrdered: false) }

    /// Reads the members.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The objects at the other end, in no order.
    /// - Complexity: O(*n*) in the number of members; the first read may fetch them.
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
        read(object, property)
    }

    /// Replaces the members, and the inverse relationship on both sides.
    ///
    /// - Parameters:
    ///   - value: The new members.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    public static func managedWrite(_ value: Self, _ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
    {
        write(value, to: object, property: property)
    }
}

extension Set: ManagedCollection where Element: NSManagedObject {
    package static func collection(of members: [Element]) -> Self { Set(members) }
    package var members: [NSManagedObject] { Swift.Array(self) }
}

extension Array: ManagedPropertyValue where Element: NSManagedObject {
    /// A to-many relationship; in its order if it is ordered.
    public static var managedKind: ManagedValueKind { .toMany(isOrdered: nil) }

    /// Reads the members.
    ///
    /// - Parameters:
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    /// - Returns: The objects at the other end, in the order of an ordered relationship.
    /// - Complexity: O(*n*) in the number of members; the first read may fetch them.
    public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
        read(object, property)
    }

    /// Replaces the members, and the inverse relationship on both sides.
    ///
    /// - Parameters:
    ///   - value: The new members, in their order.
    ///   - object: The object, inside its context's scope.
    ///   - property: The property, without its type.
    public static func managedWrite(_ value: Self, _ object: NSManagedObject, _ property: borrowing AnyManagedProperty)
    {
        write(value, to: object, property: property)
    }
}

extension Array: ManagedCollection where Element: NSManagedObject {
    package static func collection(of members: [Element]) -> Self { members }
    package var members: [NSManagedObject] { self }
}

extension Relationship {
    /// Notes the class that a property is declared with.
    ///
    /// If several classes have the name that the model gives, then this decides which one the destinations are of.
    func registerClass(of type: Any.Type) {
        let plain = unwrapped(type)
        guard let destination,
            let member = plain as? NSManagedObject.Type ?? (plain as? any ManagedCollection.Type)?.memberClass
        else { return }
        destination.objectClass.registerClass(member, for: destination.entity)
    }
}

extension ManagedCollection {
    package static var memberClass: NSManagedObject.Type { Member.self }
}

// MARK: - To-many, in other types

extension NSManagedObject {
    /// Reads an unordered to-many relationship in the type of Objective-C code.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The members as an `NSSet`; empty if there are none. The result is `nil` only if the property is a
    ///   transformable attribute without a value.
    public final func managedValue(_ property: borrowing ManagedProperty<NSSet?>) -> NSSet? {
        foundationCollection(property.untyped, isOrdered: false, as: NSSet.self)
    }

    /// Replaces the members of an unordered to-many relationship; nil removes all.
    ///
    /// - Parameters:
    ///   - value: The new members; `nil` for none.
    ///   - property: The property that the macro has made.
    public final func setManagedValue(_ value: NSSet?, _ property: borrowing ManagedProperty<NSSet?>) {
        setFoundationCollection(value, property.untyped)
    }

    /// Reads an unordered to-many relationship in the type of Objective-C code.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The members as an `NSSet`; empty if there are none.
    public final func managedValue(_ property: borrowing ManagedProperty<NSSet>) -> NSSet {
        foundationCollection(property.untyped, isOrdered: false, as: NSSet.self) ?? NSSet()
    }

    /// Replaces the members of an unordered to-many relationship.
    ///
    /// - Parameters:
    ///   - value: The new members.
    ///   - property: The property that the macro has made.
    public final func setManagedValue(_ value: NSSet, _ property: borrowing ManagedProperty<NSSet>) {
        setFoundationCollection(value, property.untyped)
    }

    /// Reads an ordered to-many relationship in the type of Objective-C code.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The members as an `NSOrderedSet`; empty if there are none. The result is `nil` only if the property
    ///   is a transformable attribute without a value.
    public final func managedValue(_ property: borrowing ManagedProperty<NSOrderedSet?>) -> NSOrderedSet? {
        foundationCollection(property.untyped, isOrdered: true, as: NSOrderedSet.self)
    }

    /// Replaces the members of an ordered to-many relationship; nil removes all.
    ///
    /// - Parameters:
    ///   - value: The new members; `nil` for none.
    ///   - property: The property that the macro has made.
    public final func setManagedValue(_ value: NSOrderedSet?, _ property: borrowing ManagedProperty<NSOrderedSet?>) {
        setFoundationCollection(value, property.untyped)
    }

    /// Reads an ordered to-many relationship in the type of Objective-C code.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The members as an `NSOrderedSet`; empty if there are none.
    public final func managedValue(_ property: borrowing ManagedProperty<NSOrderedSet>) -> NSOrderedSet {
        foundationCollection(property.untyped, isOrdered: true, as: NSOrderedSet.self) ?? NSOrderedSet()
    }

    /// Replaces the members of an ordered to-many relationship.
    ///
    /// - Parameters:
    ///   - value: The new members.
    ///   - property: The property that the macro has made.
    public final func setManagedValue(_ value: NSOrderedSet, _ property: borrowing ManagedProperty<NSOrderedSet>) {
        setFoundationCollection(value, property.untyped)
    }

    private func foundationCollection<Value>(
        _ property: borrowing AnyManagedProperty,
        isOrdered: Bool,
        as type: Value.Type
    ) -> Value? {
        // A transformable attribute may hold such a set too.
        if holdsObjects(property.name) { return objectValue(property, as: type) }
        // The look-up stops the program unless the entity has such a to-many relationship.
        _ = property.slot(in: unmanagedLayout, .toMany(isOrdered: isOrdered))
        return anyValue(forKey: property.name) as? Value
    }

    private func setFoundationCollection(_ value: Any?, _ property: borrowing AnyManagedProperty) {
        setAnyValue(value, forKey: property.name)
    }

    /// Reads an optional typed set; never nil.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The members, in no order.
    public final func managedValue<Element: NSManagedObject>(
        _ property: borrowing ManagedProperty<Set<Element>?>
    ) -> Set<Element>? {
        Set<Element>.managedRead(self, property.untyped)
    }

    /// Replaces the members of an unordered to-many relationship; nil removes all.
    ///
    /// - Parameters:
    ///   - value: The new members; `nil` for none.
    ///   - property: The property that the macro has made.
    public final func setManagedValue<Element: NSManagedObject>(
        _ value: Set<Element>?,
        _ property: borrowing ManagedProperty<Set<Element>?>
    ) {
        Set<Element>.managedWrite(value ?? [], self, property.untyped)
    }

    /// Reads an optional array of a to-many relationship; never nil.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The members, in the order of an ordered relationship.
    public final func managedValue<Element: NSManagedObject>(
        _ property: borrowing ManagedProperty<[Element]?>
    ) -> [Element]? {
        [Element].managedRead(self, property.untyped)
    }

    /// Replaces the members of a to-many relationship; nil removes all.
    ///
    /// - Parameters:
    ///   - value: The new members; `nil` for none.
    ///   - property: The property that the macro has made.
    public final func setManagedValue<Element: NSManagedObject>(
        _ value: [Element]?,
        _ property: borrowing ManagedProperty<[Element]?>
    ) {
        [Element].managedWrite(value ?? [], self, property.untyped)
    }
}
