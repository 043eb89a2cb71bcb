import Expectations
import Foundation
import StrataKeys
import StrataMemoryStore
import StrataPredicates
import StrataRows
import Testing

/// After each save and each batch, all rows, versions, members and derived values are compared with what they should be.
@Suite("The whole state of an in-memory store")
struct WholeStateTests {
    private let engine = MemoryEngine(Depot.schema, timeout: 30)

    /// The lines of a script: what is done, and the differences that it makes.
    private final class Script {
        var lines: [String] = []
        var before: [String] = []
    }

    private let script = Script()

    private func note(_ title: String, _ results: [String]) throws {
        let after = try engine.state()
        let (old, new) = (Set(script.before), Set(after))
        script.lines.append("\(title):\(results.isEmpty ? "" : " " + results.joined(separator: ", "))")
        script.lines += script.before.filter { !new.contains($0) }.map { "  - \($0)" }
        script.lines += after.filter { !old.contains($0) }.map { "  + \($0)" }
        script.before = after
    }

    private func save(_ title: String, _ changes: StoreChanges) throws {
        let (conflicts, reread) = try engine.save(changes)
        let rows = reread.map { "\($0.layout.name) \($0.key)" }.sorted()
        try note(
            title,
            conflicts.map(\.summary).sorted() + (rows.isEmpty ? [] : ["reread \(rows.joined(separator: " "))"])
        )
        for row in reread { try expectEqual(engine.stored(row)?.version, row.version) }
    }

    private func execute(_ title: String, _ work: Batch.Work) throws {
        var changes = BatchChanges()
        let recorder = Batch.Recorder(author: nil, contextName: nil)
        do {
            let batch = Batch(request: NSObject(), work: work, listsRows: true, recordedBy: recorder)
            try engine.execute(batch, willCommit: { _ in }, didCommit: { changes = $0 })
        } catch let clashes as BatchClashes {
            let texts = clashes.clashes.map { clash in
                "\(clash.position) \(clash.constraint) \(clash.row.text("name") ?? "") \(clash.stored.map { "\($0.key)" } ?? "new") \(clash.misfits)"
            }
            return try note(title, ["clashes in \(clashes.layout.name)"] + texts)
        } catch {
            return try note(title, ["\((error as NSError).code) \(error.localizedDescription)"])
        }
        let groups: [(String, [BatchRows])] = [
            ("new", changes.inserted), ("changed", changes.changed), ("followed", changes.followed),
            ("related", changes.related),
            ("deleted", changes.deleted),
        ]
        let texts = groups.flatMap { name, rows in
            // Rows that were derived anew come in no order.
            Dictionary(grouping: rows) { "\(name) \($0.layout.name) \($0.properties)" }
                .map { "\($0) \($1.flatMap(\.keys).sorted())" }
        }
        expect(changes.unlistedRoots.isEmpty)
        try note(title, ["\(changes.count)"] + texts.sorted())
    }

    private func row(_ layout: EntityLayout, _ key: Int64) throws -> Row {
        try require(engine.row(forKey: key, in: layout))
    }

    private func new(_ layout: EntityLayout, _ key: Int64, _ values: [String: Any] = [:]) throws -> Row {
        try Row.new(layout, key, values)
    }

    private func update(
        _ layout: EntityLayout,
        _ format: String,
        _ values: [String: Any],
        _ computed: [String: String] = [:]
    ) throws -> Batch.Work {
        let constants = try Row.new(layout, 0, values)
        let nils = values.isEmpty && computed.isEmpty ? ["rack"] : []
        let slots = try (values.keys.sorted() + nils).map { try require(layout.slot(named: $0)) }
        return .update(
            BatchUpdate(
                rows: try engine.plan(layout, format),
                constants: constants,
                constantSlots: slots,
                computed: try computed.sorted { $0.key < $1.key }.map { name, text in
                    let expression = try PredicateResolver.resolve(NSExpression(validating: text), schema: layout)
                        .expression
                    return BatchUpdate.Computed(slot: try require(layout.slot(named: name)), expression: expression)
                },
                variableCount: 1
            )
        )
    }

