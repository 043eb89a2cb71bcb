/// Searches a text inside of others, in time proportional to their lengths, whatever their contents are.
///
/// The algorithm is that of Knuth, Morris and Pratt: after a mismatch, the needle alone shows how much of the text that
/// was read can be the start of another occurrence. So nothing is read twice. A naive search for a million times `a` in
/// a text of many `a` would read it a million times.
struct SubstringSearch: Sendable {
    private let needle: [UInt8]
    private let restarts: [Int32]

    /// Prepares the search for a text that is not empty.
    init(_ needle: String) {
        self.needle = Array(needle.utf8)
        restarts = Self.restarts(for: self.needle[...])
    }

    /// For each beginning of a word, the length of the longest shorter beginning that it ends with.
    static func restarts<Symbol: Equatable>(for word: ArraySlice<Symbol>) -> [Int32] {
        word.withUnsafeBufferPointer { word in
            [Int32](unsafeUninitializedCapacity: word.count) { lengths, count in
                var length = 0
                for index in word.indices {
                    if index > 0 {
                        while length > 0, word[index] != word[length] { length = Int(lengths[length - 1]) }
                        if word[index] == word[length] { length += 1 }
                    }
                    lengths.initializeElement(at: index, to: Int32(length))
                }
                count = word.count
            }
        }
    }

    /// Whether the needle occurs in UTF-8 text.
    func occurs(in text: UnsafeBufferPointer<UInt8>, ignoringASCIICase: Bool) -> Bool {
        needle.withUnsafeBufferPointer { needle in
            restarts.withUnsafeBufferPointer { restarts in
                ignoringASCIICase
                    ? Self.occurs(needle, restarts, in: text, foldASCIIByte) : Self.occurs(needle, restarts, in: text)
            }
        }
    }

    private static func occurs(
        _ needle: UnsafeBufferPointer<UInt8>,
        _ restarts: UnsafeBufferPointer<Int32>,
        in text: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard let start = text.baseAddress, text.count >= needle.count else { return false }
        var position = 0
        // Most bytes are not the first of the needle, and the C library skips many of them at a time.
        while let found = memchr(start + position, Int32(needle[0]), text.count - position) {
            position = UnsafeRawPointer(start).distance(to: found)
            guard let next = advance(needle, restarts, text, from: position, { $0 }) else { return true }
            guard next < text.count else { return false }
            position = next
        }
        return false
    }

    private static func occurs(
        _ needle: UnsafeBufferPointer<UInt8>,
        _ restarts: UnsafeBufferPointer<Int32>,
        in text: UnsafeBufferPointer<UInt8>,
        _ folded: (UInt8) -> UInt8
    ) -> Bool {
        guard text.count >= needle.count else { return false }
        var position = 0
        while position < text.count {
            if folded(text[position]) == needle[0] {
                guard let next = advance(needle, restarts, text, from: position, folded) else { return true }
                position = next
            } else {
                position += 1
            }
        }
        return false
    }

    /// Reads on from a byte that begins the needle.
    ///
    /// - Returns: The place at which no part of the needle matches any more, so that its first byte has to be searched
    ///   again; `nil` if the needle was found.
    @inline(__always)
    private static func advance(
        _ needle: UnsafeBufferPointer<UInt8>,
        _ restarts: UnsafeBufferPointer<Int32>,
        _ text: UnsafeBufferPointer<UInt8>,
        from start: Int,
        _ folded: (UInt8) -> UInt8
    ) -> Int? {
        var matched = 1
        var position = start + 1
        while matched < needle.count {
            guard text.count - position >= needle.count - matched else { return text.count }
            let byte = folded(text[position])
            while matched > 0, needle[matched] != byte { matched = Int(restarts[matched - 1]) }
            if needle[matched] == byte { matched += 1 }
            position += 1
            if matched == 0 { return position }
        }
        return nil
    }
}
