/// The differences between strings that a comparison ignores.
///
/// The letters after an operator, `[cd]`, select them.
///
/// Without folding, strings are compared by their UTF-8 bytes, which is the order of their code points: `é` written as
/// one character differs from `e` with a combining accent. Any folding makes the two spellings the same first.
///
/// - `case`: full Unicode case folding, so `ß` equals `ss`; the dotless `ı` stays itself.
/// - `diacritics`: accents of Latin, Greek and Cyrillic letters do not count; marks that make another letter in other
///   scripts, such as the Japanese voiced sound mark, do.
/// - `canonical`: only the two spellings, for `[l]`.
///
/// Folding uses no locale, so an answer does not depend on the machine. ASCII is folded in place, without an
/// allocation.
package struct StringFolding: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let `case` = StringFolding(rawValue: 1)
    package static let diacritics = StringFolding(rawValue: 2)
    package static let canonical = StringFolding(rawValue: 4)

    package init(_ options: NSComparisonPredicate.Options) {
        self = []
        if options.contains(.normalized) { return }
        if options.contains(.caseInsensitive) { insert(.case) }
        if options.contains(.diacriticInsensitive) { insert(.diacritics) }
        if options.contains(.localeSensitive) { insert(.canonical) }
    }

    /// The folded form: two strings are the same under this folding if their folded forms have the same bytes.
    package func fold(_ string: String) -> String {
        guard !isEmpty else { return string }
        if withBytes(of: string, isASCII) {
            guard contains(.case) else { return string }
            return withBytes(of: string, foldASCII)
        }
        return foldUnicode(string)
    }

    /// The folded form of UTF-8 text; invalid text is repaired first.
    package func fold(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        guard contains(.case), isASCII(bytes) else { return fold(String(decoding: bytes, as: UTF8.self)) }
        return foldASCII(bytes)
    }

    package func areEqual(_ lhs: String, _ rhs: String) -> Bool {
        withBytes(of: lhs) { left in withBytes(of: rhs) { right in areEqual(left, right) } }
    }

    package func areEqual(_ lhs: UnsafeBufferPointer<UInt8>, _ rhs: UnsafeBufferPointer<UInt8>) -> Bool {
        if equalBytes(lhs, rhs) { return true }
        if isEmpty { return false }
        return order(lhs, rhs) == 0
    }

    /// The order of the bytes of the folded forms: negative, zero or positive.
    package func order(_ lhs: String, _ rhs: String) -> Int {
        withBytes(of: lhs) { left in withBytes(of: rhs) { right in order(left, right) } }
    }

    /// The order of the bytes of the folded forms: negative, zero or positive.
    package func order(_ lhs: UnsafeBufferPointer<UInt8>, _ rhs: UnsafeBufferPointer<UInt8>) -> Int {
        if isEmpty { return byteOrder(UnsafeRawBufferPointer(lhs), UnsafeRawBufferPointer(rhs)) }
        if isASCII(lhs), isASCII(rhs) {
            guard contains(.case) else { return byteOrder(UnsafeRawBufferPointer(lhs), UnsafeRawBufferPointer(rhs)) }
            return orderIgnoringASCIICase(lhs, rhs)
        }
        let left = fold(String(decoding: lhs, as: UTF8.self))
        let right = fold(String(decoding: rhs, as: UTF8.self))
        return withBytes(of: left) { left in
            withBytes(of: right) { byteOrder(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer($0)) }
        }
    }

    private func foldUnicode(_ string: String) -> String {
        var options: String.CompareOptions = []
        if contains(.case) { options.insert(.caseInsensitive) }
        if contains(.diacritics) { options.insert(.diacriticInsensitive) }
        // Composition comes last, so that a folded letter is one code point if Unicode has one, as LIKE's `?` expects.
        guard !options.isEmpty else { return string.precomposedStringWithCanonicalMapping }
        return string.precomposedStringWithCanonicalMapping.folding(options: options, locale: nil)
            .precomposedStringWithCanonicalMapping
    }
}

// MARK: - ASCII

/// Whether no byte has its high bit set; it checks eight bytes at a time.
package func isASCII(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let base = bytes.baseAddress else { return true }
    let raw = UnsafeRawPointer(base)
    var offset = 0
    while offset + 8 <= bytes.count {
        if raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { return false }
        offset += 8
    }
    while offset < bytes.count {
        if bytes[offset] & 0x80 != 0 { return false }
        offset += 1
    }
    return true
}

@inline(__always)
package func foldASCIIByte(_ byte: UInt8) -> UInt8 {
    byte &- 0x41 < 26 ? byte | 0x20 : byte
}

private func foldASCII(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count) { buffer in
        for index in bytes.indices { buffer[index] = foldASCIIByte(bytes[index]) }
        return bytes.count
    }
}

private func orderIgnoringASCIICase(_ lhs: UnsafeBufferPointer<UInt8>, _ rhs: UnsafeBufferPointer<UInt8>) -> Int {
    let common = min(lhs.count, rhs.count)
    for index in 0..<common {
        let left = foldASCIIByte(lhs[index])
        let right = foldASCIIByte(rhs[index])
        if left != right { return left < right ? -1 : 1 }
    }
    return lhs.count < rhs.count ? -1 : (lhs.count == rhs.count ? 0 : 1)
}