    private final class Rows: GivenRows {
        private var rows: [Row]
        var count: Int? { nil }
        init(_ rows: [Row]) { self.rows = rows }
        func next() -> GivenRow? { rows.isEmpty ? nil : GivenRow(row: rows.removeFirst(), given: nil) }
    }

    private func insertion(_ layout: EntityLayout, _ upsert: BatchInsertion.Upsert, _ values: [[String: Any]]) throws
        -> Batch.Work
    {
        let rows = try values.map { try Row.new(layout, 0, $0) }
        return .insert(BatchInsertion(layout: layout, rows: Rows(rows), upsert: upsert))
    }

    private func deletion(_ layout: EntityLayout, _ format: String) throws -> Batch.Work {
        .delete(BatchDeletion(rows: try engine.plan(layout, format)))
    }

    // MARK: - Saves

    @Test func `saves change what they name, what follows from it, and nothing else`() throws {
        let (north, south) = (try new(Depot.rack, -1, ["label": "N"]), try new(Depot.rack, -2, ["label": "S"]))
        let crates = try (1...4).map { number in
            try new(
                number == 4 ? Depot.big : Depot.crate,
                Int64(-10 - number),
                ["name": "c\(number)", "code": "\(number)", "price": number, "rack": north]
            )
        }
        let marks = try ["x", "y", "z"].enumerated().map { try new(Depot.mark, Int64(-20 - $0), ["word": $1]) }
        let seal = try new(Depot.seal, -30, ["text": "s", "crate": crates[0]])
        try crates[0].set(["seal": seal, "spare": south])
        try save(
            "insert",
            StoreChanges(
                inserted: [north, south] + crates + marks + [seal],
                toMany: [
                    north.change("crates", order: crates), north.change("wishes", adding: [crates[0], crates[1]]),
                    crates[0].change("marks", adding: marks, order: [marks[2], marks[0], marks[1]]),
                    crates[1].change("marks", adding: [marks[1]], order: [marks[1]]),
                ]
            )
        )
        try save("one name", StoreChanges(updated: [row(Depot.crate, 2).changed(["name": "two"])]))
        try save("one price", StoreChanges(updated: [row(Depot.crate, 2).changed(["price": 20])]))
        try save("no price", StoreChanges(updated: [row(Depot.crate, 3).changed(["price": NSNull()])]))
        try save("a label", StoreChanges(updated: [row(Depot.rack, 2).changed(["label": "SS"])]))
        try save("a label of four", StoreChanges(updated: [row(Depot.rack, 1).changed(["label": "NN"])]))
        try save(
            "another rack",
            StoreChanges(
                updated: [row(Depot.crate, 1).changed(["rack": row(Depot.rack, 2)])],
                toMany: [
                    row(Depot.rack, 1).change(
                        "crates",
                        order: [row(Depot.crate, 4), row(Depot.crate, 3), row(Depot.crate, 2)]
                    ),
                    row(Depot.rack, 2).change("crates", order: [row(Depot.crate, 1)]),
                ]
            )
        )
        try save(
            "an order",
            StoreChanges(
                updated: [RowUpdate(row: row(Depot.rack, 1).copy(), baseVersion: 2, changed: SlotSet())],
                toMany: [
                    row(Depot.rack, 1).change(
                        "crates",
                        order: [row(Depot.crate, 2), row(Depot.crate, 3), row(Depot.crate, 4)]
                    )
                ]
            )
        )
        try save(
            "marks",
            StoreChanges(toMany: [
                row(Depot.crate, 1).change(
                    "marks",
                    removing: [row(Depot.mark, 3)],
                    order: [row(Depot.mark, 2), row(Depot.mark, 1)]
                ),
                row(Depot.crate, 4).change("marks", adding: [row(Depot.mark, 3)], order: [row(Depot.mark, 3)]),
            ])
        )
        try save(
            "a wish moves",
            StoreChanges(toMany: [
                row(Depot.rack, 2).change("wishes", adding: [row(Depot.crate, 2), row(Depot.crate, 4)])
            ])
        )
        try save(
            "a wish goes",
            StoreChanges(toMany: [
                row(Depot.rack, 1).change("wishes", removing: [row(Depot.crate, 1), row(Depot.crate, 2)])
            ])
        )
        try save("a wished price", StoreChanges(updated: [row(Depot.crate, 4).changed(["price": 40])]))
        try save("no spare", StoreChanges(updated: [row(Depot.crate, 1).changed(["spare": row(Depot.rack, 1)])]))
        try save(
            "conflicts",
            StoreChanges(
                inserted: [
                    new(Depot.crate, -1, ["code": "2"]), new(Depot.big, -2, ["code": "9"]),
                    new(Depot.crate, -3, ["code": "9"]),
                ],
                updated: [RowUpdate(row: row(Depot.crate, 3).copy(), baseVersion: 1, changed: SlotSet())],
                deleted: [ExpectedRow(layout: Depot.mark, key: 7, baseVersion: 1)],
                locked: [ExpectedRow(layout: Depot.rack, key: 1, baseVersion: 9)]
            )
        )
        try save("a crate that is wished for goes", StoreChanges(deleted: [row(Depot.crate, 4).lock]))
        try save("a rack with crates goes", StoreChanges(deleted: [row(Depot.rack, 1).lock]))
        try save("a mark goes", StoreChanges(deleted: [row(Depot.mark, 2).lock]))
        let revived = try new(Depot.rack, 1, ["label": "again"])
        revived.setVersion(5)
        try save("the rack is back", StoreChanges(inserted: [revived]))
        let twice = try new(Depot.rack, 1)
        twice.setVersion(5)
        try save("and twice", StoreChanges(inserted: [twice]))
        try save("the owner of wishes goes", StoreChanges(deleted: [row(Depot.rack, 2).lock]))
        try save(
            "copies",
            StoreChanges(
                inserted: [new(Depot.mark, 12, ["word": "copy"])],
                keptKeys: [Depot.mark.rootNumber: 40, Depot.crate.rootNumber: 1]
            )
        )
        try save("new keys", StoreChanges(inserted: [new(Depot.mark, -1), new(Depot.crate, -2), new(Depot.big, -3)]))
        try expectEqual(engine.lastKeys([1, 3, 5, 6]), [1: 6, 3: 2, 5: 41, 6: 0])
        expectTable(script.lines, Self.saves)
    }

