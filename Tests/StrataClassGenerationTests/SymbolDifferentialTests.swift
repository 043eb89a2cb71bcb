import Foundation
import Testing

@testable import StrataClassGeneration

/// The names that the compiler gives to accessors, compared with ours: if a toolchain changes them, this fails.
@Suite("Symbols of accessors", .enabled(if: Compiler.isThere, "needs swiftc and nm"))
struct SymbolDifferentialTests {
    @Test(arguments: 1...3)
    func `the symbols of random members are those that the compiler leaves undefined`(seed: UInt64) throws {
        var maker = RandomSource(seed: seed)
        try compare(maker.source())
    }

    @Test func `the symbols of all known types are right`() throws {
        let names = [
            "String", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Double",
            "Float", "Bool", "Character", "Substring", "Duration", "AnyHashable", "Date", "UUID", "URL", "Data",
            "Decimal",
            "IndexPath", "Locale", "TimeZone", "Calendar", "DateComponents", "DateInterval", "URLComponents",
            "AttributedString", "IndexSet", "CharacterSet", "PersonNameComponents", "CGFloat", "CGPoint", "CGSize",
            "CGRect",
            "Notification", "NSObject", "NSString", "NSMutableString", "NSNumber", "NSDecimalNumber", "NSValue",
            "NSNull",
            "NSError", "NSDate", "NSData", "NSMutableData", "NSURL", "NSUUID", "NSAttributedString", "NSSet",
            "NSMutableSet", "NSCountedSet", "NSOrderedSet", "NSMutableOrderedSet", "NSArray", "NSMutableArray",
            "NSDictionary", "NSMutableDictionary", "NSIndexSet", "NSMutableIndexSet", "NSIndexPath", "NSLocale",
            "NSTimeZone", "NSCalendar", "NSDateComponents", "NSRegularExpression", "NSPredicate", "NSSortDescriptor",
            "Unit", "Dimension", "UnitLength", "Progress", "any NSCoding", "Any", "AnyObject", "[String: Any]",
            "TimeInterval",
            "[[String: [Int]]]", "Set<UUID>", "ClosedRange<Int>", "Range<Int>", "Dictionary<String, String>",
            "Foundation.Date",
            "Swift.Array<Swift.Int>", "Optional<Int>", "NSManagedObject", "CoreData.NSManagedObject",
        ]
        let members = names.enumerated().map { "@NSManaged var v\($0): \($1)\n@NSManaged var o\($0): (\($1))?" }
        try compare("class Holder: NSManagedObject {\n\(members.joined(separator: "\n"))\n}")
    }

    @Test func `nested, private and extended members have their symbols`() throws {
        try compare(
            """
            enum Names {
                class Inner: NSManagedObject {
                    enum Kind: Int16 { case a }
                    @NSManaged var kind: Kind
                    @NSManaged fileprivate var innerSecret: Int
                    @NSManaged private(set) var innerKindData: Data
                }
            }
            typealias Inners = [String: Names.Inner?]
            class DataStoreQuery: NSManagedObject {
                @NSManaged var inners: Inners
                @NSManaged private var dataStoreQuery: DataStoreQuery?
                @NSManaged var implicit: Date!
                @NSManaged func addToDataStore(_ data: Set<DataStoreQuery>)
                @NSManaged func replaceDataStoreQueries(at idx: NSIndexSet, with values: [DataStoreQuery])
            }
            extension Names.Inner {
                @NSManaged var other: Names.Inner.Kind?
                @NSManaged var alsoKind: Kind
            }
            extension NSManagedObject { @NSManaged var everywhere: String? }
            """
        )
    }

