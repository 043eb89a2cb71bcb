import Expectations
import Testing

@testable import StrataClassGeneration

@Suite("Porting of sources")
struct SourcePorterTests {
    @Test func `@objc is put under a condition, or dropped`() {
        let source =
            "@objc(Venue)\npublic class Venue: NSManagedObject {\n    @objc(addTagsObject:)\n    @NSManaged func addToTags(_ value: Tag)\n}\n"

        expect(
            SourcePorter.port(source).text == """
                #if canImport(ObjectiveC)
                @objc(Venue)
                #endif
                public class Venue: NSManagedObject {
                    #if canImport(ObjectiveC)
                    @objc(addTagsObject:)
                    #endif
                    @NSManaged func addToTags(_ value: Tag)
                }

                """
        )
        expect(
            SourcePorter.port(source, .drop).text
                == "public class Venue: NSManagedObject {\n    @NSManaged func addToTags(_ value: Tag)\n}\n"
        )
    }

    @Test func `on the line of its declaration it gets lines of its own`() {
        expect(
            SourcePorter.port("    @objc func f() {}\n").text
                == "    #if canImport(ObjectiveC)\n    @objc\n    #endif\n    func f() {}\n"
        )
        expectEqual(SourcePorter.port("@objc dynamic var x = 1", .drop).text, "dynamic var x = 1")
    }

    @Test func `what was ported stays as it is`() {
        let once = SourcePorter.port("@objc(A)\nclass A { let k = #keyPath(A.b.c) }\n").text

        expectEqual(SourcePorter.port(once).text, once)
    }

    @Test(arguments: [
        ("#keyPath(Venue.city.name)", "\"city.name\""), ("#keyPath(name)", "\"name\""),
        ("#keyPath(App.Venue.city)", "\"city\""), ("#keyPath( Venue . city )", "\"city\""),
    ])
    func `a key path becomes its text`(_ keyPath: String, _ text: String) {
        expectEqual(SourcePorter.port("let x = \(keyPath) + \"\"").text, "let x = \(text) + \"\"")
    }