    // MARK: - Batches

    @Test func `batches change what they name, what follows from it, and nothing else`() throws {
        let racks = try ["N", "S"].enumerated().map { try new(Depot.rack, Int64(-1 - $0), ["label": $1]) }
        let crates = try (1...5).map { number in
            try new(
                number == 5 ? Depot.big : Depot.crate,
                Int64(-10 - number),
                ["name": "c\(number)", "code": "\(number)", "price": number, "size": number, "rack": racks[0]]
            )
        }
        let owner = try new(Depot.owner, -40)
        let parts = try (1...3).map {
            try new(Depot.part, Int64(-50 - $0), ["number": $0, "crate": crates[$0 == 3 ? 4 : 0], "owner": owner])
        }
        let seals = try [0, 1].map { try new(Depot.seal, Int64(-60 - $0), ["text": "s\($0)", "crate": crates[$0]]) }
        for (crate, seal) in zip(crates, seals) { try crate.set(["seal": seal]) }
        let marks = try ["x", "y"].enumerated().map { try new(Depot.mark, Int64(-70 - $0), ["word": $1]) }
        try save(
            "insert",
            StoreChanges(
                inserted: racks + crates + [owner] + parts + seals + marks,
                toMany: [
                    racks[0].change("crates", order: [crates[4], crates[2], crates[0], crates[1], crates[3]]),
                    racks[1].change("wishes", adding: [crates[1]]),
                    crates[0].change("marks", adding: marks, order: [marks[1], marks[0]]),
                    crates[2].change("marks", adding: [marks[0]], order: [marks[0]]),
                ]
            )
        )
        let (north, south) = (try row(Depot.rack, 1), try row(Depot.rack, 2))
        try execute("no row", update(Depot.crate, "price > 99", ["name": "none"]))
        try execute("names", update(Depot.crate, "price > 3", ["name": "dear"]))
        try execute("of sub-entities", update(Depot.big, "TRUEPREDICATE", ["weight": 1.5]))
        try execute(
            "computed",
            update(Depot.crate, "price < 3", ["code": NSNull()], ["price": "price * 2", "size": "size + price"])
        )
        try execute("too large", update(Depot.crate, "price > 3", [:], ["size": "size + 40000"]))
        try execute("no number", update(Depot.crate, "price > 3", [:], ["price": "price / (size - 4)"]))
        try execute("moved", update(Depot.crate, "price IN {2, 3}", ["rack": south]))
        try execute("moved to where it is", update(Depot.crate, "price == 3", ["rack": south]))
        try execute("moved back", update(Depot.crate, "price == 3", ["rack": north]))
        try execute("out of the rack", update(Depot.crate, "price == 2", [:]))
        try execute("into the rack again", update(Depot.crate, "price == 2", ["rack": north]))
        try execute("to a rack that is gone", update(Depot.crate, "price == 2", ["rack": Row.new(Depot.rack, 9)]))
        try execute("a seal moves", update(Depot.seal, "text == 's0'", ["crate": row(Depot.crate, 3)]))
        try execute("one code", update(Depot.crate, "price > 3", ["code": "same"]))
        try execute("a label", update(Depot.rack, "label == 'N'", ["label": "NN"]))

        try execute(
            "insert",
            insertion(Depot.crate, .fail, [["name": "n1", "rack": south, "price": 1], ["name": "n2", "code": "n"]])
        )
        try execute(
            "clashes",
            insertion(
                Depot.crate,
                .fail,
                [["code": "n", "name": "a"], ["code": "q", "name": "b"], ["code": "q", "name": "c"]]
            )
        )
        try execute(
            "skips",
            insertion(
                Depot.crate,
                .skip,
                [["code": "n", "name": "a"], ["code": "r", "name": "b"], ["code": "r", "name": "c"]]
            )
        )
        try execute(
            "updates",
            insertion(
                Depot.crate,
                .update,
                [
                    ["code": "n", "price": 7], ["code": "r", "rack": north], ["code": "t"],
                    ["code": "t", "name": "tt"],
                ]
            )
        )
        try execute("replaces", insertion(Depot.crate, .replace, [["code": "n", "size": 8], ["code": "r"]]))
        try execute("misfits", insertion(Depot.big, .update, [["code": "n", "weight": 8]]))
        try execute("no such rack", insertion(Depot.crate, .update, [["code": "z", "rack": Row.new(Depot.rack, 9)]]))
        try execute("no number", insertion(Depot.crate, .update, [["code": "z", "price": Double.nan]]))

        try execute("a rack with crates", deletion(Depot.rack, "label == 'NN'"))
        try execute("of what is wished for, with its parts", deletion(Depot.crate, "name == 'c2'"))
        try execute("an owner of what needs one", deletion(Depot.owner, "TRUEPREDICATE"))
        try execute("with parts", deletion(Depot.crate, "parts.@count > 0"))
        try execute("a mark", deletion(Depot.mark, "word == 'x'"))
        try execute("nothing", deletion(Depot.mark, "word == 'x'"))
        try save("a spare", StoreChanges(updated: [row(Depot.crate, 3).changed(["spare": row(Depot.rack, 2)])]))
        try execute("no crate in it", update(Depot.crate, "name == 'n1'", [:]))
        try execute("a spare rack", deletion(Depot.rack, "label == 'S'"))
        try execute("all crates", deletion(Depot.crate, "TRUEPREDICATE"))
        try execute("all racks", deletion(Depot.rack, "TRUEPREDICATE"))
        expectTable(script.lines, Self.batches)
    }

