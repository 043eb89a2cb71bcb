import StrataRows

/// The link to a managed object for code outside of the scope of its context, which accesses one value at a time.
///
/// A subclass belongs to the layer above, where the program's objects are no managed objects. An access through the link
/// is a glance: it costs nanoseconds where a block of the context's queue costs microseconds, and is as safe. No block of
/// the context runs at the same time, and blocks that were submitted before are not overtaken. A glance finds values that
/// are in memory. For anything else it finds nothing, and the caller goes by a block: faults, objects that have left
/// their context, null where the type has no nil, and the first write since the last event.
///
/// Any thread may glance. The link itself is set inside the scope of the context, or before other code has the object.
@_documentation(visibility: internal)
open class GlancedObject {
    /// The context of the object, and with it the gate; `nil` while the link leads nowhere.
    private final var owner: NSManagedObjectContext?
    /// The gate of the context, so that a glance counts no reference.
    @exclusivity(unchecked) private(set) final var gate: Unmanaged<ScopeGate>?
    /// The object; its reference is counted where the link is set and in `deinit`, and so by no glance.
    @exclusivity(unchecked) private(set) final var target: Unmanaged<NSManagedObject>?
    /// Whether the values of the object cannot be read, because its row has gone.
    ///
    /// It is set and read inside the scope of the context.
    @exclusivity(unchecked) package final var hasLostRow = false
    /// Whether the layer above knows that the object has changes, so that it needs no notice of another write.
    ///
    /// It is set and read inside the scope of the context.
    @exclusivity(unchecked) package final var isKnownAsChanged = false

    /// Makes a link that leads nowhere.
    public init() {}

    deinit {
        target?.release()
    }

    /// The managed object.
    package final var object: NSManagedObject? { target?.takeUnretainedValue() }

    /// The context of the managed object.
    package final var context: NSManagedObjectContext? { owner }

    /// Leads to an object of a context from now on, or nowhere.
    package final func lead(to object: NSManagedObject?, of context: NSManagedObjectContext?) {
        let former = target
        target = object.map { Unmanaged.passRetained($0) }
        owner = context
        gate = context?.gate.map { Unmanaged.passUnretained($0) }
        (hasLostRow, isKnownAsChanged) = (object?.isWithoutRow == true, false)
        former?.release()
    }
}

extension AnyManagedProperty {
    /// Looks the property up for objects like this one, so that glances find it.
    ///
    /// The caller is inside the scope, and has checked that the attribute has the type of the values.
    ///
    /// - Parameters:
    ///   - object: An object with the property.
    ///   - kind: The kind of property that the type can stand for.
    package borrowing func learn(from object: NSManagedObject, _ kind: ManagedValueKind) {
        _ = slot(in: object.unmanagedLayout, kind)
    }
}
