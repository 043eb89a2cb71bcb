import Foundation
import StrataRows

// Properties of types that no slot can hold: the values of transformable, composite and transient attributes, and the
// classes of Foundation that stand for a scalar.

extension NSManagedObject {
    /// Reads a transformable, composite or transient property whose type no slot can hold.
    ///
    /// A value of another type reads as nil. This is reported to the coordinator's
    /// ``NSPersistentStoreCoordinator/unreportableErrorHandler``, once for each property.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The value, or `nil`.
    @_disfavoredOverload
    public final func managedValue<Value>(_ property: borrowing ManagedProperty<Value?>) -> Value? {
        objectValue(property.untyped, as: Value.self)
    }

    /// Writes a transformable, composite or transient property whose type no slot can hold.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` removes it.
    ///   - property: The property that the macro has made.
    @_disfavoredOverload
    public final func setManagedValue<Value>(_ value: Value?, _ property: borrowing ManagedProperty<Value?>) {
        setObjectValue(value, property.untyped)
    }

    /// Reads an attribute as an object of a class: the value of a transformable attribute, or an `NSNumber`, `NSDate`
    /// and so on.
    ///
    /// If there is no value, then a property of a Foundation class reads as zero or as an empty object. For any other
    /// class the program stops; declare such a property optional.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The object.
    @_disfavoredOverload
    public final func managedValue<Value: AnyObject>(_ property: borrowing ManagedProperty<Value>) -> Value {
        if let value = objectValue(property.untyped, as: Value.self) ?? EmptyObjects.object(of: Value.self) {
            return value
        }
        fatalError(
            "CoreData: property \"\(property.untyped.name)\" of \(entity.name ?? "") has no value of class \(Value.self), but is not optional. Declare it as \(Value.self)?."
        )
    }

    /// Writes an attribute as an object of a class.
    ///
    /// - Parameters:
    ///   - value: The object.
    ///   - property: The property that the macro has made.
    @_disfavoredOverload
    public final func setManagedValue<Value: AnyObject>(_ value: Value, _ property: borrowing ManagedProperty<Value>) {
        setObjectValue(value, property.untyped)
    }

    /// Reads a transformable attribute that holds an array; empty if there is none.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The array.
    @_disfavoredOverload
    public final func managedValue<Element>(_ property: borrowing ManagedProperty<[Element]>) -> [Element] {
        objectValue(property.untyped, as: [Element].self) ?? []
    }

    /// Writes a transformable attribute that holds an array.
    ///
    /// - Parameters:
    ///   - value: The array.
    ///   - property: The property that the macro has made.
    @_disfavoredOverload
    public final func setManagedValue<Element>(_ value: [Element], _ property: borrowing ManagedProperty<[Element]>) {
        setObjectValue(value, property.untyped)
    }

    /// Reads a transformable attribute that holds a set; empty if there is none.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The set.
    @_disfavoredOverload
    public final func managedValue<Element>(_ property: borrowing ManagedProperty<Set<Element>>) -> Set<Element> {
        objectValue(property.untyped, as: Set<Element>.self) ?? []
    }

    /// Writes a transformable attribute that holds a set.
    ///
    /// - Parameters:
    ///   - value: The set.
    ///   - property: The property that the macro has made.
    @_disfavoredOverload
    public final func setManagedValue<Element>(
        _ value: Set<Element>,
        _ property: borrowing ManagedProperty<Set<Element>>
    ) {
        setObjectValue(value, property.untyped)
    }

    /// Reads a transformable or composite attribute that holds a dictionary; empty if there is none.
    ///
    /// - Parameter property: The property that the macro has made.
    /// - Returns: The dictionary.
    @_disfavoredOverload
    public final func managedValue<Key, Value>(
        _ property: borrowing ManagedProperty<[Key: Value]>
    ) -> [Key: Value] {
        objectValue(property.untyped, as: [Key: Value].self) ?? [:]
    }

    /// Writes a transformable or composite attribute that holds a dictionary.
    ///
    /// - Parameters:
    ///   - value: The dictionary.
    ///   - property: The property that the macro has made.
    @_disfavoredOverload
    public final func setManagedValue<Key, Value>(
        _ value: [Key: Value],
        _ property: borrowing ManagedProperty<[Key: Value]>
    ) {
        setObjectValue(value, property.untyped)
    }

    /// The value of an attribute as an object of a type.
    ///
    /// The look-up stops the program unless the entity has such an attribute.
    package final func objectValue<Value>(_ property: borrowing AnyManagedProperty, as type: Value.Type) -> Value? {
        _ = property.slot(in: unmanagedLayout, .object)
        guard let value = anyValue(forKey: property.name) else { return nil }
        if let typed = value as? Value { return typed }
        reportMismatch(of: property.name, value: value, type: type)
        return nil
    }

    package final func setObjectValue(_ value: Any?, _ property: borrowing AnyManagedProperty) {
        _ = property.slot(in: unmanagedLayout, .object)
        setAnyValue(value, forKey: property.name)
    }

    /// Whether a property is an attribute that holds objects, and so not a relationship.
    final func holdsObjects(_ name: String) -> Bool {
        switch layout.places[layout.primitiveBase(of: name) ?? name] {
        case .slot(let index)?: layout.slots[index].type == .transformable && layout.slots[index].kind != .reference
        case .transient(let index)?: layout.transients[index].property is NSAttributeDescription
        case .composite?: true
        case .toMany?, .fetched?, nil: false
        }
    }

    private func reportMismatch(of name: String, value: Any, type: Any.Type) {
        // While a key path is recorded, reads return sample values.
        guard KeyPathRecording.current == nil, let coordinator = managedObjectContext?.persistentStoreCoordinator else {
            return
        }
        let model = coordinator.frozenModel
        guard model.mismatches.withLock({ $0.insert("\(layout.number).\(name)").inserted }) else { return }
        let error = CocoaError.described(
            .coreData,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Property \"\(name)\" of \(entity.name ?? "") is declared as \(type), but holds a value of type \(Swift.type(of: value)). It reads as no value."
            ]
        )
        coordinator.report(error, "reading property \"\(name)\" of \(entity.name ?? "")")
    }
}

/// The objects that properties of Foundation's classes return if there is no value.
private enum EmptyObjects {
    static func object<Value>(of type: Value.Type) -> Value? {
        let object: Any? =
            switch ObjectIdentifier(type) {
            case ObjectIdentifier(NSDecimalNumber.self): NSDecimalNumber.zero
            case ObjectIdentifier(NSNumber.self): NSNumber(value: 0)
            case ObjectIdentifier(NSString.self): NSString()
            case ObjectIdentifier(NSDate.self): NSDate(timeIntervalSinceReferenceDate: 0)
            case ObjectIdentifier(NSData.self): NSData()
            case ObjectIdentifier(NSArray.self): NSArray()
            case ObjectIdentifier(NSDictionary.self): NSDictionary()
            default: nil
            }
        return object as? Value
    }
}