    // MARK: - What a batch and a save leave behind

    /// A member that comes back after a batch took it out is the last one: the order has forgotten its place.
    @Test(arguments: ["move", "clear", "delete", "delete mark"])
    func `a member that a batch took out comes back as the last`(_ way: String) throws {
        let racks = try [-1, -2].map { try new(Depot.rack, $0) }
        let crates = try (1...3).map { try new(Depot.crate, Int64(-10 - $0), ["size": $0, "rack": racks[0]]) }
        let marks = try (1...3).map { try new(Depot.mark, Int64(-20 - $0), ["word": "\($0)"]) }
        try engine.save(
            StoreChanges(
                inserted: racks + crates + marks,
                toMany: [
                    racks[0].change("crates", order: crates), crates[0].change("marks", adding: marks, order: marks),
                ]
            )
        )
        func revived(_ layout: EntityLayout, _ key: Int64, _ values: [String: Any]) throws -> Row {
            let row = try new(layout, key, values)
            row.setVersion(3)
            return row
        }
        switch way {
        case "move": try execute(way, update(Depot.crate, "size == 2", ["rack": racks[1]]))
        case "clear": try execute(way, update(Depot.crate, "size == 2", [:]))
        case "delete": try execute(way, deletion(Depot.crate, "size == 2"))
        default: try execute(way, deletion(Depot.mark, "word == '2'"))
        }
        switch way {
        case "move", "clear": try engine.update(row(Depot.crate, 2), ["rack": row(Depot.rack, 1)])
        case "delete": try engine.insert(revived(Depot.crate, 2, ["rack": row(Depot.rack, 1)]))
        default:
            let mark = try revived(Depot.mark, 2, [:])
            try engine.save(
                StoreChanges(inserted: [mark], toMany: [mark.change("crates", adding: [row(Depot.crate, 1)])])
            )
        }
        try expectEqual(
            engine.members("crates", of: row(Depot.rack, 1)),
            way == "delete mark" ? [1, 2, 3] : [1, 3, 2]
        )
        try expectEqual(
            engine.members("marks", of: row(Depot.crate, 1)),
            way == "delete mark" ? [1, 3, 2] : [1, 2, 3]
        )
    }

