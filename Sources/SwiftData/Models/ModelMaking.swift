import Foundation

/// The backing of the model object that the current thread makes of a managed object.
///
/// `init(backingData:)` first makes a backing and puts the initial values of the properties into it, as every initialiser
/// of the class does. Instead it gets the backing that it is going to have, which takes no values meanwhile.
struct ModelMaking {
    /// The class of the object.
    private let type: ObjectIdentifier
    /// The backing, which lives until the object is made.
    private let backing: Unmanaged<ModelState>

    /// The object that the current thread makes; nil if it makes none, or if the object has got its backing.
    ///
    /// The memory lives as long as its thread, so that no object needs more than one call of the system's library.
    private static var current: UnsafeMutablePointer<ModelMaking?> {
        if let known = pthread_getspecific(key) { return known.assumingMemoryBound(to: ModelMaking?.self) }
        let made = UnsafeMutablePointer<ModelMaking?>.allocate(capacity: 1)
        made.initialize(to: nil)
        pthread_setspecific(key, made)
        return made
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { $0?.deallocate() }
        precondition(status == 0, "SwiftData needs a thread-local key, and the process has used up all: \(status)")
        return key
    }()

    /// Makes a model object, whose values are in a backing.
    ///
    /// - Parameters:
    ///   - type: The class of the object.
    ///   - backing: The backing.
    ///   - record: The record of the class.
    /// - Returns: The object.
    static func make<Model: PersistentModel>(_ type: Model.Type, on backing: ModelState, _ record: ModelRecord) -> Model
    {
        if record.takesNoInitialValues { return Model(backingData: record.form.data(backing)) }
        let current = current
        let outer = current.pointee
        backing.isBeingMade = true
        defer {
            backing.isBeingMade = false
            // Whether an object has initial values follows from its class.
            if current.pointee != nil { record.noteNoInitialValues() }
            current.pointee = outer
        }
        current.pointee = ModelMaking(type: ObjectIdentifier(type), backing: .passUnretained(backing))
        return Model(backingData: record.form.data(backing))
    }

    /// The backing of the object that is being made, for the first call, if it has a class.
    static func take<Model: PersistentModel>(for type: Model.Type) -> ModelState? {
        guard let known = pthread_getspecific(key) else { return nil }
        let current = known.assumingMemoryBound(to: ModelMaking?.self)
        guard let making = current.pointee, making.type == ObjectIdentifier(type) else { return nil }
        // Initial values may be other objects, which need a backing each.
        current.pointee = nil
        return making.backing.takeUnretainedValue()
    }
}

/// The class of the backings of a model class, and how it conforms to `BackingData`.
///
/// The runtime looks both up each time when a function that is generic over the model class makes a backing. So a record
/// keeps them.
struct BackingForm {
    /// The class of the backings.
    let type: ModelState.Type
    private let metadata: UnsafeRawPointer
    private let conformance: UnsafeRawPointer

    init<Model: PersistentModel>(for model: Model.Type) {
        type = ModelBacking<Model>.self
        let type: any BackingData<Model>.Type = ModelBacking<Model>.self
        // The value of a type that conforms to a protocol is the type and its table for the protocol. Without `as` the
        // argument would be the type alone.
        let words = unsafeBitCast(type as any BackingData<Model>.Type, to: (UnsafeRawPointer, UnsafeRawPointer).self)
        (metadata, conformance) = words
    }

    /// A backing of this form as a value of its protocol: three words for the value, the type, and the table.
    @inline(__always)
    func data<Model: PersistentModel>(_ backing: ModelState) -> any BackingData<Model> {
        // The cast counts a reference to the backing. To move the value instead would need to look its type up.
        defer { withExtendedLifetime(backing) {} }
        let value = UnsafeRawPointer(Unmanaged.passUnretained(backing).toOpaque())
        return unsafeBitCast((value, 0, 0, metadata, conformance), to: (any BackingData<Model>).self)
    }
}
