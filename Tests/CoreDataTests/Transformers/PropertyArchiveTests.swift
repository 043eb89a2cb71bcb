import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Archives of transformable attributes")
struct PropertyArchiveTests {
    private let attribute = NSAttributeDescription()

    /// Values to archive, by a name, since most are not Sendable.
    private static func value(_ name: String) -> Any {
        let tower: [String: Any] = ["height": 12.5, "floors": [11, 12, 13], "open": true, "name": "Göteborg 🏗"]
        let values: [String: Any] = [
            "string": "naïve 🙂", "empty string": "", "integer": -42, "large integer": UInt64.max, "least": Int64.min,
            "double": 1.5, "true": true, "false": false, "date": Date(timeIntervalSinceReferenceDate: 86400.5),
            "end of time": Date(timeIntervalSinceReferenceDate: .infinity),
            "dates": ["since": Date(timeIntervalSinceReferenceDate: -.infinity)],
            "data": Data(repeating: 7, count: 70_000), "null": NSNull(), "array": ["a", "b", "a"],
            "empty array": [Any](),
            "set": Set([1, 2, 3]), "ordered set": NSOrderedSet(array: ["x", "y"]), "dictionary": tower,
            "integer keys": [1: "a", 2: "b"], "nested": ["towers": [tower, tower]],
            "long array": Array(0..<1000).map { "item \($0)" },
        ]
        switch name {
        case "url": return URL(string: "https://example.org/a%20b?c=d")!  // a constant that is well formed
        case "relative url": return URL(string: "b/c", relativeTo: URL(string: "https://example.org/a/"))!  // as above
        case "uuid": return UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
        default: return values[name] ?? NSNull()
        }
    }

    private static let names = [
        "string", "empty string", "integer", "large integer", "least", "double", "true", "false", "date", "data",
        "null",
        "array", "empty array", "set", "ordered set", "dictionary", "integer keys", "nested", "long array", "url",
        "relative url", "uuid", "end of time", "dates",
    ]

    @Test func `what could not be read back is not archived`() {
        let never = Date(timeIntervalSinceReferenceDate: .nan)
        var deep: Any = URL(filePath: "/a")
        for _ in 0..<PropertyArchive.maximumDepth - 1 { deep = [deep] }
        let values: [Any] = [
            never, [never], ["a": never] as [String: Any], deep,
        ]
        for (index, value) in values.enumerated() { expectEqual(attribute.archived(value), nil, "value \(index)") }
    }

    private static func isEqual(_ one: Any?, _ other: Any) -> Bool {
        one.map { NSArray(array: [$0]) } == NSArray(array: [other])
    }

    @Test(arguments: names) func `a plain value comes back equal`(_ name: String) throws {
        let value = Self.value(name)

        let data = try require(attribute.archived(value))
        let back = try require(attribute.unarchived(data))

        expect(Self.isEqual(back, value))
    }

    @Test(arguments: names) func `Foundation reads what is written here`(_ name: String) throws {
        let value = Self.value(name)

        let data = try require(attribute.archived(value))
        let classes = PropertyArchive.valueClasses + [NSOrderedSet.self]
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClasses: classes, from: data)