    /// Rows that were taken as they were are not derived by a later save that has nothing to do with them.
    @Test func `a save derives its own rows, and not those that were taken as they were`() throws {
        var contents = InMemoryContents(Depot.schema)
        let (rack, crate) = (
            try new(Depot.rack, 5, ["label": "N", "count": 77]),
            try new(Depot.crate, 6, ["name": "a", "sign": "?", "rack": try new(Depot.rack, 5)])
        )
        _ = contents.apply(StoreChanges(inserted: [rack, crate]), derives: false)
        expect(contents.outdated.keys.isEmpty)
        expectEqual(contents.rows[Depot.crate.rootNumber]?[6]?.text("sign"), "?")

        let result = contents.apply(StoreChanges(inserted: [try new(Depot.crate, -1, ["name": "b"])]))
        expectEqual(result.reread.map { "\($0.layout.name) \($0.key)" }, ["Crate 1"])
        expectEqual(contents.rows[Depot.crate.rootNumber]?[6]?.text("sign"), "?")
        expectEqual(contents.rows[Depot.rack.rootNumber]?[5]?.number("count"), 77)
        expect(contents.outdated.keys.isEmpty)
        // A change of the row itself derives it.
        _ = contents.apply(
            StoreChanges(updated: [try require(contents.rows[Depot.crate.rootNumber]?[6]).changed(["price": 1])])
        )
        expectEqual(contents.rows[Depot.crate.rootNumber]?[6]?.text("sign"), "A")
        expectEqual(contents.rows[Depot.rack.rootNumber]?[5]?.number("worth"), 1)
    }

