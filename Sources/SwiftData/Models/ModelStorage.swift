import CoreData

/// The backing of one model object.
///
/// ``Model()`` puts one into each class.
///
/// A value of the protocol `BackingData` takes five words and several steps to make, and an object that is made of a stored
/// one would make two. So a backing of this library is kept as a reference. Any other one is in a box.
///
/// Any thread may read the backing and the link at the same time, as glances and merges do. The members that change the storage
/// belong to the code that has the object: initialisers, the first access, and a program that sets another backing.
@_documentation(visibility: internal)
public struct _ModelStorage<Model: PersistentModel>: ~Copyable {
    /// The backing, if it is one of this library; its reference is counted.
    @usableFromInline var target: Unmanaged<GlancedObject>?
    /// The box of any other backing.
    @usableFromInline var other: AnyObject?

    /// Makes a storage without a backing, which gets one when it is used.
    @inlinable
    public init() { target = nil }

    /// Makes a storage of a backing.
    ///
    /// - Parameter backing: The backing.
    public init(_ backing: borrowing any BackingData<Model>) {
        target = backing._link.target
        if let target { _ = target.retain() } else { other = OtherBacking(copy backing) }
    }

    deinit { target?.release() }

    /// Whether there is a backing of either kind.
    @inlinable var hasBacking: Bool { target != nil || other != nil }

    /// The way to the values.
    @inlinable
    public var link: _ModelLink {
        @inline(__always) get { _ModelLink(target) }
    }

    /// The backing, if there is one; other threads may read it at the same time.
    public var backing: (any BackingData<Model>)? {
        if let state = link.state { return state.record.form.data(state) }
        return (other as? OtherBacking<Model>)?.backing
    }

    /// Makes the backing of an object that has none.
    ///
    /// - Returns: The backing.
    public mutating func makeBacking() -> any BackingData<Model> {
        let made = ModelBacking<Model>(for: Model.self)
        target = Unmanaged.passRetained(made)
        return made
    }

    /// Sets another backing, in which the object reads and writes its values from now on.
    ///
    /// - Parameter backing: The backing; a program may set the same one again.
    public mutating func replaceBacking(with backing: any BackingData<Model>) {
        let former = link.state
        self = Self(backing)
        if let former, former !== link.state { former.loseModel() }
    }

    /// Sets the initial value of a property, unless the object is made of a stored one.
    ///
    /// An object that is made of a stored one has no backing before its first initial value. It gets the one that it is
    /// going to have.
    ///
    /// - Parameters:
    ///   - value: The initial value.
    ///   - body: Sets the value in the backing.
    @inlinable
    public mutating func initialize<Value>(_ value: Value, _ body: (any BackingData<Model>, Value) -> Void) {
        if takesInitialValues { body(backing ?? makeBacking(), value) }
    }

    /// Sets the initial value of an optional property, unless the object is made of a stored one.
    ///
    /// A property without an initial value begins with nil. That needs no backing, as a new one has no values.
    ///
    /// - Parameters:
    ///   - value: The initial value.
    ///   - body: Sets the value in the backing.
    @inlinable
    @inline(__always)
    public mutating func initialize<Value>(_ value: Value?, _ body: (any BackingData<Model>, Value?) -> Void) {
        if value != nil || hasBacking, takesInitialValues { body(backing ?? makeBacking(), value) }
    }

    /// Whether the object is not made of a stored one.
    @usableFromInline var takesInitialValues: Bool {
        mutating get {
            if !hasBacking {
                target = ModelMaking.take(for: Model.self).map { Unmanaged.passRetained($0) }
            }
            return link.state?.isBeingMade != true
        }
    }
}

/// A backing of another library.
private final class OtherBacking<Model: PersistentModel> {
    let backing: any BackingData<Model>

    init(_ backing: any BackingData<Model>) { self.backing = backing }
}
