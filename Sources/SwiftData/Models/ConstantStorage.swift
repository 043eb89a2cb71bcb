import StrataLocks
@_spi(Reflection) import Swift

/// The memory of constants in model objects.
///
/// A `let` with an initial value has no accessors, and its initial value is in the object before the row is known.
enum ConstantStorage {
    private struct Place: Hashable {
        let type: ObjectIdentifier
        let name: String
    }

    private static let offsets = Locked<[Place: Int]>([:])

    /// Writes the value of a constant that a class declares.
    @inline(never)
    static func write<Value>(_ value: Value, named name: String, of type: AnyClass, to object: AnyObject) {
        guard let offset = offset(of: name, in: type, as: Value.self) else {
            fatalError("SwiftData: \(type).\(name) is not stored in its object.")
        }
        let place = Unmanaged.passUnretained(object).toOpaque() + offset
        place.assumingMemoryBound(to: Value.self).pointee = value
    }

    private static func offset<Value>(of name: String, in type: AnyClass, as value: Value.Type) -> Int? {
        let place = Place(type: ObjectIdentifier(type), name: name)
        if let offset = offsets.withLock({ $0[place] }) { return offset }
        var found: Int?
        // The option for classes.
        _ = _forEachField(of: type, options: .init(rawValue: 1)) { field, offset, fieldType, _ in
            guard String(cString: field) == name, fieldType == value else { return true }
            found = offset
            return false
        }
        if let found { offsets.withLock { $0[place] = found } }
        return found
    }
}
