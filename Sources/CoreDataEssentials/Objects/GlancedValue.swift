import StrataRows

/// A type of attributes that code outside of the scope of a context can read and write, one value at a time.
///
/// See ``GlancedObject``. The types of ``ManagedScalar`` conform, except objects.
@_documentation(visibility: internal)
public protocol GlancedValue: ManagedScalar {
    /// Reads the property on any thread, if its value is in memory and not null.
    ///
    /// - Parameters:
    ///   - link: The link to the object.
    ///   - property: The property, without its type.
    /// - Returns: The value; `nil` if a block of the context's queue has to find out.
    static func managedGlance(_ link: Unmanaged<GlancedObject>, _ property: borrowing AnyManagedProperty) -> Self?
    /// Reads the property on any thread, if it is in memory, with nil for no value.
    ///
    /// - Parameters:
    ///   - link: The link to the object.
    ///   - property: The property, without its type.
    /// - Returns: The value, or `.some(nil)`; `nil` if a block of the context's queue has to find out.
    static func managedGlanceOptional(
        _ link: Unmanaged<GlancedObject>,
        _ property: borrowing AnyManagedProperty
    ) -> Self??
    /// Writes the property on any thread, if the object has changes in the current event.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` removes it.
    ///   - link: The link to the object.
    ///   - property: The property, without its type.
    /// - Returns: Whether the value was set; `false` if a block of the context's queue has to set it.
    static func managedGlanceWrite(
        _ value: Self?,
        _ link: Unmanaged<GlancedObject>,
        _ property: borrowing AnyManagedProperty
    ) -> Bool
}

extension WordValue {
    /// The value of a property if it is in memory and not null.
    @inline(__always)
    static func glance(at link: Unmanaged<GlancedObject>, _ property: borrowing AnyManagedProperty) -> Self? {
        GlancedObject.glance(at: link) { object in
            guard let place = object.glancedPlace(property) else { return nil }
            let row = UnsafeRow(object.heldRow.unsafelyUnwrapped)
            return row.isNull(place.index) ? nil : load(row.words + place.word)
        }
    }

    /// The same as `glance`, for an optional type, whose value is nil if the property is null.
    @inline(__always)
    static func glanceOptional(at link: Unmanaged<GlancedObject>, _ property: borrowing AnyManagedProperty) -> Self?? {
        GlancedObject.glance(at: link) { object -> Self?? in
            guard let place = object.glancedPlace(property) else { return nil }
            let row = UnsafeRow(object.heldRow.unsafelyUnwrapped)
            return .some(row.isNull(place.index) ? nil : load(row.words + place.word))
        }
    }

    /// Sets a property, if the object is known as changed and the current event has noted that.
    ///
    /// - Returns: Whether the value was set.
    @inline(__always)
    static func glanceWrite(
        _ value: Self?,
        at link: Unmanaged<GlancedObject>,
        _ property: borrowing AnyManagedProperty
    ) -> Bool {
        guard !releasesCode else { return false }
        let isSet = GlancedObject.glance(at: link) { object -> Bool? in
            guard link._withUnsafeGuaranteedRef({ $0.isKnownAsChanged }), object.flags.contains(.writable),
                let place = object.glancedPlace(property)
            else { return nil }
            if let value {
                store(value, in: UnsafeRow(object.heldRow.unsafelyUnwrapped), at: place, of: object)
            } else {
                object.current.unsafelyUnwrapped.setNull(object.layout.slots[place.index])
            }
            return true
        }
        return isSet == true
    }
}

extension GlancedObject {
    /// Looks at the object of a link, alone in the scope of its context; `nil` if the scope is taken.
    @inline(__always)
    fileprivate static func glance<Result>(
        at link: Unmanaged<GlancedObject>,
        _ body: (NSManagedObject) -> Result?
    ) -> Result? {
        guard let gate = link._withUnsafeGuaranteedRef({ $0.gate }),
            gate._withUnsafeGuaranteedRef({ $0.enterForGlance() })
        else { return nil }
        defer { gate._withUnsafeGuaranteedRef { $0.leaveAfterGlance() } }
        // The link may have been set anew before the glance was alone.
        guard let target = link._withUnsafeGuaranteedRef({ $0.hasLostRow ? nil : $0.target }) else { return nil }
        return target._withUnsafeGuaranteedRef { body($0) }
    }
}

extension GlancedObject {
    /// The object of a to-one relationship, as a glance finds it.
    package enum Destination {
        /// A block of the context's queue has to find out.
        case unknown
        case absent
        case found(AnyObject)
    }

    /// Finds what stands for the object of a to-one relationship, if both objects are in memory.
    ///
    /// - Parameters:
    ///   - link: The link to the owner of the relationship.
    ///   - property: The relationship, without its type.
    ///   - stand: Finds what stands for an object. It runs inside of the scope, is short, and runs no code of the program,
    ///     so the object lives, although its reference is not counted.
    /// - Returns: The object, or `unknown` if a block has to find out.
    package static func destination(
        at link: Unmanaged<GlancedObject>,
        _ property: borrowing AnyManagedProperty,
        _ stand: (Unmanaged<NSManagedObject>) -> AnyObject?
    ) -> Destination {
        let found = glance(at: link) { object -> Destination? in
            guard let place = object.glancedPlace(property), object.storeIndex >= 0 else { return nil }
            let row = UnsafeRow(object.heldRow.unsafelyUnwrapped)
            guard let reference = row.reference(place.index, at: place.word) else { return .absent }
            let other = object.unmanagedContext?._withUnsafeGuaranteedRef { $0.knownPlace(reference, near: object) }
            guard let other, let found = stand(other) else { return nil }
            return .found(found)
        }
        return found ?? .unknown
    }
}

extension NSManagedObject {
    /// The place of a property whose value is in memory; `nil` if it has to be found out otherwise.
    ///
    /// Confinement is not checked, because a glance is alone in the scope.
    @inline(__always)
    fileprivate final func glancedPlace(_ property: borrowing AnyManagedProperty) -> UnsafeSlot? {
        guard flags.isDisjoint(with: [.fault, .detached, .inaccessible, .gone]) else { return nil }
        return property.knownSlot(in: unmanagedLayout)
    }
}
