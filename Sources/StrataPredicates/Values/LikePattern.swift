/// A pattern of `LIKE`, taken apart: code points, "any one" and "any number".
package struct LikePattern: Sendable {
    // Beyond the last code point.
    private static let anyOne: UInt32 = 0x11_0000
    private static let anyNumber: UInt32 = 0x11_0001

    private let elements: [UInt32]

    package init(_ pattern: String) {
        var elements: [UInt32] = []
        var isQuoted = false
        for scalar in pattern.unicodeScalars {
            if isQuoted {
                elements.append(scalar.value)
                isQuoted = false
                continue
            }
            switch scalar {
            case "\\": isQuoted = true
            case "?": elements.append(Self.anyOne)
            // Neighbouring stars are one, which keeps the search below from trying the same thing twice.
            case "*": if elements.last != Self.anyNumber { elements.append(Self.anyNumber) }
            default: elements.append(scalar.value)
            }
        }
        if isQuoted { elements.append(Unicode.Scalar("\\").value) }
        self.elements = elements
    }

    /// Whether the pattern covers the whole text.
    ///
    /// - Complexity: O(*n* · *m*) at worst: on a mismatch only the last star is tried again.
    package func matches(_ text: UnsafeBufferPointer<UInt8>, ignoringASCIICase: Bool) -> Bool {
        if isASCII(text) {
            return covers(text.count) { index in
                UInt32(ignoringASCIICase ? foldASCIIByte(text[index]) : text[index])
            }
        }
        let scalars = String(decoding: text, as: UTF8.self).unicodeScalars.map(\.value)
        return covers(scalars.count) { scalars[$0] }
    }

    @inline(__always)
    private func covers(_ count: Int, _ scalar: (Int) -> UInt32) -> Bool {
        var position = 0
        var element = 0
        var retryElement = -1
        var retryPosition = 0
        while position < count {
            if element < elements.count, elements[element] == Self.anyNumber {
                element += 1
                retryElement = element
                retryPosition = position
            } else if element < elements.count,
                elements[element] == Self.anyOne || elements[element] == scalar(position)
            {
                element += 1
                position += 1
            } else if retryElement >= 0 {
                retryPosition += 1
                position = retryPosition
                element = retryElement
            } else {
                return false
            }
        }
        while element < elements.count, elements[element] == Self.anyNumber { element += 1 }
        return element == elements.count
    }
}
