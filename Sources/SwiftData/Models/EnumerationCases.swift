import Swift

/// The cases of enumerations without payloads, as the runtime's metadata lists them.
///
/// The layout of that metadata is part of Swift's stable interface: a type's descriptor is its second word, and refers
/// to the names of the cases by distances from their own places.
enum EnumerationCases {
    /// The names of the cases in their order; `nil` if the type is no enumeration, or a case has a payload.
    static func names(of type: Any.Type) -> [String]? {
        let metadata = unsafeBitCast(type, to: UnsafePointer<UInt>.self)
        guard metadata.pointee == enumerationKind,
            let descriptor = UnsafeRawPointer(bitPattern: metadata[1]),
            let fields = target(of: descriptor + 16)
        else { return nil }
        let (size, count) = (
            Int(fields.load(fromByteOffset: 10, as: UInt16.self)), Int(fields.load(fromByteOffset: 12, as: UInt32.self))
        )
        // More than 256 cases have another layout.
        guard (1...256).contains(count) else { return nil }
        var names: [String] = []
        for index in 0..<count {
            let record = fields + 16 + index * size
            guard record.load(fromByteOffset: 4, as: Int32.self) == 0, let name = target(of: record + 8) else {
                return nil
            }
            names.append(String(cString: name.assumingMemoryBound(to: CChar.self)))
        }
        return names
    }

    /// The index of the case of a value.
    ///
    /// Enumerations without payloads are the indices of their cases.
    static func index(of value: Any) -> Int? {
        func index<Value>(_ value: Value) -> Int? {
            withUnsafeBytes(of: value) { $0.count <= 1 ? Int($0.first ?? 0) : nil }
        }
        return _openExistential(value, do: index)
    }

    /// The value of the case at an index.
    static func value(of type: Any.Type, at index: Int) -> Any? {
        func made<Value>(_ type: Value.Type) -> Any? {
            guard MemoryLayout<Value>.size <= 1 else { return nil }
            let memory = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
            defer { memory.deallocate() }
            memory.storeBytes(of: UInt8(index), as: UInt8.self)
            return memory.assumingMemoryBound(to: type).pointee
        }
        return _openExistential(type, do: made)
    }

    private static let enumerationKind: UInt = 0x201

    /// The place to which a distance refers; `nil` for none.
    private static func target(of place: UnsafeRawPointer) -> UnsafeRawPointer? {
        let distance = place.load(as: Int32.self)
        return distance == 0 ? nil : place + Int(distance)
    }
}
