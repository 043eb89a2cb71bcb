import Expectations
import StrataLocks
import Testing

@Suite("Texts made of their bytes")
struct ShortTextsTests {
    private func make(_ bytes: [UInt8]) -> String { bytes.withUnsafeBufferPointer { String(ofUTF8: $0) } }

    private func expectSame(_ bytes: [UInt8]) {
        let (made, usual) = (make(bytes), String(decoding: bytes, as: UTF8.self))
        expectEqual(made, usual)
        expectEqual(Array(made.utf8), Array(usual.utf8))
        expectEqual(made.hashValue, usual.hashValue)
        expectEqual(made.count, usual.count)
        var (longer, other) = (made, usual)
        longer += "and more than fits"
        other += "and more than fits"
        expectEqual(longer, other)
    }

    @Test func `short texts have the form that is known`() { expect(ShortTexts.haveKnownForm) }

    @Test func `a text of any length is that of the standard library`() {
        for count in 0...40 {
            expectSame((0..<count).map { UInt8($0 + 33) })
            expectSame([UInt8](repeating: 0, count: count))
            expectSame([UInt8](repeating: 0x7F, count: count))
        }
    }

    @Test func `bytes that are not ASCII at any place are kept, or repaired if they are invalid`() {
        for count in 1...17 {
            for place in 0..<count {
                var bytes = [UInt8](repeating: 0x61, count: count)
                bytes[place] = 0xE9
                expectSame(bytes)
                bytes.replaceSubrange(place...place, with: Array("é".utf8))
                expectSame(bytes)
            }
        }
    }

    @Test func `no byte beyond the text is read`() {
        // The bytes around the text would show in it.
        let around = [UInt8](repeating: 0xFF, count: 8)
        let bytes = around + Array("0123456789abcde".utf8) + around
        for start in 8...23 {
            for end in start...23 {
                let text = bytes.withUnsafeBufferPointer {
                    String(ofUTF8: UnsafeBufferPointer(rebasing: $0[start..<end]))
                }
                expectEqual(text, String(decoding: bytes[start..<end], as: UTF8.self))
            }
        }
    }
}