    /// Compares the symbols that a source lacks with those that are generated for it.
    private func compare(_ source: String) throws {
        let text = "import CoreData\nimport Foundation\n" + source
        let file = SourceFile(path: "/somewhere/Managed Things.swift", text: text, module: "SampleApp")
        let generated = AccessorGenerator(SourceDeclarations(module: "SampleApp", files: [file])).generate()
        #expect(generated.faults == [])
        let undefined = try Compiler.undefinedSymbols(of: text, named: "Managed Things.swift", module: "SampleApp")
        #expect(undefined.count > 1)
        #expect(Set(generated.symbols) == undefined)
    }
}

/// Classes with random names, and properties of random names and types.
private struct RandomSource {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    private mutating func number(below limit: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(state % UInt64(limit))
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(below: elements.count)] }

    private mutating func name() -> String {
        let words = [
            "data", "Data", "Store", "URL", "id", "NS", "Set", "a", "B", "x9", "_", "App", "Sample", "user", "Of",
        ]
        let name = (0...number(below: 4)).map { _ in pick(words) }.joined()
        return name.first?.isLetter == true ? name : "n" + name
    }

    private mutating func type(_ classes: [String], depth: Int = 0) -> String {
        switch number(below: depth > 2 ? 5 : 9) {
        case 0, 1: return pick(["Int16", "Int64", "Bool", "Double", "String", "Float"])
        case 2: return pick(["Date", "UUID", "URL", "Data", "Decimal", "IndexSet"])
        case 3: return pick(["NSSet", "NSOrderedSet", "NSNumber", "NSDecimalNumber", "NSObject"])
        case 4: return pick(classes)
        case 5: return "[\(type(classes, depth: depth + 1))]"
        case 6: return "[String: \(type(classes, depth: depth + 1))]"
        case 7: return "Set<\(pick(["String", "UUID", pick(classes)]))>"
        default: return type(classes, depth: depth + 1) + "?"
        }
    }

    mutating func source() -> String {
        let classes = (0..<8).map { name().prefix(1).uppercased() + name() + "\($0)" }
        var lines: [String] = []
        for name in classes {
            lines.append("class \(name): NSManagedObject {")
            for number in 0..<12 {
                lines.append(
                    "    @NSManaged \(pick(["", "private ", "public "]))var \(self.name())\(number): \(type(classes))"
                )
            }
            let noun = self.name().prefix(1).uppercased() + self.name()
            lines.append("    @NSManaged func addTo\(noun)(_ value: \(pick(classes)))")
            lines.append("    @NSManaged func insertInto\(noun)(_ values: [\(pick(classes))], at indexes: NSIndexSet)")
            lines.append("}")
        }
        return lines.joined(separator: "\n").replacingOccurrences(of: "public var", with: "internal var")
    }
}

/// The compiler of the toolchain that runs the tests.
enum Compiler {
    static let isThere = (try? run("swiftc", ["--version"])) != nil && (try? run("nm", ["--version"])) != nil

    /// What a file leaves for others to define in its own module.
    static func undefinedSymbols(of source: String, named name: String, module: String) throws -> Set<String> {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("symbols-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (base, file) = (folder.appendingPathComponent("Base.swift"), folder.appendingPathComponent(name))
        try Data("import Foundation\nopen class NSManagedObject: NSObject {}\n".utf8).write(to: base)
        try Data(source.utf8).write(to: file)
        let interface = folder.appendingPathComponent("CoreData.swiftmodule").path
        try run(
            "swiftc",
            ["-parse-as-library", "-emit-module", "-module-name", "CoreData", base.path, "-o", interface]
        )
        let object = folder.appendingPathComponent("out.o").path
        try run(
            "swiftc",
            ["-parse-as-library", "-module-name", module, "-I", folder.path, "-c", file.path, "-o", object]
        )
        let symbols = try run("nm", ["-u", object]).split(whereSeparator: \.isWhitespace).map(String.init)
        let mark = "\(module.utf8.count)\(module)"
        return Set(symbols.filter { $0.hasPrefix("$s") && $0.contains(mark) })
    }

    private struct Failure: Error {
        let output: String
    }

    @discardableResult
    private static func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(output: output) }
        return output
    }
}
