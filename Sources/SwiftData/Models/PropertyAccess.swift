import CoreData

/// The place of a stored property in the rows of its objects.
///
/// ``Model()`` makes one for each property, and the accessors of the property use it. The place is looked up at the first
/// access. Any thread may use it.
@_documentation(visibility: internal)
public struct _PropertyPlace: ~Copyable, Sendable {
    @usableFromInline let property: ManagedProperty<Any>

    /// Makes the place of a property.
    ///
    /// - Parameter name: The name of the property.
    @inlinable
    public init(_ name: String) { property = ManagedProperty(name) }
}

/// The key path of a stored property, which observers know it by.
///
/// ``Model()`` makes one for each property: a key path that is written in an accessor is looked up at each access.
@_documentation(visibility: internal)
public struct _PropertyKey<Root, Value>: @unchecked Sendable {
    // @unchecked Sendable: immutable; key paths of properties capture nothing.

    /// The key path.
    public let path: KeyPath<Root, Value>

    /// Keeps a key path.
    ///
    /// - Parameter path: The key path of a stored property.
    @inlinable
    public init(_ path: KeyPath<Root, Value>) { self.path = path }
}

/// The way from a model object to its values, by which its accessors read and write without a block of the context's queue.
///
/// It leads nowhere if the object has no values yet, or a backing of another library.
@_documentation(visibility: internal)
public struct _ModelLink {
    @usableFromInline let target: Unmanaged<GlancedObject>?

    /// Makes a link that leads nowhere.
    @inlinable
    public init() { target = nil }

    /// Makes a link to the values in a backing, which the object holds.
    init(_ backing: ModelState) { target = Unmanaged.passUnretained(backing) }

    @inlinable
    @inline(__always)
    init(_ target: Unmanaged<GlancedObject>?) { self.target = target }

    /// The values; `nil` if the link leads nowhere.
    var state: ModelState? {
        // Only states have links.
        target.map { unsafeDowncast($0.takeUnretainedValue(), to: ModelState.self) }
    }

    /// Fills a fault, so that a glance may find its values.
    @inline(never)
    @usableFromInline
    func fillFault() -> Bool { state?.fillFault() == true }
}

// The accessors that `@Model` writes call these methods. The ones for basic types come first: their values are read and
// written in the row. The others are as the methods without a place, by which code of the program can read the same
// values.

