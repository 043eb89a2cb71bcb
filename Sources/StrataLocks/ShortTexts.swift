/// Texts of up to 15 ASCII bytes, made without a call.
///
/// A string of that length lies in its own two words: the bytes, and in the last byte a mark with their number. The
/// standard library makes such a string in some 130 instructions, and to fill two words takes some 40. Nothing promises
/// this form. So it is compared with strings of the standard library once in each process, and is not used if one of
/// them differs.
///
/// It is public for the sake of inlining, as everything that is used for each value.
public enum ShortTexts {
    /// The words of a string.
    public typealias Words = (first: UInt64, second: UInt64)

    /// Whether strings of the standard library have these words.
    public static let haveKnownForm: Bool = {
        guard MemoryLayout<String>.size == MemoryLayout<Words>.size, 1.littleEndian == 1 else { return false }
        return (0...15).allSatisfy { count in
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: 0x7F - $0 * 7) }
            let text = String(decoding: bytes, as: UTF8.self)
            return bytes.withUnsafeBytes { words(of: $0).map { $0 == unsafeBitCast(text, to: Words.self) } ?? false }
        }
    }()

    /// The words of a string of these bytes; `nil` if they are too many, or not all ASCII.
    @inlinable
    @inline(__always)
    static func words(of bytes: UnsafeRawBufferPointer) -> Words? {
        let count = bytes.count
        guard count <= 15 else { return nil }
        var words: Words = (0, 0)
        if count >= 8 {
            words.first = bytes.loadUnaligned(as: UInt64.self)
            // The last eight bytes, without those that the first word has.
            let last = bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            words.second = count == 8 ? 0 : last &>> UInt64(truncatingIfNeeded: 128 &- count &* 8)
        } else if count >= 4 {
            let last = UInt64(bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
            // Bytes that both have are the same.
            words.first =
                UInt64(bytes.loadUnaligned(as: UInt32.self)) | last &<< UInt64(truncatingIfNeeded: count &* 8 &- 32)
        } else {
            var index = count
            while index > 0 {
                index &-= 1
                words.first = words.first &<< 8 | UInt64(bytes[index])
            }
        }
        guard (words.first | words.second) & 0x8080_8080_8080_8080 == 0 else { return nil }
        words.second |= (0xE0 | UInt64(truncatingIfNeeded: count)) &<< 56
        return words
    }
}

extension String {
    /// The text of UTF-8 bytes, with invalid ones repaired.
    ///
    /// It is the text of `String(decoding:as:)`, and is made faster if it is short.
    @inlinable
    @inline(__always)
    public init(ofUTF8 bytes: UnsafeBufferPointer<UInt8>) {
        if ShortTexts.haveKnownForm, let words = ShortTexts.words(of: UnsafeRawBufferPointer(bytes)) {
            self = unsafeBitCast(words, to: String.self)
        } else {
            self.init(decoding: bytes, as: UTF8.self)
        }
    }
}
