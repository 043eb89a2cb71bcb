import CoreData
import Foundation

/// The managed object of a model object.
final class ModelObject: NSManagedObject {
    /// The place of the model object, which an unowned reference keeps from being used for something else.
    ///
    /// The lowest bit, which no place of an object has, is set if the model object has left. The program may bring it
    /// back by undo.
    private var place: UInt = 0
    /// The model object, if the functions of the runtime cannot be found.
    private weak var weakModel: AnyObject?

    /// The model object, which lives as long as the program or an unsaved change holds it; used inside the scope of the
    /// context.
    ///
    /// It is not a `weak` property: the first weak reference to an object makes a table beside it, which takes 48 bytes,
    /// and from then on each count of a reference goes by the table.
    var model: AnyObject? {
        get {
            guard let runtime = UnownedReferences.shared else { return weakModel }
            // The last reference may end on another thread at the same time; then there is no object any more.
            guard let pointer = Self.pointer(place), let object = runtime.tryRetain(pointer) else { return nil }
            return Unmanaged<AnyObject>.fromOpaque(object).takeRetainedValue()
        }
        set {
            guard let runtime = UnownedReferences.shared else { return weakModel = newValue }
            let former = Self.pointer(place)
            place = newValue.map { UInt(bitPattern: Unmanaged.passUnretained($0).toOpaque()) } ?? 0
            if let new = Self.pointer(place) { _ = runtime.retain(new) }
            if let former { runtime.release(former) }
        }
    }

    /// The model object if it lives and surely leads here; used inside the scope of the context.
    var leadingModel: AnyObject? { place & 1 == 0 ? model : nil }

    /// Whether it has surely had no model object yet; used inside the scope of the context.
    var hasHadNoModel: Bool { place == 0 && UnownedReferences.shared != nil }

    /// Sets the model object; it takes fewer steps if there was none before.
    func setFirstModel(_ model: AnyObject) {
        // A class with initial values may have set it meanwhile.
        guard place == 0, let runtime = UnownedReferences.shared else { return self.model = model }
        let pointer = UnsafeRawPointer(Unmanaged.passUnretained(model).toOpaque())
        place = UInt(bitPattern: pointer)
        _ = runtime.retain(pointer)
    }

    /// Notes that the model object may lead elsewhere from now on.
    func loseModel() { place |= 1 }

    /// Notes that the model object was found to lead here.
    func keepModel() { place &= ~1 }

    private static func pointer(_ place: UInt) -> UnsafeRawPointer? { UnsafeRawPointer(bitPattern: place & ~1) }

    deinit {
        if let pointer = Self.pointer(place) { UnownedReferences.shared?.release(pointer) }
    }
}

/// Functions of the Swift runtime, which the compiler calls for `unowned` properties.
///
/// Reading an `unowned` property stops the program if the object has ended, and no property gives nil without a table.
private struct UnownedReferences: Sendable {
    let tryRetain: @convention(c) (UnsafeRawPointer) -> UnsafeRawPointer?
    let retain: @convention(c) (UnsafeRawPointer) -> UnsafeRawPointer?
    let release: @convention(c) (UnsafeRawPointer) -> Void

    /// The functions; `nil` if the program does not export them, as when the runtime is a part of it.
    static let shared: UnownedReferences? = {
        guard let tryRetain = dlsym(nil, "swift_tryRetain"), let retain = dlsym(nil, "swift_unownedRetain"),
            let release = dlsym(nil, "swift_unownedRelease")
        else { return nil }
        return UnownedReferences(
            tryRetain: unsafeBitCast(tryRetain, to: (@convention(c) (UnsafeRawPointer) -> UnsafeRawPointer?).self),
            retain: unsafeBitCast(retain, to: (@convention(c) (UnsafeRawPointer) -> UnsafeRawPointer?).self),
            release: unsafeBitCast(release, to: (@convention(c) (UnsafeRawPointer) -> Void).self)
        )
    }()
}
