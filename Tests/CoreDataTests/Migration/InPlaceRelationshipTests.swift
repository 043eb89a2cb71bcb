import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// Relationships of stores that are migrated in place.
@Suite("Relationships of migrated stores")
struct InPlaceRelationshipTests {
    /// A change of a model, the contents of the store before it, and the relationships after it.
    struct Change: Sendable, CustomTestStringConvertible {
        let title: String
        let old: String
        let new: String
        let fill: @Sendable (NSManagedObjectContext) -> Void
        let expected: [String]
        var testDescription: String { title }
    }

    static let changes = [
        Change(
            title: "m052 added, to one and to many",
            old: "A: n String\nB: n String",
            new: "A: n String, b -> B/as\nB: n String, as ->> A/b",
            fill: {
                $0.make("A", "a1"); $0.make("B", "b1")
            },
            expected: ["A a1 b=-", "B b1 as={}"]
        ),
        Change(
            title: "m053 m054 added as required, to many and to one: rows have none",
            old: "A: n String\nB: n String",
            new: "A: n String, bs ->>! B/a\nB: n String, a ->! A/bs",
            fill: {
                $0.make("A", "a1"); $0.make("B", "b1")
            },
            expected: ["A a1 bs={}", "B b1 a=-"]
        ),
        Change(
            title: "m055 renamed on both sides",
            old: "A: n String, b -> B/as\nB: n String, as ->> A/b",
            new: "A: n String, owner{b} -> B/things\nB: n String, things{as} ->> A/owner",
            fill: {
                let b = $0.make("B", "b1"); for n in ["a1", "a2"] { $0.make("A", n, ["b": b]) }; $0.make("A", "a3")
            },
            expected: ["A a1 owner=b1", "A a2 owner=b1", "A a3 owner=-", "B b1 things={a1 a2}"]
        ),
        Change(
            title: "m055 removed",
            old: "A: n String, b -> B/as, cs ->> C/as\nB: n String, as ->> A/b\nC: n String, as ->> A/cs",
            new: "A: n String\nB: n String\nC: n String",
            fill: { $0.make("A", "a1", ["b": $0.make("B", "b1"), "cs": [$0.make("C", "c1")] as Set]) },
            expected: ["A a1", "B b1", "C c1"]
        ),
        Change(
            title: "m056 to one becomes to many",
            old: "A: n String, b -> B/a\nB: n String, a -> A/b",
            new: "A: n String, bs{b} ->> B/a\nB: n String, a -> A/bs",
            fill: {
                $0.make("A", "a1", ["b": $0.make("B", "b1")]); $0.make("A", "a2")
            },
            expected: ["A a1 bs={b1}", "A a2 bs={}", "B b1 a=a1"]
        ),
        Change(
            title: "m057 to many becomes to one",
            old: "A: n String, bs ->> B/a\nB: n String, a -> A/bs",
            new: "A: n String, b{bs} -> B/a\nB: n String, a -> A/b",
            fill: {
                $0.make("A", "a1", ["bs": [$0.make("B", "b1")] as Set]); $0.make("A", "a2")
            },
            expected: ["A a1 b=b1", "A a2 b=-", "B b1 a=a1"]
        ),
        Change(
            title: "m057 many to many becomes one to many",
            old: "A: n String, bs ->> B/as\nB: n String, as ->> A/bs",
            new: "A: n String, bs ->> B/a\nB: n String, a{as} -> A/bs",
            fill: {
                $0.make("A", "a1", ["bs": [$0.make("B", "b1"), $0.make("B", "b2")] as Set]); $0.make("B", "b3")
            },
            expected: ["A a1 bs={b1 b2}", "B b1 a=a1", "B b2 a=a1", "B b3 a=-"]
        ),
        Change(
            title: "m058 one to many becomes many to many",
            old: "A: n String, bs ->> B/a\nB: n String, a -> A/bs",
            new: "A: n String, bs ->> B/as\nB: n String, as{a} ->> A/bs",
            fill: {
                $0.make("A", "a1", ["bs": [$0.make("B", "b1"), $0.make("B", "b2")] as Set]); $0.make("A", "a2")
            },
            expected: ["A a1 bs={b1 b2}", "A a2 bs={}", "B b1 as={a1}", "B b2 as={a1}"]
        ),
        Change(
            title: "m059 unordered becomes ordered",
            old: "A: n String, bs ->> B/a\nB: n String, a -> A/bs",
            new: "A: n String, bs =>> B/a\nB: n String, a -> A/bs",
            fill: {
                let a = $0.make("A", "a1"); for n in ["b1", "b2", "b3"] { $0.make("B", n, ["a": a]); try? $0.save() }
            },
            expected: ["A a1 bs=[b1 b2 b3]", "B b1 a=a1", "B b2 a=a1", "B b3 a=a1"]
        ),
        Change(
            title: "m060 ordered becomes unordered",
            old: "A: n String, bs =>> B/a\nB: n String, a -> A/bs",
            new: "A: n String, bs ->> B/a\nB: n String, a -> A/bs",
            fill: { $0.make("A", "a1", ["bs": NSOrderedSet(array: [$0.make("B", "b2"), $0.make("B", "b1")])]) },
            expected: ["A a1 bs={b1 b2}", "B b1 a=a1", "B b2 a=a1"]
        ),
        Change(
            title: "m061 ordered one to many becomes ordered many to many",
            old: "A: n String, bs =>> B/a\nB: n String, a -> A/bs",
            new: "A: n String, bs =>> B/as\nB: n String, as{a} ->> A/bs",
            fill: {
                $0.make(
                    "A",
                    "a1",
                    ["bs": NSOrderedSet(array: [$0.make("B", "b3"), $0.make("B", "b1"), $0.make("B", "b2")])]
                )
            },
            expected: ["A a1 bs=[b3 b1 b2]", "B b1 as={a1}", "B b2 as={a1}", "B b3 as={a1}"]
        ),
        Change(
            title: "m062 the destination becomes the super-entity",
            old: "P: n String\nQ(P):\nA: n String, q -> Q/as\nX",
            new: "P: n String, as ->> A/q\nQ(P):\nA: n String, q -> P/as\nX",
            fill: { _ in },
            expected: []
        ),
        Change(
            title: "m063 an inverse is added to a to-one relationship",
            old: "A: n String, b -> B\nB: n String",
            new: "A: n String, b -> B/as\nB: n String, as ->> A/b",
            fill: {
                let b = $0.make("B", "b1"); for n in ["a1", "a2"] { $0.make("A", n, ["b": b]) }
            },
            expected: ["A a1 b=b1", "A a2 b=b1", "B b1 as={a1 a2}"]
        ),
        Change(
            title: "m063 an inverse is added to a to-many relationship",
            old: "A: n String, bs ->> B\nB: n String",
            new: "A: n String, bs ->> B/a\nB: n String, a -> A/bs",
            fill: { $0.make("A", "a1", ["bs": [$0.make("B", "b1"), $0.make("B", "b2")] as Set]) },
            expected: ["A a1 bs={b1 b2}", "B b1 a=a1", "B b2 a=a1"]
        ),
        Change(
            title: "m063 the inverse of a to-many relationship goes",
            old: "A: n String, bs ->> B/a\nB: n String, a -> A/bs",
            new: "A: n String, bs ->> B\nB: n String",
            fill: {
                $0.make("A", "a1", ["bs": [$0.make("B", "b1"), $0.make("B", "b2")] as Set]); $0.make("B", "b3")
            },
            expected: ["A a1 bs={b1 b2}", "B b1", "B b2", "B b3"]
        ),
        Change(
            title: "m063 a relationship becomes its own inverse",
            old: "A: n String, friends ->> A/fans, fans ->> A/friends",
            new: "A: n String, friends ->> A/friends",
            fill: {
                let (a, b, c) = ($0.make("A", "a"), $0.make("A", "b"), $0.make("A", "c"));
                a.setValue([b, c] as Set, forKey: "friends")
            },
            expected: ["A a friends={b c}", "A b friends={a}", "A c friends={a}"]
        ),
        Change(
            title: "m064 ordered on both sides, of which the first is new",
            old: "A: n String, bs =>> B/as\nB: n String, as =>> A/bs",
            new: "A: n String, things =>> B/as\nB: n String, as =>> A/things",
            fill: {
                let (a1, a2) = ($0.make("A", "a1"), $0.make("A", "a2"))
                let (b1, b2) = ($0.make("B", "b1"), $0.make("B", "b2"))
                for a in [a1, a2] { a.setValue(NSOrderedSet(array: [b2, b1]), forKey: "bs") }
                b1.setValue(NSOrderedSet(array: [a2, a1]), forKey: "as")
                b2.setValue(NSOrderedSet(array: [a1, a2]), forKey: "as")
            },
            expected: ["A a1 things=[b2 b1]", "A a2 things=[b2 b1]", "B b1 as=[a2 a1]", "B b2 as=[a1 a2]"]
        ),
        Change(
            title: "m064 ordered on both sides, of which the second is new",
            old: "A: n String, bs =>> B/as\nB: n String, as =>> A/bs",
            new: "A: n String, bs =>> B/things\nB: n String, things =>> A/bs",
            fill: {
                let (a1, a2) = ($0.make("A", "a1"), $0.make("A", "a2"))
                let (b1, b2) = ($0.make("B", "b1"), $0.make("B", "b2"))
                for a in [a1, a2] { a.setValue(NSOrderedSet(array: [b2, b1]), forKey: "bs") }
                b1.setValue(NSOrderedSet(array: [a2, a1]), forKey: "as")
                b2.setValue(NSOrderedSet(array: [a1, a2]), forKey: "as")
            },
            expected: ["A a1 bs=[b2 b1]", "A a2 bs=[b2 b1]", "B b1 things=[a2 a1]", "B b2 things=[a1 a2]"]
        ),
        Change(
            title: "m082 tables of pairs follow the numbers of entities",
            old: "M: n String, ns =>> N/ms\nN: n String, ms ->> M/ns",
            new: "A: n String\nB: n String\nM: n String, ns =>> N/ms\nN: n String, ms ->> M/ns",
            fill: {
                $0.make("M", "m1", ["ns": NSOrderedSet(array: [$0.make("N", "n2"), $0.make("N", "n1")])]);
                $0.make("M", "m2")
            },
            expected: ["M m1 ns=[n2 n1]", "M m2 ns=[]", "N n1 ms={m1}", "N n2 ms={m1}"]
        ),
        Change(
            title: "m082 two tables of pairs trade numbers",
            old: "A{z}: n String, xs ->> X/as\nB: n String, xs ->> X/bs\nX: n String, as ->> A/xs, bs ->> B/xs",
            new: "B: n String, xs ->> X/bs\nC{z}: n String, xs ->> X/as\nX: n String, as ->> C/xs, bs ->> B/xs",
            fill: {
                let (x1, x2) = ($0.make("X", "x1"), $0.make("X", "x2"))
                $0.make("A", "a1", ["xs": [x1] as Set])
                $0.make("B", "b1", ["xs": [x1, x2] as Set])
            },
            expected: ["B b1 xs={x1 x2}", "C a1 xs={x1}", "X x1 as={a1} bs={b1}", "X x2 as={} bs={b1}"]
        ),
        Change(
            title: "m082 references to one of several entities stay where the numbers do",
            old: "B: n String, p -> P\nP: n String\nQ(P):\nR(P):",
            new: "B: n String, p -> P, x Int16\nP: n String\nQ(P):\nR(P):",
            fill: Self.pointers,
            expected: ["B b1 p=p1 x=-", "B b2 p=q1 x=-", "B b3 p=r1 x=-", "B b4 p=- x=-", "P p1", "Q q1", "R r1"]
        ),
        Change(
            title: "m082 references to one of several entities follow their numbers",
            old: "B: n String, p -> P\nP: n String\nQ(P):\nR(P):",
            new: "A: n String\nB: n String, p -> P\nP: n String\nQ(P):\nR(P):",
            fill: Self.pointers,
            expected: ["B b1 p=p1", "B b2 p=q1", "B b3 p=r1", "B b4 p=-", "P p1", "Q q1", "R r1"]
        ),
        Change(
            title: "m082 references follow entities that trade their numbers",
            old: "B: n String, p -> P\nP: n String\nQ(P):\nR(P):",
            new: "B: n String, p -> P\nO(P){R}:\nP: n String\nQ(P):",
            fill: Self.pointers,
            expected: ["B b1 p=p1", "B b2 p=q1", "B b3 p=r1", "B b4 p=-", "O r1", "P p1", "Q q1"]
        ),
        Change(
            title: "m082 ordered members and pairs of several entities follow their numbers",
            old: "B: n String, ps =>> P/bs\nP: n String, bs ->> B/ps\nQ(P):",
            new: "A: n String\nB: n String, ps =>> P/bs\nP: n String, bs ->> B/ps\nQ(P):",
            fill: {
                let (p1, q1) = ($0.make("P", "p1"), $0.make("Q", "q1"))
                $0.make("B", "b1", ["ps": NSOrderedSet(array: [q1, p1])])
            },
            expected: ["B b1 ps=[q1 p1]", "P p1 bs={b1}", "Q q1 bs={b1}"]
        ),
    ]