extension PersistentModel {
    /// The value of an attribute of a basic type.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The value.
    @inlinable
    @inline(__always)
    public func _getValue<Value: GlancedValue & Decodable>(
        forKey key: @autoclosure () -> KeyPath<Self, Value>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value {
        if let target = link.target {
            if let value = Value.managedGlance(target, place.property.untyped) { return value }
            if link.fillFault(), let value = Value.managedGlance(target, place.property.untyped) { return value }
        }
        return _getValueInScope(key(), Value.self, place)
    }

    /// The value of an optional attribute of a basic type.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The value.
    @inlinable
    @inline(__always)
    public func _getValue<Value: GlancedValue & Decodable>(
        forKey key: @autoclosure () -> KeyPath<Self, Value?>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value? {
        if let target = link.target {
            if let value = Value.managedGlanceOptional(target, place.property.untyped) { return value }
            if link.fillFault(), let value = Value.managedGlanceOptional(target, place.property.untyped) {
                return value
            }
        }
        return _getValueInScope(key(), Value.self, place)
    }

    /// The value of an attribute of another type.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The value.
    @inlinable
    @_disfavoredOverload
    public func _getValue<Value: Decodable>(
        forKey key: KeyPath<Self, Value>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value { getValue(forKey: key) }

    /// The object of a to-one relationship that always has one.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The value.
    public func _getValue<Value: PersistentModel>(
        forKey key: @autoclosure () -> KeyPath<Self, Value>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value {
        if case .found(let model) = related(at: place, by: link) {
            // Usually it is of exactly this class, so that no cast is needed.
            if type(of: model) == Value.self { return unsafeDowncast(model, to: Value.self) }
            if let value = model as? Value { return value }
        }
        return persistentBackingData.getValue(forKey: key())
    }

    /// The object of a to-one relationship.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The object; `nil` if there is none.
    public func _getValue<Value: PersistentModel>(
        forKey key: @autoclosure () -> KeyPath<Self, Value?>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value? {
        switch related(at: place, by: link) {
        case .found(let model):
            // Usually it is of exactly this class, so that no cast is needed.
            return type(of: model) == Value.self ? unsafeDowncast(model, to: Value.self) : model as? Value
        case .absent: return nil
        case .unknown: break
        }
        return persistentBackingData.getValue(forKey: key())
    }

    /// The object of a to-one relationship by a glance, or else by a short block; `unknown` if the link leads nowhere.
    @inline(__always)
    private func related(at place: borrowing _PropertyPlace, by link: _ModelLink) -> GlancedObject.Destination {
        guard let target = link.target else { return .unknown }
        let found = GlancedObject.destination(at: target, place.property.untyped, ManagedContext.standIn)
        if case .unknown = found, let state = link.state { return state.related(at: place) }
        return found
    }

    /// The objects of a to-many relationship.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The value.
    @inlinable
    public func _getValue<Value, OtherModel>(
        forKey key: KeyPath<Self, Value>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value where Value: RelationshipCollection, OtherModel == Value.PersistentElement { getValue(forKey: key) }

    /// The objects of a to-many relationship whose class is decodable itself.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    /// - Returns: The value.
    @inlinable
    public func _getValue<Value, OtherModel>(
        forKey key: KeyPath<Self, Value>,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) -> Value where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        getValue(forKey: key)
    }

    // MARK: - Writing

    /// Sets an attribute of a basic type.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    @inline(__always)
    public func _setValue<Value: GlancedValue & Encodable>(
        forKey key: @autoclosure () -> KeyPath<Self, Value>,
        to newValue: Value,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) {
        if let target = link.target, Value.managedGlanceWrite(newValue, target, place.property.untyped) { return }
        _setValueInScope(key(), newValue, Value.self, place)
    }

    /// Sets an optional attribute of a basic type.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value; `nil` removes it.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    @inline(__always)
    public func _setValue<Value: GlancedValue & Encodable>(
        forKey key: @autoclosure () -> KeyPath<Self, Value?>,
        to newValue: Value?,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) {
        if let target = link.target, Value.managedGlanceWrite(newValue, target, place.property.untyped) { return }
        _setValueInScope(key(), newValue, Value.self, place)
    }

    /// Sets an attribute of another type.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    @_disfavoredOverload
    public func _setValue<Value: Encodable>(
        forKey key: KeyPath<Self, Value>,
        to newValue: Value,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) { setValue(forKey: key, to: newValue) }

    /// Sets a to-one relationship that always has an object.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    public func _setValue<Value: PersistentModel>(
        forKey key: KeyPath<Self, Value>,
        to newValue: Value,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) { setValue(forKey: key, to: newValue) }

    /// Sets a to-one relationship.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    public func _setValue<Value: PersistentModel>(
        forKey key: KeyPath<Self, Value?>,
        to newValue: Value?,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) { setValue(forKey: key, to: newValue) }

    /// Sets a to-many relationship.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    public func _setValue<Value, OtherModel>(
        forKey key: KeyPath<Self, Value>,
        to newValue: Value,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) where Value: RelationshipCollection, OtherModel == Value.PersistentElement { setValue(forKey: key, to: newValue) }

    /// Sets a to-many relationship whose class is encodable itself.
    ///
    /// - Parameters:
    ///   - key: The property.
    ///   - newValue: The value.
    ///   - place: The place of the property.
    ///   - link: The way to the values.
    @inlinable
    public func _setValue<Value, OtherModel>(
        forKey key: KeyPath<Self, Value>,
        to newValue: Value,
        at place: borrowing _PropertyPlace,
        by link: _ModelLink
    ) where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement {
        setValue(forKey: key, to: newValue)
    }

    // MARK: - The first access, and what no glance finds

    @inline(never)
    @usableFromInline
    func _getValueInScope<Value: Decodable>(
        _ key: KeyPath<Self, Value>,
        _ type: (some GlancedValue).Type,
        _ place: borrowing _PropertyPlace
    ) -> Value {
        let data = persistentBackingData
        data._link.state?.learn(key, type.managedKind, place)
        return data.getValue(forKey: key)
    }

    @inline(never)
    @usableFromInline
    func _setValueInScope<Value: Encodable>(
        _ key: KeyPath<Self, Value>,
        _ newValue: Value,
        _ type: (some GlancedValue).Type,
        _ place: borrowing _PropertyPlace
    ) {
        let data = persistentBackingData
        data._link.state?.learn(key, type.managedKind, place)
        data.setValue(forKey: key, to: newValue)
    }
}

extension ModelState {
    /// Notes where glances find an attribute of a basic type.
    fileprivate func learn(_ key: AnyKeyPath, _ kind: ManagedValueKind, _ place: borrowing _PropertyPlace) {
        guard let object, case .attribute(let form) = record.property(key).kind, form.isBasic else { return }
        place.property.untyped.learn(from: object, kind)
    }
}
