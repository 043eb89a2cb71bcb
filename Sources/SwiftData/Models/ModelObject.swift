import CoreData

/// The managed object of a model object.
final class ModelObject: NSManagedObject {
    /// The place of the model object, which an unowned reference keeps from being used for something else.
    private var place: UnsafeRawPointer?

    /// The model object, which lives as long as the program or an unsaved change holds it; used inside the scope of the
    /// context.
    ///
    /// It is not a `weak` property: the first weak reference to an object makes a table beside it, which takes 48 bytes,
    /// and from then on each count of a reference goes by the table.
    var model: AnyObject? {
        get {
            // The last reference may end on another thread at the same time; then there is no object any more.
            guard let place, let object = tryRetain(place) else { return nil }
            return Unmanaged<AnyObject>.fromOpaque(object).takeRetainedValue()
        }
        set {
            let new = newValue.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }
            if let new { unownedRetain(new) }
            if let place { unownedRelease(place) }
            place = new
        }
    }

    deinit {
        if let place { unownedRelease(place) }
    }
}

// Functions of the Swift runtime, which the compiler calls for `unowned` and `weak` properties. Reading an `unowned`
// property stops the program if the object has ended, and there is no such property that gives nil.

@_silgen_name("swift_tryRetain")
private func tryRetain(_ object: UnsafeRawPointer) -> UnsafeRawPointer?

@_silgen_name("swift_unownedRetain")
@discardableResult
private func unownedRetain(_ object: UnsafeRawPointer) -> UnsafeRawPointer

@_silgen_name("swift_unownedRelease")
private func unownedRelease(_ object: UnsafeRawPointer)
