import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Value transformers")
struct ValueTransformerTests {
    @Test func `a registered transformer is found by its name until it is removed`() {
        let name = NSValueTransformerName("test.\(UUID())")
        let transformer = Reversing()
        expectEqual(ValueTransformer(forName: name), nil)

        ValueTransformer.setValueTransformer(transformer, forName: name)
        expect(ValueTransformer(forName: name) === transformer)
        expect(ValueTransformer.valueTransformerNames().contains(name))

        ValueTransformer.setValueTransformer(nil, forName: name)
        expectEqual(ValueTransformer(forName: name), nil)
    }

    @Test(arguments: ["NSSecureUnarchiveFromData", "NSSecureUnarchiveFromDataTransformer"])
    func `the secure unarchiving transformer is always there`(_ name: String) throws {
        let transformer = try require(ValueTransformer(forName: NSValueTransformerName(name)))

        expect(transformer is NSSecureUnarchiveFromDataTransformer)
        let data = try require(transformer.reverseTransformedValue(["a", "b"]) as? Data)
        expectEqual(transformer.transformedValue(data) as? [String], ["a", "b"])
        expect(transformer.transformedValue("no data") == nil)
        expect(transformer.transformedValue(nil) == nil)
    }

    @Test func `a subclass is found by its name, and made once`() throws {
        let name = NSValueTransformerName(NSStringFromClass(Reversing.self))

        let first = try require(ValueTransformer(forName: name))

        expect(first is Reversing)
        expect(ValueTransformer(forName: name) === first)
    }

    @Test func `a name that no class has is looked up without a word in the standard error`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            for name in ["Missing", "App.Missing", "App.Outer.Missing", ".Outer.Missing", "_TtC3App7Missing"] {
                precondition(ValueTransformer(forName: NSValueTransformerName(name)) == nil)
                precondition(ManagedClasses.candidates(for: name).isEmpty)
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(!text.contains("NSClassFromString"), "\(text)")
    }

    @Test func `a transformer of one's own makes data and reads it back`() throws {
        let name = "test.\(UUID())"
        ValueTransformer.setValueTransformer(Reversing(), forName: NSValueTransformerName(name))
        let attribute = NSAttributeDescription()
        attribute.valueTransformerName = name

        expectEqual(attribute.archived("abc"), Data("cba".utf8))
        expectEqual(attribute.unarchived(Data("cba".utf8)) as? String, "abc")
        expectEqual(attribute.archived(12), nil)
    }

    @Test func `a subclass of the secure one works the other way round, and allows its classes`() throws {
        let name = "test.\(UUID())"
        ValueTransformer.setValueTransformer(PointTransformer(), forName: NSValueTransformerName(name))
        let attribute = NSAttributeDescription()
        attribute.valueTransformerName = name

        let data = try require(attribute.archived(Point(3, 4)))
        expectEqual((attribute.unarchived(data) as? Point)?.y, 4)
        // Only its own classes may be at the top.
        expectEqual(attribute.archived("text"), nil)
        let text = try require(NSAttributeDescription().archived("text"))
        expect(attribute.unarchived(text) == nil)
    }

    @Test func `an unknown transformer gives nil`() {
        let attribute = NSAttributeDescription()
        attribute.valueTransformerName = "NobodyRegisteredThis"

        expectEqual(attribute.archived("a"), nil)
        expect(attribute.unarchived(Data([1])) == nil)
    }

    @Test func `the default transformation is the value itself, both ways`() {
        let transformer = ValueTransformer()

        expectEqual(transformer.transformedValue(3) as? Int, 3)
        expectEqual(transformer.reverseTransformedValue(3) as? Int, 3)
        expect(NSSecureUnarchiveFromDataTransformer.allowedTopLevelClasses.contains { $0 == NSArray.self })
    }

    @Test func `reversing a one-way transformer stops the program`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = OneWay().reverseTransformedValue(1)
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(message.contains("OneWay does not allow"))
    }

    @Test func `many threads may look up and register at once`() async {
        let names = (0..<8).map { NSValueTransformerName("test.\($0).\(UUID())") }
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<64 {
                group.addTask {
                    ValueTransformer.setValueTransformer(Reversing(), forName: names[index % 8])
                    _ = ValueTransformer(forName: names[(index + 1) % 8])
                }
            }
        }
        expect(Set(names).isSubset(of: ValueTransformer.valueTransformerNames()))
    }
}

final class Reversing: ValueTransformer {
    override func transformedValue(_ value: Any?) -> Any? {
        (value as? String).map { Data(String($0.reversed()).utf8) }
    }

    override func reverseTransformedValue(_ value: Any?) -> Any? {
        (value as? Data).map { String(String(decoding: $0, as: UTF8.self).reversed()) }
    }
}

final class OneWay: ValueTransformer {
    override class func allowsReverseTransformation() -> Bool { false }
}

final class PointTransformer: NSSecureUnarchiveFromDataTransformer {
    override class var allowedTopLevelClasses: [AnyClass] { [Point.self] }
}
