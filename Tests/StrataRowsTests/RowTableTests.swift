import Expectations
import Foundation
import StrataKeys
import StrataPredicates
import StrataRows
import Testing

/// What rows make of values of every type, and what plans and predicates make of rows.
@Suite("Rows in tables")
struct RowTableTests {
    private static let thing = Schemas.things.entities[0]

    // nonisolated(unsafe): it is only read.
    private nonisolated(unsafe) static let values: [(String, Any)] = [
        ("null", NSNull()), ("true", true), ("5", 5), ("-70000", -70_000), ("2^40", 1 << 40),
        ("UInt64 max", UInt64.max), ("2.9", 2.9), ("-0.5", -0.5),
        ("1e300", 1e300), ("NaN", Double.nan), ("Float 0.1", Float(0.1)), ("NSNumber 2.5", NSNumber(value: 2.5)),
        ("NSNumber 7", NSNumber(value: 7)),
        ("Decimal 1.25", Decimal(string: "1.25") ?? 0), ("NSDecimalNumber", NSDecimalNumber(string: "-3.5")),
        ("'a'", "a"), ("NSString", NSString(string: "b")),
        ("date", Date(timeIntervalSinceReferenceDate: 9)), ("NSDate", NSDate(timeIntervalSinceReferenceDate: 8)),
        ("data", Data([1, 2])),
        ("uuid", UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2))),
        ("url", URL(string: "a:b") ?? URL(fileURLWithPath: "/")), ("list", [1]),
    ]

    private static func text(_ value: Any?) -> String {
        switch value {
        case nil: "nil"
        case let data as Data: "<\(data.map { "\($0)" }.joined(separator: " "))>"
        case let date as Date: "@\(date.timeIntervalSinceReferenceDate)"
        case let value?: "\(value)"
        }
    }

    private static var slots: [Slot] { thing.slots.filter { $0.kind != .reference } }

    @Test func `values of the user in attributes of each type`() throws {
        let lines = Self.slots.flatMap { slot in
            let results = Self.values.map { name, value -> String in
                let row = Row(layout: Self.thing, key: 1)
                do {
                    try row.setAny(value, slot)
                } catch {
                    expect(error is ValueTypeMismatch && row.isNull(slot.index), "\(slot.name) \(name)")
                    return "\(name) ✗"
                }
                return "\(name) → \(Self.text(row.anyValue(slot)))"
            }
            return wrapped(slot.name, results)
        }
        expectTable(lines, Self.taken)
    }

    private static let computed: [(String, PredicateValue)] = [
        ("nil", .null), ("NaN", .double(.nan)), ("0", .int(0)), ("5", .int(5)), ("-40000", .int(-40_000)),
        ("2^40", .int(1 << 40)), ("2.9", .double(2.9)),
        ("-0.4", .double(-0.4)), ("1e300", .double(1e300)), ("inf", .double(.infinity)), ("'a'", .string("a")),
        ("@9", .date(9.5)), ("<1>", .data(Data([1]))),
        ("uuid", .uuid(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2)))), ("entity", .entity(1)),
        ("list", .collection([.int(1)])),
    ]

    /// What batches and derivations set.
    ///
    /// A value goes only into attributes that can hold it, which is asked before.
    @Test func `computed values in attributes of each type`() throws {
        var lines: [String] = []
        for slot in Self.slots {
            var batch: [String] = [], derived: [String] = []
            for (name, value) in Self.computed {
                let row = Row(layout: Self.thing, key: 1)
                row.setDerived(value, slot)
                derived.append("\(name) → \(Self.text(row.anyValue(slot)))")
                expectEqual(row.predicateValue(named: slot.name), row.predicateValue(slot))
                guard slot.type.canHold(ResolvedType(of: value)) else { continue }
                let other = Row(layout: Self.thing, key: 1)
                guard fits(value, slot) else { continue }
                do {
                    try other.setComputed(value, slot)
                    batch.append("\(name) → \(Self.text(other.anyValue(slot)))")
                } catch {
                    batch.append("\(name) ✗")
                    expectEqual(
                        error.localizedDescription,
                        "A batch update of Thing is refused: a value that was worked out does not fit into its attribute."
                    )
                }
            }
            lines += wrapped("\(slot.name) batch", batch) + wrapped("\(slot.name) derived", derived)
        }
        expectTable(lines, Self.worked)
    }

    /// Whether the kind of the value has a setter for the kind of the slot: numbers in texts are made texts before.
    private func fits(_ value: PredicateValue, _ slot: Slot) -> Bool {
        switch (value, slot.kind) {
        case (.null, _), (.int, .int), (.int, .double), (.int, .decimal), (.double, .int), (.double, .double),
            (.double, .decimal), (.date, .int),
            (.date, .double), (.date, .decimal), (.string, .string), (.data, .data), (.uuid, .uuid):
            true
        default: false
        }
    }

    @Test func `types have names, and forms in predicates`() {
        let types: [ResolvedType] = [
            .null, .bool, .integer, .double, .decimal, .date, .string, .uri, .uuid, .data, .transformable, .composite,
            .reference, .entity,
        ]
        let lines = AttributeType.allCases.map { type in
            expectEqual(AttributeType(described: type.described), type)
            let held = types.filter(type.canHold).map(\.rawValue).joined(separator: " ")
            return "\(type.rawValue) \(type.described), \(type.slotKind), \(type.predicateType): \(held)"
        }
        expectTable(lines, Self.types)
        expectEqual(AttributeType(described: "Binary"), .data)
        expectEqual(AttributeType(described: "ObjectID"), .objectID)
        expectEqual(AttributeType(described: "integer 16"), nil)
        let room = [
            Int64(Int16.max), Int64(Int16.max) + 1, Int64(Int16.min), Int64(Int16.min) - 1, Int64(Int32.max),
            Int64(Int32.max) + 1, .max,
        ]
        expectEqual(room.map(AttributeType.integer16.hasRoom), [true, false, true, false, false, false, false])
        expectEqual(room.map(AttributeType.integer32.hasRoom), [true, true, true, true, true, false, false])
        expectEqual(room.map(AttributeType.integer64.hasRoom), Array(repeating: true, count: 7))
    }

    @Test func `texts of derivations`() {
        let texts = [
            "uppercase:(name)", "uppercase(name)", "lowercase:(name)", "canonical:( name )", " canonical:(name) ",
            "canonical:(a.b)", "canonical:()",
            "count:(items)", "count(items)", "count:(items.price)", "sum:(items.price)", "sum:(items)",
            "min:(items.price)", "max:(items.price)",
            "avg:(items.price)", "average:(items.price)", "sum:(a.b.c)", "median:(items.price)", "now()", "now:()",
            "now(1)", "owner.name", "owner",
            "a.b.c", ".b", "a.", "items.@count", "@count.a", "", "(a)", "sum:(items.price", "name)",
        ]
        expectTable(texts.map { "'\($0)' → \(Derivation($0).map { "\($0)" } ?? "none")" }, Self.derivations)
    }

    // MARK: - Predicates

    private final class Reader: RowFinder {
        let storeNumber = 1
        func row(_ identity: PredicateIdentity, in layout: EntityLayout) -> Row? { nil }
        func subject(of relationship: PredicateRelationship, in subject: AnyObject) -> AnyObject? { nil }
        func subjects(of relationship: PredicateRelationship, in subject: AnyObject) -> [AnyObject] { [] }
    }

    /// The quick filter and the evaluator have the same answers.
    @Test func `a filter holds for the rows that the evaluator finds`() throws {
        let terms = ["integer16", "integer64", "boolean", "double", "float", "date"].flatMap { name in
            ["== 1", "!= 1", "< 1", "<= 1", "> 1", ">= 1", "== nil", "!= nil", "== 0.5", "> 0.5", "== -0.0"].map {
                "\(name) \($0)"
            }
        }.map { $0.hasPrefix("date") ? $0.replacing(/(-?[\d.]+)$/) { "CAST(\($0.1), 'NSDate')" } : $0 }
        let texts =
            terms
            + [
                "integer16 == 1 AND double > 0", "integer16 == 1 OR double > 0", "NOT (integer16 == 1 OR double > 0)",
                "NOT integer16 == 1", "TRUEPREDICATE",
                "integer16 == 1 AND string == 'a'", "integer16 == 1 OR string == 'a'", "NOT string == 'a'",
                "integer16 == integer64", "integer16 BETWEEN {1, 2}",
                "integer16 IN {1, 2}", "double == \(Double.infinity.description)", "other == nil",
                "other.integer16 == 1", "others.@count == 0",
                "decimal == 1", "string BEGINSWITH 'a'", "ANY others.integer16 == 1", "uuid == nil",
                "double == nil OR boolean == YES",
            ].map { $0.replacingOccurrences(of: "inf", with: "CAST('inf', 'NSNumber')") }
        let numbers: [Any] = [NSNull(), 0, 1, 2]
        var rows: [Row] = []
        for number in numbers {
            for fraction in [NSNull(), -0.0, 0.5, 1.0, 1.5, Double.nan, Double.infinity] as [Any] {
                let row = Row(layout: Self.thing, key: Int64(rows.count + 1))
                for slot in Self.slots {
                    switch slot.type {
                    case .integer16, .integer64, .boolean: try row.setAny(number, slot)
                    case .double, .float: try row.setAny(fraction, slot)
                    case .date:
                        try row.setAny((fraction as? Double).map { Date(timeIntervalSinceReferenceDate: $0) }, slot)
                    case .string: try row.setAny(number is NSNull ? nil : "a", slot)
                    default: break
                    }
                }
                rows.append(row)
            }
        }
        var unfiltered: [String] = []
        for text in texts {
            let predicate = try PredicateResolver.resolve(NSPredicate(validating: text), schema: Self.thing)
            guard let filter = RowFilter(predicate, layout: Self.thing) else {
                unfiltered.append(text)
                continue
            }
            var evaluator = ResolvedEvaluator(predicate, reader: Reader())
            for row in rows {
                // A number that is none counts as nil, which is why such values never come into a row.
                if row.number("double")?.isNaN == true,
                    text.contains("double") || text.contains("float") || text.contains("date")
                {
                    continue
                }
                let expected = try evaluator.evaluate(row.buffer)
                if filter.matches(row.unsafe) != expected {
                    expectEqual(filter.matches(row.unsafe), expected, "\(text) of \(row.key)")
                }
            }
        }
        expectTable(unfiltered, Self.unfiltered)
    }

    @Test func `the other entities that predicates and orders read`() throws {
        let pets = Schemas.pets
        let texts: [(EntityLayout, String)] = [
            (pets.entities[0], "name == 'a'"), (pets.entities[0], "owner == nil"),
            (pets.entities[0], "owner.pets.@count == 1"),
            (pets.entities[0], "ANY owner.pets.name == 'a'"), (pets.entities[3], "pets.@count == 1"),
            (pets.entities[3], "ANY pets.name == 'a'"),
            (pets.entities[3], "SUBQUERY(pets, $p, $p.name == 'a').@count == 1"),
            (pets.entities[3], "SUBQUERY(pets, $p, $p.owner.pets.@count == 1).@count == 1"),
            (pets.entities[3], "pets.@max.name == 'a'"), (pets.entities[3], "ANY pets == SELF"),
            (pets.entities[1], "NOT (lives BETWEEN {1, 2} OR owner.pets[SIZE] == 2)"),
            (pets.entities[0], "TERNARY(owner == nil, 'a', 'b') == name"),
            (pets.entities[0], "name IN {'a'} AND uppercase(name) LIKE 'A*'"),
            (pets.entities[0], "ANY CAST(owner.pets, 'Cat').lives > 1"),
            (pets.entities[0], "CAST(SELF, 'Cat').lives > 1"),
        ]
        let lines = try texts.map { layout, text in
            var roots: Set<Int> = []
            RelatedEntities.collect(
                try PredicateResolver.resolve(NSPredicate(validating: text), schema: layout).condition,
                into: &roots
            )
            return "\(layout.name) \(text): \(roots.sorted())"
        }
        expectTable(lines, Self.related)
    }

    // MARK: - Plans

    @Test func `windows of answers`() {
        let layout = Self.thing
        for limit in [0, 1, 2, 5, Int.max] {
            for offset in [0, 1, 3, 9, Int.max] {
                let plan = FetchPlan(
                    layout: layout,
                    entityNumbers: [1],
                    coversHierarchy: true,
                    predicate: nil,
                    sort: nil,
                    limit: limit,
                    offset: offset
                )
                for count in 0...6 {
                    let all = Array(0..<count)
                    let expected = all.filter { $0 >= offset && (limit == 0 || $0 - offset < limit) }
                    expectEqual(plan.window(all), expected, "\(limit) \(offset) \(count)")
                    expectEqual(plan.windowed(count), expected.count, "\(limit) \(offset) \(count)")
                }
                expectEqual(plan.isWindowed, limit > 0 || offset > 0)
                expectEqual(plan.end, limit > Int.max - offset ? Int.max : limit + offset)
                let wider = plan.widened(by: 3)
                expectEqual(wider.offset, 0)
                expectEqual(wider.limit, limit == 0 ? 0 : plan.end > Int.max - 3 ? Int.max : plan.end + 3)
                expectEqual(plan.firstPart.limit, offset == 0 ? limit : limit == 0 ? 0 : plan.end)
                expectEqual(plan.unordered.isWindowed, false)
            }
        }
    }

    private final class Reports: @unchecked Sendable {
        // @unchecked Sendable: one thread uses it.
        var lines: [String] = []
    }

    @Test func `the progress of a fetch`() {
        for estimate in [nil, 7] {
            let reports = Reports()
            let control = FetchControl(estimate: estimate) { read, expected in
                reports.lines.append("\(read)/\(expected.map { "\($0)" } ?? "?")")
            }
            expectEqual(control.wantsCount, estimate == nil)
            control.begin()
            control.expect(3)
            control.add(0)
            control.add(2)
            let position = control.position
            control.counting { control.add(5) }
            control.add(1)
            control.expect(2)
            control.goBack(to: position)
            control.counting { control.goBack(to: position) }
            control.begin()
            let wanted =
                estimate == nil
                ? ["0/?", "0/3", "2/3", "3/3", "3/5", "2/3", "0/?"]
                : ["0/7", "0/10", "2/10", "3/10", "3/12", "2/10", "0/7"]
            expectEqual(reports.lines, wanted)
        }
        let silent = FetchControl()
        silent.add(3)
        silent.expect(1)
        expect(!silent.wantsCount)
        expect(!silent.mayReadReplica)
        silent.mayReadReplica = true
        expect(silent.mayReadReplica)
    }

    // MARK: - Small tables

    @Test(arguments: [UInt64(1), 2, 3])
    func `maps and sets of keys have what was put into them`(_ seed: UInt64) {
        var state = seed
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        let special: [Int64] = [.min, .max, -1, 1, 32, 33, 1 << 5, 1 << 10, 1 << 60, 1 << 60 | 1, -(1 << 40)]
        var (map, set, known, keys) = (PersistentMap<Int>(), KeySet(), [Int64: Int](), Set<Int64>())
        var copies: [(PersistentMap<Int>, [Int64: Int])] = []
        for step in 0..<3_000 {
            let key = random(4) == 0 ? special[Int(random(UInt64(special.count)))] : Int64(random(200)) + 1
            switch random(5) {
            case 0, 1:
                map.set(step, for: key)
                known[key] = step
            case 2:
                expectEqual(map.remove(key), known.removeValue(forKey: key))
            case 3:
                map[key] = step % 2 == 0 ? step : nil
                known[key] = step % 2 == 0 ? step : nil
            default: expectEqual(map[key], known[key])
            }
            expectEqual(set.insert(key), keys.insert(key).inserted)
            if step % 500 == 0 { copies.append((map, known)) }
            if map.count != known.count { return expectEqual(map.count, known.count) }
        }
        for (map, known) in copies + [(map, known)] {
            expectEqual(map.sortedKeys, known.keys.sorted())
            expectEqual(map.isEmpty, known.isEmpty)
            for key in special + (0...201) { expectEqual(map[key], known[key]) }
            var visited: [Int64: Int] = [:]
            map.forEach { visited[$0] = $1 }
            expectEqual(visited, known)
        }
        expectEqual(set.count, keys.count)
        for key in special + (1...400) { expectEqual(set.contains(key), keys.contains(key)) }
        expect(KeySet().isEmpty && !KeySet().contains(1) && !set.isEmpty)
        var entries = KeyMap<Int>()
        for (key, value) in known where key != 0 { entries.set(value, for: key) }
        var (place, found) = (0, [Int64: Int]())
        while let (key, value) = entries.entry(from: &place) { found[key] = value }
        expectEqual(found, known)
    }

    @Test func `sets of slots, below and above the 64th`() {
        for slot in [0, 1, 63, 64, 65, 200] {
            var set = SlotSet()
            expect(set.isEmpty)
            set.insert(slot)
            expect(!set.isEmpty && set.contains(slot))
            for other in [0, 1, 63, 64, 65, 200] {
                expectEqual(set.contains(other), other == slot)
                var second = SlotSet()
                second.insert(other)
                expectEqual(set.isDisjoint(with: second), other != slot)
                expectEqual(set == second, other == slot)
                second.formUnion(set)
                expect(second.contains(other) && second.contains(slot))
                second.remove(slot)
                expectEqual(second.contains(other), other != slot)
                expect(!second.contains(slot))
            }
        }
    }

    @Test func `the mask of a history names each changed property, and no other`() {
        for layout in Schemas.pets.entities + [Self.thing] {
            for isWide in [false, true] {
                let places = HistoryPlaces(layout) { _ in isWide }
                let names = layout.slots.map(\.name) + layout.toMany.map(\.name)
                var all = HistoryMask(places)
                for name in names {
                    let mask = places.mask(names: [name, "nosuch"])
                    expectEqual(places.names(of: mask), [name])
                    if let slot = layout.slot(named: name) {
                        var slots = SlotSet()
                        slots.insert(slot.index)
                        expectEqual(places.mask(slots), mask)
                        expect(mask.descriptions.count == 1 && mask.descriptions[0] === slot.description)
                    } else if let slot = layout.toMany(named: name) {
                        expectEqual(places.mask(toMany: [slot.index]), mask)
                    }
                    expect(all.bytes != mask.bytes)
                    all.formUnion(mask)
                    let read = mask.bytes.withUnsafeBytes { HistoryMask(places, $0) }
                    expectEqual(read, mask)
                    let longer = (mask.bytes + [255]).withUnsafeBytes { HistoryMask(places, $0) }
                    expectEqual(longer, mask)
                    expectEqual(Set([read, mask]).count, 1)
                }
                expectEqual(Set(places.names(of: all)), Set(names))
                let bits = all.bytes.reduce(0) { $0 + $1.nonzeroBitCount }
                expectEqual(bits, names.count + (isWide ? layout.referenceSlots.count : 0))
                expectEqual(places.byteCount, (bits + 7) / 8)
            }
        }
        let places = HistoryPlaces(Schemas.words.entities[0]) { _ in false }
        expectEqual(places.names(of: places.derivedMask), ["plain"])
        expect(HistoryMask(places) != HistoryMask(HistoryPlaces(Schemas.words.entities[0]) { _ in false }))
    }

    @Test func `rows of a batch are grouped while entity and properties are the same`() {
        let pets = Schemas.pets
        var rows: [BatchRows] = []
        rows.add(1, pets.entities[0])
        rows.add(2, pets.entities[0])
        rows.add(3, pets.entities[1])
        rows.add(4, pets.entities[1], properties: ["name"])
        rows.add(5, pets.entities[1], properties: ["name"])
        rows.add(6, pets.entities[0])
        expectEqual(
            rows.map { "\($0.layout.name) \($0.keys) \($0.properties)" },
            ["Animal [1, 2] []", "Cat [3] []", #"Cat [4, 5] ["name"]"#, "Animal [6] []"]
        )
        expectEqual(pets.entities[1].slots.propertyNames, ["lives", "name", "owner"])
    }

    /// The values that a stored row takes over from a row of a batch, and those for which it has no place.
    @Test func `values that an upsert takes over`() throws {
        let (animal, cat) = (Schemas.pets.entities[0], Schemas.pets.entities[1])
        let row = Row(layout: cat, key: -1)
        try row.setAny("Tom", require(cat.slot(named: "name")))
        try row.setAny(9, require(cat.slot(named: "lives")))
        var given = SlotSet()
        given.insert(try require(cat.slot(named: "lives")).index)
        func names(_ slots: [Slot]) -> [String] { slots.map(\.name) }
        let (compared, told) = (GivenRow(row: row, given: nil), GivenRow(row: row, given: given))
        expectEqual([BatchInsertion.Upsert.fail, .skip].map { compared.slots($0).count }, [0, 0])
        expectEqual(names(compared.slots(.update)), ["name"])
        expectEqual(names(told.slots(.update)), ["lives"])
        expectEqual(names(told.slots(.replace)), names(cat.slots))
        expectEqual(told.misfits(cat.slots, in: cat), [])
        expectEqual(told.misfits(cat.slots, in: animal), ["lives"])
        row.setNull(try require(cat.slot(named: "lives")))
        expectEqual(told.misfits(cat.slots, in: animal), [])
    }
}

extension Row {
    fileprivate func number(_ name: String) -> Double? {
        layout.slot(named: name).flatMap { (anyValue($0) as? NSNumber)?.doubleValue }
    }
}