        expect(Self.isEqual(back, value))
    }

    @Test(arguments: names) func `what Foundation writes is read here`(_ name: String) throws {
        let value = Self.value(name)

        let data = try NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: true)

        expect(Self.isEqual(attribute.unarchived(data), value))
    }

    @Test(arguments: [
        "0", "1.5", "-1.5", "12345678901234567890.123456789012345678", "1e-100", "-9e120",
        "79228162514264337593543950335",
    ])
    func `decimal numbers keep every digit`(_ text: String) throws {
        let value = try require(Decimal(string: text))

        let inside = try require(attribute.archived(["price": value]).flatMap(attribute.unarchived))
        let alone = try require(attribute.archived(NSDecimalNumber(decimal: value)).flatMap(attribute.unarchived))

        expectEqual(((inside as? [String: Any])?["price"] as? NSDecimalNumber)?.decimalValue, value)
        expectEqual((alone as? NSDecimalNumber)?.decimalValue, value)
    }

    @Test func `truth values and numbers stay apart`() throws {
        let data = try require(attribute.archived([1, true, 0, false] as [Any]))
        let back = try require(attribute.unarchived(data) as? NSArray)

        let codes = back.map { ($0 as? NSNumber).map { String(cString: $0.objCType) } }
        expectEqual(codes.map { $0 == "c" }, [false, true, false, true])
    }

    // MARK: - Classes

    @Test func `values that no archive can hold give nil`() {
        struct Plain {}
        var deep: [Any] = []
        for _ in 0..<200 {
            deep = [deep]
        }

        expectEqual(attribute.archived(Plain()), nil)
        expectEqual(attribute.archived(["a": Plain()]), nil)
        expectEqual(attribute.archived(NSObject()), nil)
        expectEqual(attribute.archived(Unsecured(1)), nil)
        expectEqual(attribute.archived(NSError(domain: "d", code: 1)), nil)
        expectEqual(attribute.archived(deep), nil)
    }

    @Test func `objects with secure coding come back, also inside of collections`() throws {
        let value: [String: Any] = ["points": [Point(1, 2), Point(3, 4)], "price": 12]

        let data = try require(attribute.archived(value))
        let back = try require(attribute.unarchived(data) as? [String: Any])

        expectEqual((back["points"] as? [Point])?.map(\.x), [1, 3])
        let alone = attribute.archived(Point(5, 6)).flatMap(attribute.unarchived) as? Point
        expectEqual(alone?.y, 6)
    }

    @Test func `classes that the program lacks, or that are not allowed, give nil`() throws {
        let unsecured = try NSKeyedArchiver.archivedData(withRootObject: [Unsecured(1)], requiringSecureCoding: false)
        let point = try require(attribute.archived(["a": Point(1, 2)]))
        // The class of the object under a name of the same length that no class has.
        var unknown = point
        let name = Data(NSStringFromClass(Point.self).utf8)
        while let range = unknown.range(of: name) {
            unknown.replaceSubrange(range, with: Data(repeating: UInt8(ascii: "X"), count: name.count))
        }

        expect(attribute.unarchived(unsecured) == nil)
        expect(attribute.unarchived(unknown) == nil)
        attribute.valueTransformerName = "NSSecureUnarchiveFromData"
        expect(attribute.unarchived(point) == nil)
        expectEqual(attribute.archived(["a": Point(1, 2)]), nil)
        expect(unknown != point)
        attribute.valueTransformerName = "NSKeyedUnarchiveFromData"
        expectEqual((attribute.unarchived(unsecured) as? [Unsecured])?.first?.x, 1)
    }

    // MARK: - Hostile data

    @Test func `data that is no archive gives nil`() throws {
        let list = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .binary, options: 0)

        for data in [Data(), Data([0]), Data("bplist00".utf8), Data(repeating: 0xFF, count: 100), list] {
            expect(attribute.unarchived(data) == nil)
        }
    }

    @Test(arguments: ["nested", "ordered set", "relative url", "integer keys"])
    func `damaged archives never stop the program`(_ name: String) throws {
        let data = try require(attribute.archived(Self.value(name)))
        var random = SystemRandomNumberGenerator()

        for length in 0..<data.count {
            _ = attribute.unarchived(data.prefix(length))
        }
        for _ in 0..<3000 {
            var damaged = data
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                damaged[Int.random(in: 0..<data.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            _ = attribute.unarchived(damaged)
        }
    }

    @Test func `an archive whose objects contain themselves gives nil`() {
        expect(attribute.unarchived(Self.archive { array, list in [array, list] }) == nil)
    }

    @Test func `an archive that stands for billions of values gives nil`() throws {
        // Each array holds the next one twice.
        var list = BinaryPropertyList()
        var objects = [list.append(.string("$null"))]
        let chain = list.append(.array([list.append(.string("NSArray"))]))
        let name = list.append(.string("NSArray"))
        objects.append(list.append(.dictionary(["$classname": name, "$classes": chain])))
        let classReference = list.append(.uid(1))
        for level in 2..<60 {
            let next = list.append(.uid(level + 1))
            let parts = list.append(.array([next, next]))
            objects.append(list.append(.dictionary(["$class": classReference, "NS.objects": parts])))
        }
        objects.append(list.append(.string("end")))
        let top = list.append(.dictionary(["root": list.append(.uid(2))]))
        let table = list.append(.array(objects))
        _ = list.append(.dictionary(["$objects": table, "$top": top]))

        expect(attribute.unarchived(list.encoded()) == nil)
    }

    @Test func `a list whose nodes share their bytes is refused`() throws {
        // One array of 200 references that 200 offsets point at: written out it would be 200 times as large.
        let references = [UInt8](repeating: 0, count: 200)
        var bytes = [UInt8]("bplist00".utf8) + [0xAF, 0x10, 200] + references
        let table = bytes.count
        bytes += [UInt8](repeating: 8, count: 200) + [0, 0, 0, 0, 0, 0, 1, 1]
        bytes += [0, 0, 0, 0, 0, 0, 0, 200] + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, UInt8(table)]

        expectThrows(BinaryPropertyList.Malformed.self) { try BinaryPropertyList(Data(bytes)) }
    }

    /// An archive of one object of a class, with fields that are each a value or the numbers of other objects.
    ///
    /// The objects behind it are `text` with the number 3, `NSNull` with 4, and a second text with 5.
    struct Damage: Sendable, CustomTestStringConvertible {
        enum Field: Sendable {
            case uid(Int)
            case uids([Int])
            case text(String)
            case data([UInt8])
            case integer(Int64)
            case real(Double)
        }

        let name: String
        let fields: [String: Field]
        /// How the value describes itself if there is one.
        var value: String?
        var testDescription: String { "\(name) \(fields)" }

        init(_ name: String, _ fields: [String: Field], _ value: String? = nil) {
            self.name = name
            self.fields = fields
            self.value = value
        }

        var archive: Data {
            var list = BinaryPropertyList()
            var own: [String: Int] = ["$class": list.append(.uid(2))]
            for (key, field) in fields {
                switch field {
                case .uid(let number): own[key] = list.append(.uid(number))
                case .uids(let numbers): own[key] = list.append(.array(numbers.map { list.append(.uid($0)) }))
                case .text(let text): own[key] = list.append(.string(text))
                case .data(let bytes): own[key] = list.append(.data(Data(bytes)))
                case .integer(let number): own[key] = list.append(.integer(number))
                case .real(let number): own[key] = list.append(.real(number))
                }
            }
            func type(_ name: String) -> Int {
                let text = list.append(.string(name))
                return list.append(.dictionary(["$classname": text, "$classes": list.append(.array([text]))]))
            }
            let objects = [
                list.append(.string("$null")), list.append(.dictionary(own)), type(name), list.append(.string("text")),
                list.append(.dictionary(["$class": list.append(.uid(6))])), list.append(.string("more")),
                type("NSNull"),
            ]
            let top = list.append(.dictionary(["root": list.append(.uid(1))]))
            let table = list.append(.array(objects))
            _ = list.append(.dictionary(["$objects": table, "$top": top]))
            return list.encoded()
        }
    }

    static let damages = [
        Damage("NSDictionary", ["NS.keys": .uids([3, 5]), "NS.objects": .uids([5, 3])], "2 entries"),
        Damage("NSDictionary", ["NS.keys": .uids([3, 5]), "NS.objects": .uids([5])]),
        Damage("NSDictionary", ["NS.keys": .uids([3]), "NS.objects": .uids([5, 3])]),
        Damage("NSMutableDictionary", ["NS.keys": .uids([3, 5]), "NS.objects": .uids([5])]),
        Damage("NSDictionary", ["NS.keys": .uids([]), "NS.objects": .uids([3])]),
        Damage("NSDictionary", ["NS.objects": .uids([3])]),
        Damage("NSDictionary", ["NS.keys": .uids([3])]),
        Damage("NSDictionary", ["NS.keys": .uids([99]), "NS.objects": .uids([3])]),
        Damage("NSDictionary", ["NS.keys": .uids([3]), "NS.objects": .uids([99])]),
        Damage("NSDictionary", ["NS.keys": .uids([1]), "NS.objects": .uids([3])]),
        Damage("NSArray", ["NS.objects": .uids([3, 5])], "2 members"),
        Damage("NSArray", ["NS.object.0": .uid(3), "NS.object.1": .uid(5), "NS.object.3": .uid(3)], "2 members"),
        Damage("NSArray", ["NS.objects": .uids([3, 99])]),
        Damage("NSSet", ["NS.objects": .uids([3, 3])], "1 members"),
        Damage("NSSet", ["NS.objects": .uids([1])]),
        Damage("NSOrderedSet", ["NS.object.0": .uid(3), "NS.object.1": .uid(99)]),
        Damage("NSDate", ["NS.time": .real(86400)], "a date"),
        Damage("NSDate", ["NS.time": .real(.infinity)], "a date"),
        Damage("NSDate", ["NS.time": .real(.nan)]),
        Damage("NSDate", ["NS.time": .text("1")]),
        Damage("NSDate", [:]),
        Damage("NSUUID", ["NS.uuidbytes": .data(Array(repeating: 0, count: 15))]),
        Damage("NSUUID", ["NS.uuidbytes": .data(Array(repeating: 0, count: 17))]),
        Damage("NSUUID", ["NS.uuidbytes": .text("0000000000000000")]),
        Damage("NSString", ["NS.bytes": .data([0xFF, 0xFE])]),
        Damage("NSString", ["NS.string": .integer(1)]),
        Damage("NSData", ["NS.data": .text("a")]),
        Damage("NSNumber", ["NS.intval": .text("1")]),
        Damage("NSURL", ["NS.relative": .uid(3)], "text"),
        Damage("NSURL", ["NS.relative": .uid(4)]),
        Damage("NSURL", ["NS.relative": .uid(99)]),
        Damage("NSURL", ["NS.relative": .uid(3), "NS.base": .uid(5)]),
        Damage("NSURL", ["NS.relative": .uid(3), "NS.base": .uid(1)]),
        Damage("NSURL", ["NS.base": .uid(0)]),
    ]

    @Test(arguments: damages)
    func `an object with parts that do not fit gives nil, and never half a value`(_ damage: Damage) {
        let value = attribute.unarchived(damage.archive)
        let shown: String? =
            switch value {
            case let dictionary as NSDictionary: "\(dictionary.count) entries"
            case let array as NSArray: "\(array.count) members"
            case let set as NSSet: "\(set.count) members"
            case let url as URL: url.relativeString
            case is Date: "a date"
            case nil: nil
            case let other?: "\(other)"
            }
        expectEqual(shown, damage.value)
    }

    /// An archive of one array, whose elements are given by number: `array` is its own.
    private static func archive(_ elements: (_ array: Int, _ text: Int) -> [Int]) -> Data {
        var list = BinaryPropertyList()
        let name = list.append(.string("NSArray"))
        let parts = list.append(.array(elements(1, 3).map { list.append(.uid($0)) }))
        let objects = [
            list.append(.string("$null")),
            list.append(.dictionary(["$class": list.append(.uid(2)), "NS.objects": parts])),
            list.append(.dictionary(["$classname": name, "$classes": list.append(.array([name]))])),
            list.append(.string("text")),
        ]
        let top = list.append(.dictionary(["root": list.append(.uid(1))]))
        let table = list.append(.array(objects))
        _ = list.append(.dictionary(["$objects": table, "$top": top]))
        return list.encoded()
    }
}

/// A class with secure coding.
final class Point: NSObject, NSSecureCoding {
    static var supportsSecureCoding: Bool { true }
    let x: Int
    let y: Int

    init(_ x: Int, _ y: Int) {
        self.x = x
        self.y = y
    }

    func encode(with coder: NSCoder) {
        coder.encode(x, forKey: "x")
        coder.encode(y, forKey: "y")
    }

    init?(coder: NSCoder) {
        x = coder.decodeInteger(forKey: "x")
        y = coder.decodeInteger(forKey: "y")
    }
}

/// A class with the old coding only.
final class Unsecured: NSObject, NSCoding {
    let x: Int

    init(_ x: Int) {
        self.x = x
    }

    func encode(with coder: NSCoder) {
        coder.encode(x, forKey: "x")
    }

    init?(coder: NSCoder) {
        x = coder.decodeInteger(forKey: "x")
    }
}
