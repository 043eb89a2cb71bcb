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
///
/// A block may set the link while another thread is about to glance, for instance if it saves the deletion of the object.
/// So the link keeps the gate even if it leads nowhere, and a glance looks at the object only when it is inside of the
/// gate. Code that needs the object or the context outside of the scope gets them under a lock.
@_documentation(visibility: internal)
open class GlancedObject {
    /// The context of the object; `nil` while the link leads nowhere.
    ///
    /// It is set inside the scope and under the lock.
    private final var owner: NSManagedObjectContext?
    /// The gate of the context that the object is in, or was in last.
    ///
    /// A context holds its gate, so its reference is counted only while the link leads nowhere. The gate changes only if the object goes to another context, which happens before other code uses the object there.
    @exclusivity(unchecked) private(set) final var gate: Unmanaged<ScopeGate>?
    /// The object; its reference is counted where the link is set and in `deinit`, and so by no glance.
    ///
    /// It is set inside the scope and under the lock, and read in either.
    @exclusivity(unchecked) private(set) final var target: Unmanaged<NSManagedObject>?
    /// Whether the values of the object cannot be read, because its row has gone.
    ///
    /// It is set and read inside the scope of the context.
    @exclusivity(unchecked) package final var hasLostRow = false
    /// Whether the layer above has been notified that the object has changes, so that it needs no notice of another write.
    ///
    /// It is set and read inside the scope of the context.
    @exclusivity(unchecked) package final var isKnownAsChanged = false

    /// Whether it has led to an object.
    @exclusivity(unchecked) private final var hasLed = false

    /// Makes a link that leads nowhere.
    public init() {}

    deinit {
        target?.release()
        if owner == nil { gate?.release() }
    }

    /// The managed object, for code on any thread.
    package final var object: NSManagedObject? {
        SharedIdentity.withLock(of: self) { target?.takeUnretainedValue() }
    }

    /// The context of the managed object, for code on any thread.
    package final var context: NSManagedObjectContext? { SharedIdentity.withLock(of: self) { owner } }

    /// Whether the link leads to an object, for code inside the scope of that object's context.
    package final func leads(to object: NSManagedObject) -> Bool {
        target?.toOpaque() == Unmanaged.passUnretained(object).toOpaque()
    }

    /// Leads to an object of a context from now on, or nowhere.
    package final func lead(to object: NSManagedObject?, of context: NSManagedObjectContext?) {
        let new = object.map { Unmanaged.passRetained($0) }
        // No other code looks at a link that has never led anywhere.
        if !hasLed, let context {
            hasLed = true
            (target, owner, gate) = (new, context, context.gate.map { Unmanaged.passUnretained($0) })
            hasLostRow = object?.isWithoutRow == true
            return
        }
        let counted = owner == nil ? gate : nil
        if let context {
            let next = context.gate.map { Unmanaged.passUnretained($0) }
            // Others may read it, so it is written only for another context.
            if gate?.toOpaque() != next?.toOpaque() { gate = next }
            counted?.release()
        } else if owner != nil {
            _ = gate?.retain()
        }
        // A release may run code, so the former references are released when the lock is free.
        let former = SharedIdentity.withLock(of: self) {
            defer { (target, owner) = (new, context) }
            return (target: target, owner: owner)
        }
        (hasLostRow, isKnownAsChanged) = (object?.isWithoutRow == true, false)
        former.target?.release()
    }

    /// Runs a short block inside the scope of the object's context, as ``NSManagedObjectContext/performAtOnce(_:)`` does.
    ///
    /// The block has no result, so that this method is compiled for its type and needs no information about types while it
    /// runs.
    ///
    /// - Parameter body: The block, which gets the object and its context.
    /// - Returns: Whether the block has run; not if the link leads nowhere.
    package final func performAtOnce(_ body: (NSManagedObject, NSManagedObjectContext) -> Void) -> Bool {
        if let gate, gate._withUnsafeGuaranteedRef({ $0.enterAhead() }) {
            defer { gate._withUnsafeGuaranteedRef { $0.leave() } }
            guard let target, let owner else { return false }
            if SlowOperationLog.submission(to: owner) == nil {
                let object = target.takeUnretainedValue()
                ConfinementScope.enter(owner) { owner.failingWithReads { body(object, owner) } }
                return true
            }
        }
        // When the scope is free, the link may lead elsewhere.
        while let context {
            let isDone = context.performAtOnce {
                guard owner === context, let target else { return false }
                body(target.takeUnretainedValue(), context)
                return true
            }
            if isDone { return true }
        }
        return false
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
