import Foundation

extension NSObject {
    /// Whether `object` is this very object, for classes whose objects are equal only to themselves.
    ///
    /// Each set of objects asks this for one object in two. A cast of an `Any` to a class would ask the runtime.
    @inline(__always)
    final func isSame(as object: Any?) -> Bool {
        guard let object else { return false }
        guard Swift.type(of: object) == Swift.type(of: self) else { return (object as AnyObject) === self }
        // The type is a class, so the memory of the value begins with the reference.
        return withUnsafeBytes(of: object) { $0.load(as: UnsafeRawPointer.self) }
            == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }
}
