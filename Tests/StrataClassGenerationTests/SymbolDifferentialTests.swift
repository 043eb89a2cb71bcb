import Expectations
import Foundation
import Testing

@testable import StrataClassGeneration

/// Compares the names that the compiler gives to accessors with ours.
///
/// If a toolchain changes the names, then this fails.
@Suite("Symbols of accessors", .enabled(if: Compiler.isThere, "needs swiftc and nm"))
struct SymbolDifferentialTests {
    @Test(arguments: 1...6)
    func `the symbols of random members are those that the compiler leaves undefined`(seed: UInt64) throws {
        var maker = RandomSource(seed: seed)
        try compare(maker.source(), other: RandomSource.other)
    }

    @Test func `types and classes of another module, and generic types, have their names`() throws {
        try compare(
            """
            struct Box<Value> { struct Inside {} }
            enum Space { struct Pair<First, Second> { let first: First } }
            class Holder: Thing {
                @NSManaged var kind: Kind
                @NSManaged var kinds: [OtherKit.Kind: Space.Pair<Kind, Holder>]
                @NSManaged var deep: Outer.Middle.Inner?
                @NSManaged var box: Box<Box<Thing?>>
                @NSManaged var wrapped: Wrapped<[Outer.Middle]>?
                @NSManaged var otherKit: OtherKit.Wrapped<Holder>
                @NSManaged var alias: Things
                @NSManaged var range: Range<Int>?
            }
            extension Thing {
                @NSManaged var ofHere: Box<Thing>?
                @NSManaged func addToHolders(_ value: Holder)
                func use(_ holder: Holder) { addToHolders(holder) }
            }
            """,
            other: RandomSource.other
        )
    }