    @Test func `the moment of a save is that of the row's own changes`() throws {
        let schema: Schema = {
            var note = EntityDefinition(name: "Note", companion: Warehouse.Description())
            note.properties = [
                Warehouse.attribute("text", .string), Warehouse.attribute("saved", .date, "now()"),
                Warehouse.attribute("topic", .string, "page.title"),
                Warehouse.relationship("page", to: 2, inverse: "notes"),
            ]
            var page = EntityDefinition(name: "Page", companion: Warehouse.Description())
            page.properties = [
                Warehouse.attribute("title", .string),
                Warehouse.relationship("notes", to: 1, inverse: "page", isToMany: true),
            ]
            return Schema([note, page])
        }()
        let engine = MemoryEngine(schema, timeout: 30)
        let (note, page) = (schema.entities[0], schema.entities[1])
        let earlier = Date(timeIntervalSinceReferenceDate: 1)
        let leaf = try Row.new(page, -1, ["title": "a"])
        try engine.insert(leaf, Row.new(note, -2, ["text": "x", "saved": earlier, "page": leaf]))
        func saved() throws -> Date { try require(engine.row(forKey: 1, in: note)?["saved"] as? Date) }
        let first = try saved()
        expect(abs(first.timeIntervalSinceNow) < 60)
        try engine.update(require(engine.row(forKey: 1, in: page)), ["title": "b"])
        try expectEqual(engine.row(forKey: 1, in: note)?.text("topic"), "b")
        try expectEqual(saved(), first)
        try engine.update(require(engine.row(forKey: 1, in: note)), ["text": "y", "saved": earlier])
        try expect(saved() >= first)
    }

    // MARK: - Unique values

    @Test func `values of every kind are unique, and missing values and temporary targets are not`() throws {
        let types: [(String, AttributeType, [Any])] = [
            ("integer", .integer64, [1, 2, Int64.max]), ("boolean", .boolean, [true, false]),
            ("double", .double, [0.5, -0.5, Double.infinity]),
            ("float", .float, [0.5, 2.5]), ("text", .string, ["a", "A", "\u{E9}", "e\u{301}", ""]),
            ("date", .date, [Date(timeIntervalSinceReferenceDate: 0), Date(timeIntervalSinceReferenceDate: 1)]),
            ("data", .data, [Data(), Data([0]), Data([0, 0])]), ("uuid", .uuid, [UUID(), UUID()]),
            ("decimal", .decimal, [Decimal(1), Decimal(string: "1.5")!]),
            ("uri", .uri, [URL(string: "a:b")!, URL(string: "a:c")!]),
        ]
        let schema: Schema = {
            var thing = EntityDefinition(name: "Thing", companion: Warehouse.Description())
            thing.properties =
                types.map { Warehouse.attribute($0.0, $0.1) } + [Warehouse.relationship("other", to: 1, inverse: nil)]
            thing.uniquenessConstraints = types.map { [$0.0] } + [["other"]]
            return Schema([thing])
        }()
        let thing = schema.entities[0]
        for (name, _, values) in types {
            let engine = MemoryEngine(schema, timeout: 30)
            for (index, value) in values.enumerated() {
                try expectEqual(engine.insert(Row.new(thing, -1, [name: value])).map(\.summary), [], "\(name) \(value)")
                try expectEqual(
                    engine.insert(Row.new(thing, -1, [name: value])).map(\.summary),
                    ["\(name) of [-1] is that of \(index + 1)"],
                    "\(name) \(value)"
                )
            }
            try expectEqual(engine.insert(Row.new(thing, -1), Row.new(thing, -2)).count, 0)
            try expectEqual(engine.delete(require(engine.row(forKey: 1, in: thing))).count, 0)
            try expectEqual(engine.insert(Row.new(thing, -1, [name: values[0]])).count, 0, "\(name) is free again")
        }
        let engine = MemoryEngine(schema, timeout: 30)
        let target = try Row.new(thing, -1)
        try expectEqual(engine.insert(target, Row.new(thing, -2, ["other": target])).count, 0)
        try expectEqual(
            engine.insert(Row.new(thing, -3, ["other": target])).map(\.summary),
            ["other of [-3] is that of 2"]
        )
        try expectEqual(
            engine.insert(Row.new(thing, -3, ["other": require(engine.row(forKey: 2, in: thing))])).count,
            0
        )
    }
}
