/// Bytes that values are appended to, one after the other.
///
/// To append eight bytes to an array of bytes takes longer than to read a row. Copies share the bytes until one of them
/// grows.
struct GrowingBytes: @unchecked Sendable {
    // @unchecked Sendable: the bytes are changed only when they are uniquely referenced, as in an array.

    private final class Storage {
        @exclusivity(unchecked) var start: UnsafeMutableRawPointer
        @exclusivity(unchecked) var count = 0
        @exclusivity(unchecked) var capacity: Int

        init(capacity: Int) {
            self.capacity = capacity
            start = .allocate(byteCount: capacity, alignment: 8)
        }

        deinit { start.deallocate() }
    }

    /// `nil` while there are no bytes.
    private var storage: Storage?

    var count: Int { storage?.count ?? 0 }

    var isEmpty: Bool { count == 0 }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        guard let storage else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return try body(UnsafeRawBufferPointer(start: storage.start, count: storage.count))
    }

    mutating func reserveCapacity(_ capacity: Int) {
        if storage == nil, capacity > 0 { storage = Storage(capacity: capacity) }
    }

    /// Makes the bytes longer.
    ///
    /// - Returns: The place where the caller has to write the new bytes, before it does anything else.
    @inline(__always)
    mutating func grow(by size: Int) -> UnsafeMutableRawPointer {
        if !isKnownUniquelyReferenced(&storage) || (storage?.capacity ?? 0) - count < size { makeRoom(for: size) }
        guard let storage else { preconditionFailure("room was made") }
        defer { storage.count += size }
        return storage.start + storage.count
    }

    @inline(never)
    private mutating func makeRoom(for size: Int) {
        let new = Storage(capacity: max(64, (count + size) * 2))
        withBytes { old in
            if let base = old.baseAddress { new.start.copyMemory(from: base, byteCount: old.count) }
            new.count = old.count
        }
        storage = new
    }

    /// Appends bytes that are somewhere else.
    @inline(__always)
    mutating func append(contentsOf bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        grow(by: bytes.count).copyMemory(from: base, byteCount: bytes.count)
    }

    @inline(__always)
    mutating func append(bigEndian value: some FixedWidthInteger) {
        grow(by: value.bitWidth / 8).storeBytes(of: value.bigEndian, as: type(of: value))
    }
}

extension GrowingBytes: Hashable {
    static func == (left: GrowingBytes, right: GrowingBytes) -> Bool {
        left.withBytes { left in right.withBytes { left.elementsEqual($0) } }
    }

    func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: $0) } }
}
