import Expectations
import Foundation
import StrataKeys
import Testing

@Suite("Property lists that may be damaged")
struct DamagedPropertyListTests {
    private static var content: [String: Any] {
        [
            "text": "naïve", "number": 7, "real": 0.5, "flag": true, "date": Date(timeIntervalSinceReferenceDate: 1),
            "data": Data([1, 2]), "list": [1, "two"], "inner": ["key": "value"],
        ]
    }

    private static func binary(_ content: [String: Any] = content) throws -> [UInt8] {
        [UInt8](try PropertyListSerialization.data(fromPropertyList: content, format: .binary, options: 0))
    }

    private static func read(_ bytes: [UInt8]) -> [String: Any]? {
        PropertyListSerialization.dictionary(from: Data(bytes))
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.binary, .xml])
    func `a list of all kinds of values comes back`(_ format: PropertyListSerialization.PropertyListFormat) throws {
        let data = try PropertyListSerialization.data(fromPropertyList: Self.content, format: format, options: 0)
        let read = try require(PropertyListSerialization.dictionary(from: data))
        expect(read["text"] as? String == "naïve" && read["number"] as? Int == 7 && read["real"] as? Double == 0.5)
        expect(read["flag"] as? Bool == true && (read["date"] as? Date)?.timeIntervalSinceReferenceDate == 1)
        expect(read["data"] as? Data == Data([1, 2]) && (read["list"] as? [Any])?.count == 2)
        expectEqual(read["inner"] as? [String: String], ["key": "value"])
    }

    @Test func `what is no dictionary is nothing`() throws {
        let list = try PropertyListSerialization.data(fromPropertyList: [1], format: .binary, options: 0)
        for data in [list, Data(), Data("bplist00".utf8), Data("<plist><dict>".utf8), Data([0xFF, 0xFE])] {
            expect(PropertyListSerialization.dictionary(from: data) == nil)
        }
    }

    @Test func `a set, a fill byte and an unknown kind are refused before Foundation sees them`() throws {
        var bytes = try Self.binary(["a": [1, 2]])
        let array = try require(bytes.firstIndex(of: 0xA2))
        for kind: UInt8 in [0xB2, 0xC2, 0x72, 0x92, 0xE2, 0xF2, 0x0F, 0x00] {
            bytes[array] = kind
            expect(Self.read(bytes) == nil, "\(kind)")
        }
        bytes[array] = 0xA2
        expectEqual(Self.read(bytes)?["a"] as? [Int], [1, 2])
    }

    /// The bytes before the end: the width of offsets, their number, and the place where they begin.
    @Test func `a table of values that does not fit into the file is refused`() throws {
        let bytes = try Self.binary()
        for (place, value) in [(26, 0), (26, 9), (24, 0x7F), (24, 0xFF), (17, 0x7F), (8, 0x80), (2, 0xFF)] {
            var damaged = bytes
            damaged[bytes.count - place] = UInt8(value)
            expect(Self.read(damaged) == nil, "\(place) bytes before the end")
        }
        expect(Self.read(Array(bytes.dropLast(1))) == nil)
    }

    @Test func `no single byte that is changed, and no end that is missing, stops the program`() throws {
        let bytes = try Self.binary()
        for place in bytes.indices {
            for change: UInt8 in [0x01, 0x10, 0x7F, 0x80, 0xFF] {
                var damaged = bytes
                damaged[place] ^= change
                _ = Self.read(damaged)
            }
            _ = Self.read(Array(bytes.prefix(place)))
        }
        expectEqual(Self.read(bytes)?.count, Self.content.count)
    }
}
