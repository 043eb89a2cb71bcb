import Foundation

/// The backing of the model object that the current thread makes of a managed object.
///
/// `init(backingData:)` first makes a backing and puts the initial values of the properties into it, as every initialiser
/// of the class does. Instead it gets the backing that it is going to have, which takes no values meanwhile.
struct ModelMaking {
    /// The class of the object.
    private let type: ObjectIdentifier
    /// The backing, an `any BackingData` of the class. `make` has it, which waits for the object.
    private let data: UnsafeRawPointer

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0, "SwiftData needs a thread-local key, and the process has used up all: \(status)")
        return key
    }()

    /// Makes a model object, whose values are in a backing.
    static func make<Model: PersistentModel>(_ backing: ModelBacking<Model>) -> Model {
        let outer = pthread_getspecific(key)
        backing.isBeingMade = true
        defer {
            backing.isBeingMade = false
            pthread_setspecific(key, outer)
        }
        let data: any BackingData<Model> = backing
        return withUnsafePointer(to: data) { pointer in
            var making = ModelMaking(type: ObjectIdentifier(Model.self), data: pointer)
            return withUnsafePointer(to: &making) { making in
                pthread_setspecific(key, making)
                return Model(backingData: data)
            }
        }
    }

    /// The backing of the object that is being made, for the first call, if it has a class.
    static func data<Model: PersistentModel>(of type: Model.Type) -> (any BackingData<Model>)? {
        guard let current = pthread_getspecific(key) else { return nil }
        let making = current.assumingMemoryBound(to: ModelMaking.self).pointee
        guard making.type == ObjectIdentifier(type) else { return nil }
        // Initial values may be other objects, which need a backing each.
        pthread_setspecific(key, nil)
        return making.data.assumingMemoryBound(to: (any BackingData<Model>).self).pointee
    }

    /// The same for code that needs to have the type of the backing.
    static func backing<Model: PersistentModel>(of type: Model.Type) -> ModelBacking<Model>? {
        data(of: type) as? ModelBacking<Model>
    }
}
