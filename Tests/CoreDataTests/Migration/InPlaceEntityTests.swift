import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// Entities and hierarchies of stores that are migrated in place.
@Suite("Entities of migrated stores")
struct InPlaceEntityTests {
    typealias Change = InPlaceRelationshipTests.Change

    static let changes = [
        Change(
            title: "m045 an entity is removed, and references to it become nil",
            old: "A: n String, b -> B\nB: n String",
            new: "A: n String",
            fill: { $0.make("A", "a1", ["b": $0.make("B", "b1")]) },
            expected: ["A a1"]
        ),
        Change(
            title: "m045 a sub-entity is removed, and references to its objects become nil",
            old: "Z: n String, p -> P/zs, ps ->> P/ys\nP: n String, zs ->> Z/p, ys ->> Z/ps\nQ(P): extra Int16\nR(P)",
            new: "Z: n String, p -> P/zs, ps ->> P/ys\nP: n String, zs ->> Z/p, ys ->> Z/ps\nR(P)",
            fill: { context in
                let (p, q, r) = (context.make("P", "p1"), context.make("Q", "q1"), context.make("R", "r1"))
                for (name, target) in [("z1", p), ("z2", q), ("z3", r)] {
                    context.make("Z", name, ["p": target, "ps": [p, q, r] as Set])
                }
            },
            expected: [
                "P p1 ys={z1 z2 z3} zs={z1}", "R r1 ys={z1 z2 z3} zs={z3}", "Z z1 p=p1 ps={p1 r1}",
                "Z z2 p=- ps={p1 r1}", "Z z3 p=r1 ps={p1 r1}",
            ]
        ),
        Change(
            title: "m045 a sub-entity is removed, and its objects leave nothing in the order of their members",
            old: "Z: n String, p -> P/zs\nP: n String, zs =>> Z/p\nQ(P): extra Int16",
            new: "Z: n String, p -> P/zs\nP: n String, zs =>> Z/p",
            fill: { context in
                let (p, q) = (context.make("P", "p1"), context.make("Q", "q1"))
                for (name, target) in [("z1", p), ("z2", q)] { context.make("Z", name, ["p": target]) }
            },
            expected: ["P p1 zs=[z1]", "Z z1 p=p1", "Z z2 p=-"]
        ),
        Change(
            title: "m045 m046 an entity is renamed, and one is added in front of it",
            old: "City: n String, size Int32\nStreet: n String, city -> City",
            new: "Alley: n String\nTown{City}: n String, size Int32\nStreet: n String, city -> Town",
            fill: { $0.make("Street", "s1", ["city": $0.make("City", "Ulm", ["size": 3])]) },
            expected: ["Street s1 city=Ulm", "Town Ulm size=3"]
        ),
        Change(
            title: "m045 entities are added whose tables have the names of tables in between",
            old: "A: n String, x String",
            new: """
                A: n String
                _Migration_1: n String
                _Migration_2: n String
                strata_migrated_1: n String
                strata_migrated_2: n String
                """,
            fill: { $0.make("A", "a1", ["x": "gone"]) },
            expected: ["A a1"]
        ),
        Change(
            title: "m045 two entities trade their names",
            old: "A: n String, a Int16\nB: n String, b Int16",
            new: "A{B}: n String, b Int16\nB{A}: n String, a Int16",
            fill: {
                $0.make("A", "a1", ["a": 1]); $0.make("B", "b1", ["b": 2])
            },
            expected: ["A b1 b=2", "B a1 a=1"]
        ),
        Change(
            title: "m047 a class without objects becomes abstract, and an abstract one concrete",
            old: "P: n String\nQ(P):\nS abstract: n String\nT(S)",
            new: "P abstract: n String\nQ(P):\nS: n String\nT(S)",
            fill: {
                $0.make("Q", "q1"); $0.make("T", "t1")
            },
            expected: ["Q q1", "T t1"]
        ),
        Change(
            title: "m048 a root gets a parent",
            old: "Dog: n String, barks Bool",
            new: "Animal abstract: n String, legs Int16=4\nDog(Animal): barks Bool",
            fill: { $0.make("Dog", "Rex", ["barks": true]) },
            expected: ["Dog Rex barks=1 legs=4"]
        ),
        Change(
            title: "m048 children of one root get a parent between",
            old: "Being: n String\nCat(Being): lives Int16\nDog(Being): barks Bool\nTree(Being)",
            new: "Being: n String\nPet(Being): chip String\nCat(Pet): lives Int16\nDog(Pet): barks Bool\nTree(Being)",
            fill: {
                $0.make("Cat", "Tom", ["lives": 9]); $0.make("Dog", "Rex", ["barks": true]); $0.make("Tree", "Oak")
            },
            expected: ["Cat Tom chip=- lives=9", "Dog Rex barks=1 chip=-", "Tree Oak"]
        ),
        Change(
            title: "m049 an attribute of two children moves up",
            old: "P: n String\nA(P): x String\nB(P): x String\nC(P)",
            new: "P: n String, x String=new\nA(P)\nB(P)\nC(P)",
            fill: {
                $0.make("A", "a1", ["x": "one"]); $0.make("B", "b1", ["x": "two"]); $0.make("C", "c1")
            },
            expected: ["A a1 x=one", "B b1 x=two", "C c1 x=new"]
        ),
        Change(
            title: "m049 an attribute moves down",
            old: "P: n String, x String\nA(P)\nB(P)",
            new: "P: n String\nA(P): x String\nB(P)",
            fill: {
                $0.make("A", "a1", ["x": "one"]); $0.make("B", "b1", ["x": "two"]); $0.make("P", "p1", ["x": "three"])
            },
            expected: ["A a1 x=one", "B b1", "P p1"]
        ),
        Change(
            title: "m049 a to-one relationship of two children moves up",
            old: "P: n String\nA(P): z -> Z\nB(P): z -> Z\nZ: n String",
            new: "P: n String, z -> Z/ps\nA(P)\nB(P)\nZ: n String, ps ->> P/z",
            fill: { context in
                let z = context.make("Z", "z1")
                context.make("A", "a1", ["z": z])
                context.make("B", "b1", ["z": z])
            },
            expected: ["A a1 z=z1", "B b1 z=z1", "Z z1 ps={a1 b1}"]
        ),
        Change(
            title: "m050 a parent is removed, and its children have tables of their own",
            old: "P abstract: n String\nA(P): x Int16\nB(P): y Int16, a -> A/bs\nZ: n String, p -> P\nA2(A)",
            new: "A: n String, x Int16, bs ->> B/a\nB: n String, y Int16, a -> A/bs\nZ: n String\nA2(A)",
            fill: { _ in },
            expected: []
        ),
        Change(
            title: "m050 references follow into the new tables",
            old: "P abstract: n String\nA(P): x Int16, bs ->> B/a\nB(P): y Int16, a -> A/bs",
            new: "A: n String, x Int16, bs ->> B/a\nB: n String, y Int16, a -> A/bs",
            fill: {
                $0.make("B", "b1", ["y": 2, "a": $0.make("A", "a1", ["x": 1])]); $0.make("B", "b2")
            },
            expected: ["A a1 bs={b1} x=1", "B b1 a=a1 y=2", "B b2 a=- y=-"]
        ),
        Change(
            title: "m031 rows of siblings keep NULL in a new column",
            old: "P: n String\nA(P)\nB(P)",
            new: "P: n String\nA(P): x Int16=7\nB(P): y String=why",
            fill: {
                $0.make("A", "a1"); $0.make("B", "b1"); $0.make("P", "p1")
            },
            expected: ["A a1 x=7", "B b1 y=why", "P p1"]
        ),
    ]

