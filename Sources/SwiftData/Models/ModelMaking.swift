import Foundation

/// The backing of the model object that the current thread makes of a managed object.
///
/// `init(backingData:)` first makes a backing and puts the initial values of the properties into it, as every initialiser
/// of the class does. Instead it gets the backing that it is going to have, which takes no values meanwhile.
enum ModelMaking {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0, "SwiftData needs a thread-local key, and the process has used up all: \(status)")
        return key
    }()

    /// Makes a model object, whose values are in a backing.
    static func make<Model: PersistentModel>(_ backing: ModelBacking<Model>) -> Model {
        let outer = pthread_getspecific(key)
        pthread_setspecific(key, Unmanaged.passUnretained(backing).toOpaque())
        backing.isBeingMade = true
        defer {
            backing.isBeingMade = false
            pthread_setspecific(key, outer)
        }
        return Model(backingData: backing)
    }

    /// The backing of the object that is being made, for the first call, if it has a class.
    static func backing<Model: PersistentModel>(of type: Model.Type) -> ModelBacking<Model>? {
        guard let current = pthread_getspecific(key) else { return nil }
        let state = Unmanaged<ModelState>.fromOpaque(current).takeUnretainedValue()
        guard let backing = state as? ModelBacking<Model> else { return nil }
        // Initial values may be other objects, which need a backing each.
        pthread_setspecific(key, nil)
        return backing
    }
}