    @Test(arguments: [
        (##"f("\(#keyPath(Plate.name)) == %@")"##, ##"f("name == %@")"##),
        (##"f(#"$source.\#(#keyPath(Plate.name)) == 1 AND \(p)"#)"##, ##"f(#"$source.name == 1 AND \(p)"#)"##),
        (##"f("\(g(#keyPath(Plate.name), 1)) \(h)")"##, ##"f("\(g("name", 1)) \(h)")"##),
        (##"f("\\(#keyPath(Plate.name))")"##, ##"f("\\(#keyPath(Plate.name))")"##),
        (##"f("\(#keyPath(Plate.a))\(#keyPath(Plate.b))", #keyPath(Plate.c))"##, ##"f("ab", "c")"##),
    ])
    func `a key path in an interpolation becomes its text`(_ source: String, _ text: String) {
        expectEqual(SourcePorter.port(source).text, text)
    }

    @Test(arguments: [
        ("let k = NSStringFromSelector(#selector(getter: Venue.name))", "let k = \"name\""),
        ("let k = NSStringFromSelector(#selector(getter: name))", "let k = \"name\""),
        (
            "let r = m.template(\"a\")! as! NSFetchRequest<Venue>\n",
            "let r = m.template(\"a\")!.typed(as: Venue.self)\n"
        ),
        (
            "let r = Venue.fetchRequest() as! NSFetchRequest<App.Venue>",
            "let r = Venue.fetchRequest().typed(as: App.Venue.self)"
        ),
    ])
    func `names of getters and casts of requests are rewritten`(_ source: String, _ text: String) {
        let result = SourcePorter.port(source)
        expect(result.text == text && result.remarks.isEmpty, "\(result)")
        expectEqual(SourcePorter.port(text).text, text)
    }

    @Test func `initialisers that subclasses must have become required`() {
        let source = """
            public class Ticket: NSManagedObject {
                class func f() {}
                public convenience init(context moc: NSManagedObjectContext) {
                    self.init(entity: e, insertInto: moc)
                }
                override init(entity: NSEntityDescription, insertInto context: NSManagedObjectContext?) {}
                required init(context: NSManagedObjectContext) {}
                convenience init(context: NSManagedObjectContext, name: String) {}
                init(context: Int) {}
            }
            extension Ticket { convenience init(context: NSManagedObjectContext) {} }

            """
        let ported = source.replacingOccurrences(of: "public convenience", with: "public required convenience")
            .replacingOccurrences(of: "override", with: "required")

        expectEqual(SourcePorter.port(source).text, ported)
        expectEqual(SourcePorter.port(ported).text, ported)
    }

    @Test(arguments: [
        ("extension Venue {\n    override func willSave() {}\n}", 2, "body of the class"),
        ("let r = q.copy() as! NSFetchRequest<Venue>", 1, "typed(as:)"),
        ("final class T: Foundation.ValueTransformer {}", 1, "without Foundation"),
    ])
    func `what needs a hand is listed`(_ source: String, _ line: Int, _ reason: String) {
        let result = SourcePorter.port(source)
        expectEqual(result.text, source)
        expectEqual(result.remarks.map(\.line), [line])
        expect(result.remarks[0].message.contains(reason), "\(result.remarks)")
    }

    @Test(arguments: [
        ("@objc func titleCased(_ name: String) -> String { \"\" }", "titleCased:"),
        ("@objc private func number() -> Int { 1 }", "number"),
        ("@objc(make:of:) func anything(_ a: Any?, with b: Any?) -> Any? { nil }", "make:of:"),
        ("#if canImport(ObjectiveC)\n@objc\n#endif\nfunc join(_ a: [String: Int], _ b: String) {}", "join::"),
        ("@objc dynamic func price(venue: Int, of city: Int = max(1, 2)) -> Int { 1 }", "priceWithVenue:of:"),
        ("@objc func price(forVenue venue: Int) -> Int { 1 }", "priceForVenue:"),
        ("@objc func moveTo(venue: [Pair<Int, Int>], after: Pair<Int, Int>) {}", "moveToVenue:after:"),
    ])
    func `methods that a mapping model may call are listed by their selectors`(_ method: String, _ selector: String) {
        for begin in ["class Titles: NSEntityMigrationPolicy {", "extension NSEntityMigrationPolicy {"] {
            let remarks = SourcePorter.port("\(begin)\nvar a = 1\n\(method)\n}").remarks
            expect(remarks.count == 1 && remarks[0].message.contains("calls \(selector) with"), "\(remarks)")
            let lines = method.split(separator: "\n")
            expectEqual(remarks.first?.line, 2 + lines.count)
        }
    }

    @Test func `methods of subclasses and of exposed classes are listed, others are not`() {
        let source = """
            import CoreData
            @objcMembers
            final class Manager: NSMigrationManager {
                func shown(_ a: Any?) -> Any? { nil }
                private func hidden(_ a: Any?) -> Any? { nil }
                override class func migrationsCount(_ a: Any?) {}
                override func reset() {}
                static func make() {}
                class Inner { func inner() {} }
                @nonobjc func swift() {}
                func last() {}
            }
            class Base: CoreData.NSEntityMigrationPolicy { func plain() {} }
            class Titles: Base {
                @objc override func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws {}
                @objc func listed(_ a: Any?) -> Any? { a }
                override func function(named name: String) -> Function? {
                    name == "listed:" ? { self.listed($0[0]) } : super.function(named: name)
                }
            }
            extension Titles { @objc func unlisted(_ a: Any?) -> Any? { a } }
            class Other: NSObject { @objc func other() {} }

            """
        let remarks = SourcePorter.port(source).remarks.filter { $0.message.contains("function(named:)") }
        expectEqual(remarks.map(\.line), [4, 11, 21])
        expectEqual(SourcePorter.port(source, .drop).remarks.map(\.line), [4, 11, 21])
    }

    @Test func `strings and comments are left alone`() {
        let source = "// @objc\nlet x = \"@objc #keyPath(A.b)\" /* #keyPath(A.b) */\n"

        expectEqual(SourcePorter.port(source).text, source)
    }

    @Test func `what cannot be rewritten is listed with its line`() {
        let source =
            "import UIKit\nimport CoreData\nlet s = #selector(A.f)\nlet c = NSPersistentCloudKitContainer(name: \"\")\n"
        let remarks = SourcePorter.port(source).remarks

        expectEqual(remarks.map(\.line), [1, 3, 4])
        expect(remarks[2].message.contains("NSPersistentContainer"))
    }

    @Test(arguments: [
        ("@objc protocol P {\n    @objc optional func f()\n}", 2, "default in an extension"),
        ("class V {\n    @IBOutlet var label: Label?\n}", 2, "user interface"),
        ("struct V {\n    @FetchRequest(sortDescriptors: []) var all: Results\n}", 2, "SwiftUI or Combine"),
        ("import Foundation\n\nimport Combine", 3, "no module Combine"),
        ("var color: UIColor?", 1, "keep the components"),
        ("var token: NSKeyValueObservation?", 1, "no key-value observing"),
        ("let k = #keyPath(A.b[0])", 1, "write its path as a text"),
        ("let k = #keyPath(A)", 1, "write its path as a text"),
    ])
    func `each thing without a counterpart has its advice`(_ source: String, _ line: Int, _ advice: String) {
        let remarks = SourcePorter.port(source).remarks

        expect(remarks.contains { $0.line == line && $0.message.contains(advice) }, "\(remarks)")
    }

    @Test func `what makes objects visible to Objective-C goes with it`() {
        expectEqual(SourcePorter.port("@objcMembers class A {}", .drop).text, "class A {}")
        expect(
            SourcePorter.port("@objcMembers\nclass A {}").text
                == "#if canImport(ObjectiveC)\n@objcMembers\n#endif\nclass A {}"
        )
    }
}