    @Test(arguments: changes)
    func `the objects are the same in their new entities`(_ change: Change) throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model(change.old)) { context in
            change.fill(context)
            if context.hasChanges { try context.save() }
        }
        let shown = try store.use(ModelSketch.model(change.new)) { try $0.dump() }
        expectEqual(shown, change.expected)
        try expectEqual(store.problems(ModelSketch.model(change.new)), [])
    }

    @Test func `m031 the column of an entity is NULL in rows of its siblings`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("P: n String\nA(P)\nB(P)")) { context in
            for entity in ["A", "B", "P"] { context.make(entity, entity) }
            try context.save()
        }
        try store.use(ModelSketch.model("P: n String\nA(P): x Int16=7\nB(P)")) { _ in }
        try expectEqual(store.strings("SELECT ZN || IFNULL(ZX, '-') FROM ZP ORDER BY 1"), ["A7", "B-", "P-"])
    }

    @Test func `m047 objects of an entity that becomes abstract are counted`() throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model("P: n String\nQ(P)")) { context in
            for name in ["p1", "p2"] { context.make("P", name) }
            try context.save()
        }
        let error = try #require(throws: CocoaError.self) {
            try store.use(ModelSketch.model("P abstract: n String\nQ(P)")) { _ in }
        }
        expectEqual(error.code, .migration)
        expect(error.localizedDescription.contains("there are 2 objects of this entity, which becomes abstract"))
    }

    @Test(arguments: [
        ("A: n String\nB: n String", "A: n String\nB(A)"),
        ("A: n String\nB: n String", "P abstract: n String\nA(P)\nB(P)"),
        ("A: n String\nX(A)\nB: n String", "A: n String\nB: n String\nX(B)"),
    ])
    func `m048 m051 hierarchies are not merged`(_ old: String, _ new: String) throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model(old)) { _ in }
        let error = try #require(throws: CocoaError.self) { try store.use(ModelSketch.model(new)) { _ in } }
        expectEqual(error.code, .migrationMissingMappingModel)
        let inferred = try require(error.userInfo[NSUnderlyingErrorKey] as? CocoaError)
        expect(inferred.localizedDescription.contains("Two hierarchies cannot be merged in place"))
    }

    @Test func `m078 entities enter and leave the configuration of a store`() throws {
        func model(_ members: [String], _ modifier: String) -> NSManagedObjectModel {
            let model = ModelSketch.model("A #\(modifier): n String\nB: n String\nC: n String")
            model.setEntities(members.compactMap { model.entitiesByName[$0] }, forConfigurationName: "Part")
            return model
        }
        let store = try AgingStore()
        try store.use(model(["A", "B"], "1"), configuration: "Part") { context in
            context.make("A", "a1")
            context.make("B", "b1")
            try context.save()
        }
        try store.use(model(["A", "C"], "2"), configuration: "Part") { context in
            let names = try context.all("A").map { $0.value(forKey: "n") as? String }
            expectEqual(names, ["a1"])
            let found = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "C"))
            expectEqual(found, 0)
        }
        try expect(
            store.strings("SELECT name FROM sqlite_schema WHERE name IN ('ZA', 'ZB', 'ZC') ORDER BY 1") == [
                "ZA", "ZC",
            ]
        )
    }
}
