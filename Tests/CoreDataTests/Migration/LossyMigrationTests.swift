import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Migrations that would drop what a store holds")
struct LossyMigrationTests {
    /// As a program has them that asks for nothing.
    private let plain: [AnyHashable: Any] = [NSPersistentStoreAllowsLossyMigrationOption: false]
    private let old = "A: n String"
    private let new = "A: n String, size Int32=5"

    /// A store that is filled under a version of a model.
    private func store(
        _ sketch: String,
        _ fill: (NSManagedObjectContext) -> Void
    ) throws -> AgingStore {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model(sketch)) { context in
            fill(context)
            try context.save()
        }
        return store
    }

    private func failure(_ store: AgingStore, _ sketch: String) throws -> CocoaError {
        let before = try store.contents()
        let error = try #require(throws: CocoaError.self) { try store.use(ModelSketch.model(sketch), plain) { _ in } }
        try expectEqual(store.contents(), before, "nothing has changed")
        return error
    }

    /// The contents of a store under a version of a model, for a program that asks for nothing.
    private func dump(_ store: AgingStore, _ sketch: String) throws -> [String] {
        try store.use(ModelSketch.model(sketch), plain) { try $0.dump() }
    }

    // MARK: - What is lost

    /// A change of a model, and what the error says is lost.
    struct Loss: Sendable, CustomTestStringConvertible {
        let old: String
        let new: String
        let lost: [String]
        var testDescription: String { "\(old) → \(new)" }
    }

    static let losses = [
        Loss(old: "A: n String, x Int32", new: "A: n String", lost: ["A.x"]),
        Loss(old: "A: n String, x String, y Data", new: "A: n String, z Date", lost: ["A.x", "A.y"]),
        Loss(old: "A: n String, x String\nB(A): n2 String", new: "A: n String\nB(A): n2 String", lost: ["A.x"]),
        Loss(old: "A: n String\nB(A): x String", new: "A: n String\nB(A): y String", lost: ["B.x"]),
        Loss(old: "A: n String\nB: n String", new: "A: n String", lost: ["B"]),
        Loss(old: "A: n String\nB(A): x String", new: "A: n String", lost: ["B"]),
        Loss(old: "A: n String, next -> A", new: "A: n String", lost: ["A.next"]),
        Loss(
            old: "A: n String, b -> B/as\nB: n String, as ->> A/b",
            new: "A: n String\nB: n String",
            lost: ["A.b"]
        ),
        Loss(
            old: "A: n String, bs ->> B/as\nB: n String, as ->> A/bs",
            new: "A: n String\nB: n String",
            lost: ["A.bs"]
        ),
        // Some of the entities of a hierarchy keep the relationship.
        Loss(
            old: "P: n String, z -> Z\nA(P): a String\nB(P): b String\nZ: n String",
            new: "P: n String\nA(P): a String, z -> Z\nB(P): b String\nZ: n String",
            lost: ["P.z"]
        ),
        Loss(
            old: "P: n String, z -> Z/ps\nB(P): b String\nZ: n String, ps ->> P/z",
            new: "P: n String, z -> Z/ps\nB: n String, b String\nZ: n String, ps ->> P/z",
            lost: ["P.z"]
        ),
        Loss(
            old: "P: n String, xs ->> X/ps\nB(P): b String\nX: n String, ps ->> P/xs",
            new: "P: n String, xs ->> X/ps\nB: n String, b String\nX: n String, ps ->> P/xs",
            lost: ["P.xs"]
        ),
        Loss(
            old: "A: n String, xs ->> X\nB(A): b String\nX: n String",
            new: "A: n String, xs ->> X\nB: n String, b String\nX: n String",
            lost: ["A.xs"]
        ),
        // The relationship stays, and leads to fewer entities.
        Loss(
            old: "P: n String\nB(P): b String\nX: n String, item -> P",
            new: "P: n String\nB: n String, b String\nX: n String, item -> P",
            lost: ["X.item"]
        ),
        Loss(
            old: "P: n String, xs =>> X/item\nB(P): b String\nX: n String, item -> P/xs",
            new: "P: n String, xs =>> X/item\nB: n String, b String\nX: n String, item -> P/xs",
            lost: ["X.item"]
        ),
        Loss(
            old: "P: n String\nB(P): b String\nX: n String, items ->> P",
            new: "P: n String\nB: n String, b String\nX: n String, items ->> P",
            lost: ["X.items"]
        ),
    ]

    private func isMember(_ object: NSManagedObject, _ relationship: NSRelationshipDescription) -> Bool {
        relationship.destinationEntity.map { object.entity.isKindOf(entity: $0) } ?? false
    }

    /// Two objects of each entity, each with a value for all that it has.
    private func fill(_ context: NSManagedObjectContext) {
        let entities = (context.persistentStoreCoordinator?.managedObjectModel.entities ?? [])
            .sorted { ($0.name ?? "") < ($1.name ?? "") }
        var objects: [NSManagedObject] = []
        for entity in entities { for _ in 1...2 { objects.append(context.insert(entity.name ?? "")) } }
        for object in objects {
            for (name, attribute) in object.entity.attributesByName {
                switch attribute.type {
                case .string: object.setValue("text", forKey: name)
                case .binaryData: object.setValue(Data([1, 2]), forKey: name)
                case .date: object.setValue(Date(timeIntervalSinceReferenceDate: 1), forKey: name)
                default: object.setValue(7, forKey: name)
                }
            }
            for (name, relationship) in object.entity.relationshipsByName
            where relationship.isToMany && !relationship.isOrdered {
                object.mutableSetValue(forKey: name).addObjects(
                    from: objects.filter { isMember($0, relationship) }
                )
            }
            for (name, relationship) in object.entity.relationshipsByName where !relationship.isToMany {
                object.setValue(objects.first { isMember($0, relationship) }, forKey: name)
            }
        }
    }

    @Test(arguments: losses)
    func `values that have no place in the new version are named, and kept`(_ loss: Loss) throws {
        let store = try store(loss.old, fill)
        let error = try failure(store, loss.new)
        expectEqual(error.code, .migration)
        let details = try require(error.userInfo[NSDetailedErrorsKey] as? [CocoaError])
        let named = details.map { detail in
            [NSModelEntityNameErrorKey, NSModelPropertyNameErrorKey].compactMap { detail.userInfo[$0] as? String }
                .joined(separator: ".")
        }
        expectEqual(named.sorted(), loss.lost)
        for name in loss.lost { expect(error.localizedDescription.contains("\(name): ")) }
        expect(error.localizedDescription.contains("NSPersistentStoreAllowsLossyMigrationOption"))
        // A program that allows it gets the result of Apple's framework.
        try store.use(ModelSketch.model(loss.new), [NSPersistentStoreAllowsLossyMigrationOption: true]) { _ in }
        try expectEqual(store.problems(ModelSketch.model(loss.new)), [])
    }

    @Test(arguments: losses)
    func `the same change drops nothing of a store without values, and needs no permission`(_ loss: Loss) throws {
        let store = try store(loss.old) { _ in }
        try expectEqual(dump(store, loss.new), [])
        try expectEqual(store.problems(ModelSketch.model(loss.new)), [])
    }

    @Test func `what goes on under another name, or from the other side, is not lost`() throws {
        let store = try store(
            "A: n String, x String, b -> B/as\nB: n String, as ->> A/b\nC: n String",
            fill
        )
        let sketch = "A: n String, y{x} String, b -> B\nB: n String\nD{C}: n String"
        let shown = try dump(store, sketch)
        expectEqual(
            shown,
            ["A text b=text y=text", "A text b=text y=text", "B text", "B text", "D text", "D text"]
        )
    }

    @Test func `links of an entity that leaves its hierarchy are not lost if it keeps the relationships`() throws {
        let old = """
            P abstract: n String, z -> Z/ps, xs ->> X/ps
            A(P)
            B(P)
            Z: n String, ps ->> P/z
            X: n String, ps ->> P/xs
            """
        let store = try store(old) { context in
            let (z, x) = (context.make("Z", "z1"), context.make("X", "x1"))
            for (entity, name) in [("A", "a1"), ("B", "b1")] { context.make(entity, name, ["z": z, "xs": Set([x])]) }
        }
        let new = """
            P abstract: n String, z -> Z/ps, xs ->> X/ps
            A(P)
            B: n String, z -> Z, xs ->> X/bs
            Z: n String, ps ->> P/z
            X: n String, ps ->> P/xs, bs ->> B/xs
            """
        try expectEqual(
            dump(store, new),
            ["A a1 xs={x1} z=z1", "B b1 xs={x1} z=z1", "X x1 bs={b1} ps={a1}", "Z z1 ps={a1}"]
        )
        try expectEqual(store.problems(ModelSketch.model(new)), [])
    }

    @Test func `values that are empty throughout are not lost`() throws {
        let store = try store("A: n String, x String") { $0.make("A", "a1") }
        try expectEqual(dump(store, "A: n String"), ["A a1"])
    }

    // MARK: - The way back

    @Test func `an older program leaves a store alone that a later one has migrated`() throws {
        let store = try store(old) { $0.make("A", "a1") }
        try expectEqual(dump(store, "\(old)\nB: n String"), ["A a1"])
        // Nothing would be lost, but the program is older than the store.
        let error = try failure(store, old)
        expectEqual(error.code, .migration)
        expect(error.localizedDescription.contains("a later version of the program"))
        try expectEqual(dump(store, "\(old)\nB: n String"), ["A a1"])
    }

    @Test func `a store that went back on purpose goes forward again`() throws {
        let store = try store(old) { $0.make("A", "a1") }
        try expectEqual(dump(store, new), ["A a1 size=5"])
        try store.use(ModelSketch.model(old), [NSPersistentStoreAllowsLossyMigrationOption: true]) { _ in }
        try expectEqual(dump(store, new), ["A a1 size=5"])
        expectEqual(try failure(store, old).code, .migration)
    }

    @Test func `metadata that a program sets does not hide which versions a store has left`() throws {
        let store = try store(old) { $0.make("A", "a1") }
        try expectEqual(dump(store, new), ["A a1 size=5"])
        try NSPersistentStoreCoordinator.setMetadata(["mine": 1], type: store.kind.type, at: store.url)
        expect(try failure(store, old).localizedDescription.contains("a later version of the program"))
    }

    // MARK: - Ways that say what becomes of values

    @Test func `stages say that what they drop is meant to go`() throws {
        let store = try store("A: n String, x String", fill)
        let models = ["A: n String, x String", "A: n String"].map(ModelSketch.model)
        let references = models.map {
            NSManagedObjectModelReference(model: $0, versionChecksum: $0.versionChecksum)
        }
        let manager = NSStagedMigrationManager([NSLightweightMigrationStage(references: references)])
        let options = plain.merging([NSPersistentStoreStagedMigrationManagerOptionKey: manager]) { $1 }
        let shown = try store.use(ModelSketch.model("A: n String"), options) { try $0.dump() }
        expectEqual(shown, ["A text", "A text"])
    }

    // MARK: - Who allows it

    @Test func `a description allows it, and its copy does`() throws {
        let store = try store("A: n String, x String", fill)
        let description = NSPersistentStoreDescription(url: store.url)
        description.type = store.kind.type.rawValue
        expect(!description.allowsLossyMigration)
        func load() -> (any Error)? {
            let container = NSPersistentContainer(name: "aging", managedObjectModel: ModelSketch.model("A: n String"))
            container.persistentStoreDescriptions = [description]
            var failure: (any Error)?
            container.loadPersistentStores { failure = $1 }
            for store in container.persistentStoreCoordinator.persistentStores {
                try? container.persistentStoreCoordinator.remove(store)
            }
            return failure
        }
        expectEqual((load() as? CocoaError)?.code, .migration)
        description.allowsLossyMigration = true
        expectEqual((description.copy() as? NSPersistentStoreDescription)?.allowsLossyMigration, true)
        expect(load() == nil)
    }

    @Test func `a variable of the environment allows it, and each migration writes one line that names the loss`()
        async throws
    {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            setenv("com.apple.CoreData.AllowsLossyMigration", "1", 1)
            let store = try AgingStore()
            let plain: [AnyHashable: Any] = [NSPersistentStoreAllowsLossyMigrationOption: false]
            try store.use(ModelSketch.model("A: n String, x String"), plain) { context in
                context.insert("A", ["x": "secret"])
                try context.save()
            }
            try store.use(ModelSketch.model("A: n String"), plain) { context in
                try require(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "A")) == 1)
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("CoreData: migration: ") }
        expectEqual(lines.count, 1)
        expect(lines.first?.contains("property x of entity A is removed, with its values") == true, "\(text)")
        expect(!text.contains("secret"))
    }

    @Test func `a plan names what would be lost`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String, x String\nB: n String")) { context in
            fill(context)
            try context.save()
        }
        let plan = try NSMigrationPlan(forStoreAt: store.url, to: ModelSketch.model("A: n String"))
        expect(plan.isPossible)
        expectEqual(plan.losses.map(\.entity), ["A", "B"])
        expectEqual(plan.losses.map(\.property), ["x", nil])
        expect(plan.description.contains("would be lost: A.x: the attribute goes, with the values of 2 objects"))
        expect(plan.description.contains("would be lost: B: the entity goes, with 2 objects"))
    }

    @Test func `a store that is migrated object by object is looked at first, too`() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("store.binary")
        let folder = scratch.file("Versions.xcdatamodeld")
        let name = "<attribute name=\"n\" optional=\"YES\" attributeType=\"String\"/>"
        let versions = [
            """
            <entity name="A">\(name)<attribute name="x" optional="YES" attributeType="String"/>
            <relationship name="next" optional="YES" maxCount="1" destinationEntity="A"/></entity>
            <entity name="B">\(name)</entity>
            """,
            "<entity name=\"A\">\(name)</entity>",
        ]
        let models = try versions.enumerated().map { index, text in
            let version = folder.appendingPathComponent("Version \(index + 1).xcdatamodel")
            try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
            try Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?><model>\(text)</model>".utf8)
                .write(to: version.appendingPathComponent("contents"))
            return try require(NSManagedObjectModel(contentsOf: version))
        }
        func use(_ index: Int, _ options: [AnyHashable: Any], _ body: (NSManagedObjectContext) throws -> Void) throws {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: models[index])
            let store = try coordinator.addPersistentStore(type: .binary, at: url, options: options)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait { try body(context) }
            try coordinator.remove(store)
        }
        try use(0, [:]) { context in
            fill(context)
            try context.save()
        }
        let before = try Data(contentsOf: url)
        var options = AgingStore.migrating.merging(plain) { $1 }
        options[NSPersistentStoreAllowsProgressiveMigrationOption] = folder
        let error = try #require(throws: CocoaError.self) { try use(1, options) { _ in } }
        expectEqual(error.code, .migration)
        for name in ["A.next: ", "A.x: ", "B: "] { expect(error.localizedDescription.contains(name)) }
        try expectEqual(Data(contentsOf: url), before)
        options[NSPersistentStoreAllowsLossyMigrationOption] = true
        try use(1, options) { try expectEqual($0.dump(), ["A text", "A text"]) }
    }
}
