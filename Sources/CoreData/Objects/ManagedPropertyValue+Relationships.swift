import Foundation

// MARK: - To-one

extension NSManagedObject: ManagedScalar {
    /// A to-one relationship.
    public static var managedKind: ManagedValueKind { .toOne }

    /// The destination.
    ///
    /// Stops the program if there is none: declare the property optional.
    public static func managedRead(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self {
        guard let value = destination(object, property.slot(in: object.unmanagedLayout, managedKind), property.name)
        else {
            fatalError(
                "CoreData: relationship \"\(property.name)\" of \(object.entity.name ?? "") is nil, but its property is not optional. Declare it as \(Self.self)?."
            )
        }
        return value
    }

    /// Sets the destination, and the inverse relationship on both sides.
    public static func managedWrite(_ value: NSManagedObject, _ object: NSManagedObject, _ property: AnyManagedProperty)
    {
        setDestination(value, object, property.slot(in: object.unmanagedLayout, managedKind), property.name)
    }

    /// The destination, or nil.
    public static func managedReadOptional(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self? {
        destination(object, property.slot(in: object.unmanagedLayout, managedKind), property.name)
    }

    /// Sets or removes the destination, and the inverse relationship on both sides.
    public static func managedWriteOptional(
        _ value: NSManagedObject?,
        _ object: NSManagedObject,
        _ property: AnyManagedProperty
    ) {
        setDestination(value, object, property.slot(in: object.unmanagedLayout, managedKind), property.name)
    }

    @inline(__always)
    private static func destination(_ object: NSManagedObject, _ place: UnsafeSlot, _ name: String) -> Self? {
        guard place != .elsewhere else { return object.anyValue(forKey: name) as? Self }
        guard let reference = object.readableWords(place.index).reference(place.index, at: place.word),
            let context = object.unmanagedContext,
            let found = context._withUnsafeGuaranteedRef({ $0.object(for: reference, near: object) })
        else { return nil }
        // Mostly it is of this very class, which costs one comparison to see.
        if Swift.type(of: found) == Self.self { return unsafeDowncast(found, to: Self.self) }
        guard let value = found as? Self else {
            fatalError(
                "CoreData: relationship \"\(name)\" of \(object.entity.name ?? "") is declared as \(Self.self), but its destination is of class \(Swift.type(of: found)). Check the class names in the model."
            )
        }
        return value
    }

    private static func setDestination(
        _ value: NSManagedObject?,
        _ object: NSManagedObject,
        _ place: UnsafeSlot,
        _ name: String
    ) {
        guard place != .elsewhere else { return object.setAnyValue(value, forKey: name) }
        object.setToOne(value, object.layout.slots[place.index])
    }
}

// MARK: - To-many

/// A collection type that a to-many relationship may be declared as.
private protocol ManagedCollection: ManagedPropertyValue {
    associatedtype Member: NSManagedObject
    static func collection(of members: [Member]) -> Self
    var members: [NSManagedObject] { get }
}

extension ManagedCollection {
    fileprivate static func read(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self {
        guard let slot = toMany(object, property.name, kind: property) else {
            _ = object.anyValue(forKey: property.name)
            return collection(of: [])
        }
        if let cached = object.cachedCollection(slot) as? Self { return cached }
        let value = collection(
            of: object.members(slot).map { member in
                guard let typed = member as? Member else {
                    fatalError(
                        "CoreData: relationship \"\(property.name)\" of \(object.entity.name ?? "") is declared as \(Self.self), but a member is of class \(Swift.type(of: member)). Check the class names in the model."
                    )
                }
                return typed
            }
        )
        object.cacheCollection(value, slot)
        return value
    }

    fileprivate static func write(_ value: Self, _ object: NSManagedObject, _ property: AnyManagedProperty) {
        guard let slot = toMany(object, property.name, kind: property) else { return }
        object.setMembers(value.members, slot)
    }

    /// The relationship; nil only while a key path is being recorded.
    private static func toMany(
        _ object: NSManagedObject,
        _ name: String,
        kind property: AnyManagedProperty
    ) -> ToManySlot? {
        // The look-up stops the program unless the entity has such a to-many relationship.
        _ = property.slot(in: object.unmanagedLayout, managedKind)
        guard let slot = object.layout.toMany(named: name) else {
            if KeyPathRecording.current != nil { return nil }
            fatalError("CoreData: \"\(name)\" of \(object.entity.name ?? "") is no to-many relationship.")
        }
        return slot
    }
}

extension Set: ManagedPropertyValue where Element: NSManagedObject {
    /// A to-many relationship that is not ordered.
    public static var managedKind: ManagedValueKind { .toMany(isOrdered: false) }

    /// The members.
    public static func managedRead(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self {
        read(object, property)
    }

    /// Replaces the members, and the inverse relationship on both sides.
    public static func managedWrite(_ value: Self, _ object: NSManagedObject, _ property: AnyManagedProperty) {
        write(value, object, property)
    }
}

extension Set: ManagedCollection where Element: NSManagedObject {
    fileprivate static func collection(of members: [Element]) -> Self { Set(members) }
    fileprivate var members: [NSManagedObject] { Swift.Array(self) }
}

extension Array: ManagedPropertyValue where Element: NSManagedObject {
    /// A to-many relationship; in its order if it is ordered.
    public static var managedKind: ManagedValueKind { .toMany(isOrdered: nil) }

    /// The members.
    public static func managedRead(_ object: NSManagedObject, _ property: AnyManagedProperty) -> Self {
        read(object, property)
    }

    /// Replaces the members, and the inverse relationship on both sides.
    public static func managedWrite(_ value: Self, _ object: NSManagedObject, _ property: AnyManagedProperty) {
        write(value, object, property)
    }
}

extension Array: ManagedCollection where Element: NSManagedObject {
    fileprivate static func collection(of members: [Element]) -> Self { members }
    fileprivate var members: [NSManagedObject] { self }
}

extension NSManagedObject {
    /// Reads an unordered to-many relationship as Objective-C code knows it.
    public final func managedValue(_ property: ManagedProperty<NSSet?>) -> NSSet? {
        _ = property.slot(in: unmanagedLayout, .toMany(isOrdered: false))
        return anyValue(forKey: property.name) as? NSSet
    }

    /// Replaces the members of an unordered to-many relationship.
    public final func setManagedValue(_ value: NSSet?, _ property: ManagedProperty<NSSet?>) {
        setAnyValue(value ?? NSSet(), forKey: property.name)
    }

    /// Reads an ordered to-many relationship as Objective-C code knows it.
    public final func managedValue(_ property: ManagedProperty<NSOrderedSet?>) -> NSOrderedSet? {
        _ = property.slot(in: unmanagedLayout, .toMany(isOrdered: true))
        return anyValue(forKey: property.name) as? NSOrderedSet
    }

    /// Replaces the members of an ordered to-many relationship.
    public final func setManagedValue(_ value: NSOrderedSet?, _ property: ManagedProperty<NSOrderedSet?>) {
        setAnyValue(value ?? NSOrderedSet(), forKey: property.name)
    }

    /// Reads an unordered to-many relationship as Objective-C code knows it.
    public final func managedValue(_ property: ManagedProperty<NSSet>) -> NSSet {
        managedValue(ManagedProperty<NSSet?>(property.name)) ?? NSSet()
    }

    /// Replaces the members of an unordered to-many relationship.
    public final func setManagedValue(_ value: NSSet, _ property: ManagedProperty<NSSet>) {
        setManagedValue(value, ManagedProperty<NSSet?>(property.name))
    }

    /// Reads an ordered to-many relationship as Objective-C code knows it.
    public final func managedValue(_ property: ManagedProperty<NSOrderedSet>) -> NSOrderedSet {
        managedValue(ManagedProperty<NSOrderedSet?>(property.name)) ?? NSOrderedSet()
    }

    /// Replaces the members of an ordered to-many relationship.
    public final func setManagedValue(_ value: NSOrderedSet, _ property: ManagedProperty<NSOrderedSet>) {
        setManagedValue(value, ManagedProperty<NSOrderedSet?>(property.name))
    }

    /// Reads an optional typed set; never nil.
    public final func managedValue<Element: NSManagedObject>(_ property: ManagedProperty<Set<Element>?>) -> Set<
        Element
    >? {
        managedValue(ManagedProperty<Set<Element>>(property.name))
    }

    /// Replaces the members of an unordered to-many relationship; nil for none.
    public final func setManagedValue<Element: NSManagedObject>(
        _ value: Set<Element>?,
        _ property: ManagedProperty<Set<Element>?>
    ) {
        setManagedValue(value ?? [], ManagedProperty<Set<Element>>(property.name))
    }

    /// Reads an optional array of a to-many relationship; never nil.
    public final func managedValue<Element: NSManagedObject>(_ property: ManagedProperty<[Element]?>) -> [Element]? {
        managedValue(ManagedProperty<[Element]>(property.name))
    }

    /// Replaces the members of a to-many relationship; nil for none.
    public final func setManagedValue<Element: NSManagedObject>(
        _ value: [Element]?,
        _ property: ManagedProperty<[Element]?>
    ) {
        setManagedValue(value ?? [], ManagedProperty<[Element]>(property.name))
    }
}