    @Test func `names with many words, digits and underscores have their symbols`() throws {
        let words = (0..<40).map { "Word\(String(UnicodeScalar(UInt8(97 + $0 % 26))))x\($0)" }
        let members = [
            "@NSManaged var \(words.joined().lowercased()): Int", "@NSManaged var \(words.joined()): [String: Date]",
            "@NSManaged var a_b__c: Date?", "@NSManaged var _x: Int", "@NSManaged var URLsOfURLs: [URL]",
            "@NSManaged var x1y2Z3: [UUID: UUID]", "@NSManaged var `default`: String?", "@NSManaged var `class`: Many?",
            "@NSManaged var \(String(repeating: "ab", count: 200)): String",
            "@NSManaged func addTo\(words.reversed().joined())(_ value: Many)",
        ]
        try compare("class Many: NSManagedObject {\n\(members.joined(separator: "\n"))\n}")
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
    private func compare(_ source: String, other: String? = nil) throws {
        let text = "import CoreData\nimport Foundation\n" + (other == nil ? "" : "import OtherKit\n") + source
        let file = SourceFile(path: "/somewhere/Managed Things.swift", text: text, module: "SampleApp")
        let others = other.map { [SourceFile(path: "/other/Other.swift", text: $0, module: "OtherKit")] } ?? []
        let declarations = SourceDeclarations(module: "SampleApp", files: [file], others: others)
        let generated = AccessorGenerator(declarations).generate()
        expectEqual(generated.faults, [])
        let undefined = try Compiler.undefinedSymbols(
            of: text,
            named: "Managed Things.swift",
            module: "SampleApp",
            other: other
        )
        expect(undefined.count > 1)
        let (mine, theirs) = (Set(generated.symbols), undefined)
        expect(mine.subtracting(theirs).sorted() == [] && theirs.subtracting(mine).sorted() == [])
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

    /// The module that the sources import besides the framework.
    static let other = """
        import CoreData
        open class Thing: NSManagedObject {}
        public enum Kind: Int16 { case one }
        public struct Wrapped<Value> { let value: Value }
        public enum Outer { public struct Middle { public enum Inner { case one } } }
        public typealias Things = [Thing]
        """

    private mutating func type(_ classes: [String], depth: Int = 0) -> String {
        switch number(below: depth > 2 ? 6 : 12) {
        case 0, 1: return pick(["Int16", "Int64", "Bool", "Double", "String", "Float"])
        case 2: return pick(["Date", "UUID", "URL", "Data", "Decimal", "IndexSet"])
        case 3: return pick(["NSSet", "NSOrderedSet", "NSNumber", "NSDecimalNumber", "NSObject"])
        case 4: return pick(classes)
        case 5: return pick(["Kind", "OtherKit.Kind", "Thing", "Outer.Middle", "Outer.Middle.Inner", "Range<Int>"])
        case 6: return "[\(type(classes, depth: depth + 1))]"
        case 7: return "[String: \(type(classes, depth: depth + 1))]"
        case 8: return "Set<\(pick(["String", "UUID", "Kind", pick(classes)]))>"
        case 9: return "\(pick(["Box", "Nest.Box", "Nest.Deep.Box"]))<\(type(classes, depth: depth + 1))>"
        case 10: return "Wrapped<\(type(classes, depth: depth + 1))>"
        default: return type(classes, depth: depth + 1) + "?"
        }
    }

    /// Classes, a third of which are nested.
    mutating func source() -> String {
        let names = (0..<8).map { name().prefix(1).uppercased() + name() + "\($0)" }
        let spaces = names.indices.map { $0 % 3 == 2 ? name().prefix(1).uppercased() + name() + "Space\($0)" : nil }
        let classes = zip(names, spaces).map { name, space in (space.map { $0 + "." } ?? "") + name }
        var lines = ["struct Box<Value> {}", "enum Nest { struct Box<A> {}; enum Deep { struct Box<A> {} } }"]
        for (name, space) in zip(names, spaces) {
            if let space { lines.append("enum \(space) {") }
            lines.append("class \(name): \(pick(["NSManagedObject", "Thing"])) {")
            for number in 0..<12 {
                let access = pick(["", "private ", "fileprivate ", "internal ", "private(set) "])
                lines.append("    @NSManaged \(access)var \(self.name())\(number): \(type(classes))")
            }
            let noun = self.name().prefix(1).uppercased() + self.name()
            lines.append("    @NSManaged func addTo\(noun)(_ value: \(pick(classes)))")
            lines.append("    @NSManaged func insertInto\(noun)(_ values: [\(pick(classes))], at indexes: NSIndexSet)")
            lines.append(space == nil ? "}" : "}\n}")
        }
        return lines.joined(separator: "\n")
    }
}

/// The compiler of the toolchain that runs the tests.
enum Compiler {
    static let isThere = (try? run("swiftc", ["--version"])) != nil && (try? run("nm", ["--version"])) != nil

    /// The symbols that a file expects other files of its module to define.
    ///
    /// With `other`, the file imports a module `OtherKit` with that source.
    static func undefinedSymbols(
        of source: String,
        named name: String,
        module: String,
        other: String? = nil
    ) throws -> Set<String> {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("symbols-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (base, file) = (folder.appendingPathComponent("Base.swift"), folder.appendingPathComponent(name))
        try Data("import Foundation\nopen class NSManagedObject: NSObject {}\n".utf8).write(to: base)
        try Data(source.utf8).write(to: file)
        // The framework does the same: one module declares the class, and programs import another one, which exports
        // it again.
        let umbrella = folder.appendingPathComponent("Umbrella.swift")
        try Data("@_exported import CoreDataEssentials\n".utf8).write(to: umbrella)
        for (module, file) in [("CoreDataEssentials", base), ("CoreData", umbrella)] {
            let interface = folder.appendingPathComponent("\(module).swiftmodule").path
            try run(
                "swiftc",
                ["-parse-as-library", "-emit-module", "-module-name", module, "-I", folder.path, file.path]
                    + ["-o", interface]
            )
        }
        if let other {
            let file = folder.appendingPathComponent("Other.swift")
            try Data(other.utf8).write(to: file)
            let interface = folder.appendingPathComponent("OtherKit.swiftmodule").path
            try run(
                "swiftc",
                ["-parse-as-library", "-emit-module", "-module-name", "OtherKit", "-I", folder.path, file.path]
                    + ["-o", interface]
            )
        }
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
    static func run(_ program: String, _ arguments: [String]) throws -> String {
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