    /// Makes an object for each entity that a relationship may lead to, one that leads to each, and one that leads nowhere.
    private static func pointers(_ context: NSManagedObjectContext) {
        for (number, target) in ["P", "Q", "R"].enumerated() {
            context.make("B", "b\(number + 1)", ["p": context.make(target, "\(target.lowercased())1")])
        }
        context.make("B", "b4")
    }

    @Test(arguments: changes)
    func `the objects show the same relationships in their new form`(_ change: Change) throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model(change.old)) { context in
            change.fill(context)
            if context.hasChanges { try context.save() }
        }
        let shown = try store.use(ModelSketch.model(change.new)) { try $0.dump() }
        expectEqual(shown, change.expected)
        try expectEqual(store.problems(ModelSketch.model(change.new)), [])
    }

    @Test func `m057 several members are never reduced to one silently`() throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model("A: n String, bs ->> B/a\nB: n String, a -> A/bs")) { context in
            context.make("A", "a1", ["bs": [context.make("B", "b1"), context.make("B", "b2")] as Set])
            try context.save()
        }
        let before = try store.contents()
        let error = try #require(throws: CocoaError.self) {
            try store.use(ModelSketch.model("A: n String, b{bs} -> B/a\nB: n String, a -> A/b")) { _ in }
        }
        expectEqual(error.code, .migration)
        expect(error.localizedDescription.contains("A.b: 1 objects have more than one object there"))
        try expectEqual(store.contents(), before)
    }

    @Test func `m059 members can be moved within an order that a migration has made`() throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model("A: n String, bs ->> B/a\nB: n String, a -> A/bs")) { context in
            let a = context.make("A", "a1")
            for name in ["b1", "b2", "b3"] { context.make("B", name, ["a": a]) }
            try context.save()
        }
        let ordered = "A: n String, bs =>> B/a\nB: n String, a -> A/bs"
        try store.use(ModelSketch.model(ordered)) { context in
            let a = try require(context.all("A").first)
            let bs = a.mutableOrderedSetValue(forKey: "bs")
            bs.moveObjects(at: IndexSet(integer: 2), to: 0)
            bs.insert(context.make("B", "b4"), at: 2)
            try context.save()
        }
        let shown = try store.use(ModelSketch.model(ordered)) { try $0.dump().first }
        let parts = try require(shown)
        expect(parts.contains("b4"))
        try expectEqual(store.problems(ModelSketch.model(ordered)), [])
    }
}
