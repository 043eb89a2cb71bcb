/// The place of a slot's value in a row, in a form that can be passed on without counting references.
package struct ValuePlace: Sendable {
    /// The slot's position.
    package let index: Int
    /// The first of the value's words in the row.
    package let word: Int
    package let kind: SlotKind
    package let type: AttributeType

    package init(_ slot: Slot) {
        (index, word, kind, type) = (slot.index, slot.word, slot.kind, slot.type)
    }
}

/// The places of an entity's slots by name, for code that looks a name up for each value.
///
/// It compares bytes, which takes a third of the time of a dictionary of strings. So it does not find a name that is
/// spelled with other code points than the model's. Its memory lives as long as the layout, that is for ever.
///
/// A string of up to 15 bytes mostly lies in its two words. So the words of a name are looked up first, which takes a few
/// instructions. Whatever form a string has, two strings with the same words are equal; if the words are not found, then the
/// bytes decide.
struct NamedPlaces: @unchecked Sendable {
    // @unchecked Sendable: the memory is written by the initialiser only.
    /// The memory of a string.
    private typealias Words = (first: UInt64, second: UInt64)

    private struct KnownWords {
        let words: Words
        let place: ValuePlace
    }

    private struct Entry {
        let name: UnsafeRawBufferPointer
        let place: ValuePlace
    }

    /// The entries at the positions of their hashes, or at the next free ones; a power of two, at least a third free.
    private let entries: UnsafeMutableBufferPointer<Entry?>
    /// The same for the words of the names.
    private let knownWords: UnsafeMutableBufferPointer<KnownWords?>
    /// The strings with these words, so that no other strings ever get them.
    private let names: [String]

    init(_ slots: [Slot]) {
        var size = 4
        while size * 2 < slots.count * 3 + 3 { size *= 2 }
        entries = .allocate(capacity: size)
        entries.initialize(repeating: nil)
        knownWords = .allocate(capacity: size)
        knownWords.initialize(repeating: nil)
        var names: [String] = []
        for slot in slots {
            let name = UnsafeMutableRawBufferPointer.allocate(byteCount: slot.name.utf8.count, alignment: 1)
            name.copyBytes(from: slot.name.utf8)
            let bytes = UnsafeRawBufferPointer(name)
            var position = Self.hash(bytes) & (size - 1)
            while entries[position] != nil { position = (position + 1) & (size - 1) }
            entries[position] = Entry(name: bytes, place: ValuePlace(slot))

            // A new string has the form that other code is likely to pass.
            let copy = String(decoding: bytes, as: UTF8.self)
            names.append(copy)
            let words = unsafeBitCast(copy, to: Words.self)
            position = Self.hash(words) & (size - 1)
            while knownWords[position] != nil { position = (position + 1) & (size - 1) }
            knownWords[position] = KnownWords(words: words, place: ValuePlace(slot))
        }
        self.names = names
    }

    /// The place of the slot with exactly this name.
    func place(named name: String) -> ValuePlace? {
        let words = unsafeBitCast(name, to: Words.self)
        let mask = knownWords.count - 1
        var position = Self.hash(words) & mask
        while let known = knownWords.baseAddress.unsafelyUnwrapped[position] {
            if known.words == words { return known.place }
            position = (position + 1) & mask
        }
        return placeByBytes(named: name)
    }

    @inline(never)
    private func placeByBytes(named name: String) -> ValuePlace? {
        name.utf8.withContiguousStorageIfAvailable { find(UnsafeRawBufferPointer($0)) } ?? nil
    }

    @inline(__always)
    private func find(_ name: UnsafeRawBufferPointer) -> ValuePlace? {
        let mask = entries.count - 1
        var position = Self.hash(name) & mask
        while let entry = entries[position] {
            if Self.areEqual(entry.name, name) { return entry.place }
            position = (position + 1) & mask
        }
        return nil
    }

    @inline(__always)
    private static func hash(_ words: Words) -> Int {
        Int(truncatingIfNeeded: mixed(words.first ^ words.second &* 0x9E37_79B9_7F4A_7C15) >> 32)
    }

    /// A number that depends on all bytes, eight of them at a time.
    @inline(__always)
    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hash = UInt64(truncatingIfNeeded: bytes.count) &* 0x9E37_79B9_7F4A_7C15
        var offset = 0
        while offset + 8 <= bytes.count {
            hash = mixed(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        if offset < bytes.count { hash = mixed(hash ^ end(bytes)) }
        return Int(truncatingIfNeeded: hash >> 32)
    }

    /// The last eight bytes, some of which may have been looked at; or all, if they are fewer.
    @inline(__always)
    private static func end(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        if count >= 8 { return bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self) }
        if count >= 4 {
            let first = bytes.loadUnaligned(as: UInt32.self)
            let last = bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return UInt64(first) << 32 | UInt64(last)
        }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    @inline(__always)
    private static func mixed(_ value: UInt64) -> UInt64 {
        let product = value &* 0x9E37_79B9_7F4A_7C15
        return product ^ product >> 29
    }

    @inline(__always)
    private static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count else { return false }
        var offset = 0
        while offset + 8 <= left.count {
            let word = left.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            guard word == right.loadUnaligned(fromByteOffset: offset, as: UInt64.self) else { return false }
            offset += 8
        }
        return offset == left.count || end(left) == end(right)
    }
}

extension Row {
    /// The place of the slot of that name, if the property is stored in the row.
    package func place(named name: String) -> ValuePlace? {
        withExtendedLifetime(buffer) {
            unsafe.header.pointee.layout._withUnsafeGuaranteedRef { $0.place(named: name) }
        }
    }
}

extension EntityLayout {
    /// The place of the slot of that name, if the property is stored in rows.
    @inline(__always)
    func place(named name: String) -> ValuePlace? {
        placesByName.place(named: name) ?? slot(named: name).map(ValuePlace.init)
    }
}
