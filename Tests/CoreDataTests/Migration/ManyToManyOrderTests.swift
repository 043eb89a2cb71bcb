import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// Many-to-many relationships whose ends become ordered, or cease to be, in each combination, with and without new names.
@Suite("Orders of migrated many-to-many relationships")
struct ManyToManyOrderTests {
    /// Whether each end is ordered.
    struct Form: Sendable, CustomTestStringConvertible {
        let first: Bool
        let second: Bool
        var testDescription: String { "\(first ? "=>>" : "->>") and \(second ? "=>>" : "->>")" }

        func model(_ name: String = "bs", from old: String = "") -> String {
            "A: n String, \(name)\(old) \(first ? "=>>" : "->>") B/as\nB: n String, as \(second ? "=>>" : "->>") A/\(name)"
        }
    }

    static let forms = [
        Form(first: false, second: false), Form(first: false, second: true), Form(first: true, second: false),
        Form(first: true, second: true),
    ]
    /// The members of each object in an order that is not that of the keys.
    private static let members = ["a1": ["b3", "b1", "b2"], "a2": ["b2", "b1"], "a3": []]
    private static let owners = ["b1": ["a2", "a1"], "b2": ["a2", "a1"], "b3": ["a1"]]

    @Test(arguments: forms, forms)
    func `members stay, in their order if there was one, else in that of their keys`(_ old: Form, _ new: Form) throws {
        for isRenamed in [false, true] {
            let store = try AgingStore(.migrating)
            try store.use(ModelSketch.model(old.model())) { context in
                var objects: [String: NSManagedObject] = [:]
                // Each has been saved before the next is made, so that their keys are in this order.
                for name in ["a1", "a2", "a3", "b1", "b2", "b3"] {
                    objects[name] = context.make(name.hasPrefix("a") ? "A" : "B", name)
                    try context.save()
                }
                func relate(_ list: [String: [String]], _ key: String, isOrdered: Bool) {
                    for (name, others) in list.sorted(by: { $0.key < $1.key }) {
                        let others = others.compactMap { objects[$0] }
                        objects[name]?.setValue(
                            isOrdered ? NSOrderedSet(array: others) : Set(others) as NSSet,
                            forKey: key
                        )
                    }
                }
                relate(Self.members, "bs", isOrdered: old.first)
                if old.second { relate(Self.owners, "as", isOrdered: true) }
                try context.save()
            }
            let name = isRenamed ? "things" : "bs"
            let model = ModelSketch.model(new.model(name, from: isRenamed ? "{bs}" : ""))

            try store.use(model) { context in
                try expectEqual(context.dump(), lines(old, new, name), "\(old) to \(new)")
                // Each end takes changes in its new form.
                func object(_ entity: String, _ name: String) throws -> NSManagedObject {
                    try require(context.all(entity).first { $0.value(forKey: "n") as? String == name })
                }
                let (a, b) = (try object("A", "a1"), try object("B", "b1"))
                a.setValue(new.first ? NSOrderedSet(array: [b]) : NSSet(array: [b]), forKey: name)
                try context.save()
            }

            let first = try store.use(model) { try $0.dump().first }
            expectEqual(first, "A a1 \(name)=" + (new.first ? "[b1]" : "{b1}"))
            try expectEqual(store.problems(model), [])
        }
    }

    private func lines(_ old: Form, _ new: Form, _ name: String) -> [String] {
        func line(_ name: String, _ others: [String], was: Bool, isOrdered: Bool) -> String {
            let list = (was && isOrdered ? others : others.sorted()).joined(separator: " ")
            return "\(name)=" + (isOrdered ? "[\(list)]" : "{\(list)}")
        }
        let first = Self.members.map { "A \($0.key) " + line(name, $0.value, was: old.first, isOrdered: new.first) }
        let second = Self.owners.map { "B \($0.key) " + line("as", $0.value, was: old.second, isOrdered: new.second) }
        return (first + second).sorted()
    }
}
