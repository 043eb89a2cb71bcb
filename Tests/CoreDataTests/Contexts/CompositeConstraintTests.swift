import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// A row has a column for each element of a composite attribute, and none for the attribute itself.
@Suite("Uniqueness constraints and indexes of composite attributes")
struct CompositeConstraintTests {
    /// Offices that are unique by their address, and by their name and their spot, each in a composite attribute.
    private static func model(_ constraints: [[String]] = [["address"], ["name", "spot"]], version: String? = nil)
        -> NSManagedObjectModel
    {
        let (address, position, spot) = (
            NSCompositeAttributeDescription(), NSCompositeAttributeDescription(), NSCompositeAttributeDescription()
        )
        address.name = "address"
        address.elements = [attribute("street"), attribute("number", .integer16)]
        position.name = "position"
        position.elements = [attribute("x", .double), attribute("y", .double)]
        spot.name = "spot"
        spot.elements = [attribute("floor", .integer32), position]
        let office = NSEntityDescription("Office", attribute("name"), attribute("note"), address, spot)
        office.uniquenessConstraints = constraints
        office.versionHashModifier = version
        office.indexes = ["address", "spot"].map { name in
            let property = name == "address" ? address : spot
            let elements = [
                NSFetchIndexElementDescription(property: property, collationType: .binary),
                NSFetchIndexElementDescription(property: office.properties[1], collationType: .binary),
            ]
            elements[1].isAscending = false
            return NSFetchIndexDescription(name: "by\(name)", elements: elements)
        }
        return NSManagedObjectModel(office)
    }

    @discardableResult
    private func office(
        _ name: String,
        _ address: [String: Any]?,
        _ spot: [String: Any]? = nil,
        in context: NSManagedObjectContext
    ) -> NSManagedObject {
        let office = NSEntityDescription.insertNewObject(forEntityName: "Office", into: context)
        for (key, value) in ["name": name, "address": address, "spot": spot] as [String: Any?] {
            office.setValue(value, forKey: key)
        }
        return office
    }

    private func address(of conflict: NSConstraintConflict) throws -> String {
        let values = try require(conflict.constraintValues["address"] as? [String: Any])
        return ["street", "number"].map { values[$0].map { "\($0)" } ?? "-" }.joined(separator: " ")
    }

    /// All offices as a new context reads them.
    private func stored(_ stack: Stack) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Office")).map { office in
                ["name", "note", "address.street", "address.number", "spot.floor", "spot.position.x"]
                    .map { office.value(forKeyPath: $0).map { "\($0)" } ?? "-" }.joined(separator: " ")
            }.sorted()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `equal values of all elements are a conflict, which names the attribute`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let context = stack.context()
        try context.performAndWait {
            let first = office("first", ["street": "Main", "number": 7], in: context)
            office("other number", ["street": "Main", "number": 8], in: context)
            office("other street", ["street": "Side", "number": 7], in: context)
            // An address without one of its elements is equal to no other one, as nil is.
            for number in 0..<2 {
                office("without \(number)", nil, in: context)
                office("half \(number)", ["street": "Main"], in: context)
            }
            try context.save()

            let second = office("second", ["street": "Main", "number": 7], in: context)
            let conflicts = try context.constraintConflictsOfSave()
            expectEqual(conflicts.map(\.constraint), [["address"]])
            try expectEqual(address(of: require(conflicts.first)), "Main 7")
            expectEqual(conflicts.first?.databaseObject, first)
            expectEqual(conflicts.first?.conflictingObjects, [second])
            second.setValue(["street": "Main", "number": 9], forKey: "address")
            try context.save()

            // One element of a stored row makes it equal to another.
            second.setValue(8, forKeyPath: "address.number")
            expectThrows(CocoaError.self) { try context.save() }
            expect(second.hasChanges)
            context.rollback()
        }
        try expectEqual(
            stored(stack),
            [
                "first - Main 7 - -", "half 0 - Main - - -", "half 1 - Main - - -", "other number - Main 8 - -",
                "other street - Side 7 - -", "second - Main 9 - -", "without 0 - - - - -", "without 1 - - - - -",
            ]
        )
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `elements inside of elements count, beside another attribute`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let context = stack.context()
        func spot(_ floor: Int, _ x: Double, _ y: Double) -> [String: Any] {
            ["floor": floor, "position": ["x": x, "y": y]]
        }
        try context.performAndWait {
            office("a", nil, spot(1, 2, 3), in: context)
            office("a", nil, spot(1, 2, 4), in: context)
            office("a", nil, spot(2, 2, 3), in: context)
            office("b", nil, spot(1, 2, 3), in: context)
            try context.save()
            office("b", nil, spot(1, 2, 3), in: context)
            try expectEqual(context.constraintConflictsOfSave().map(\.constraint), [["name", "spot"]])
            context.rollback()
            office("c", nil, spot(9, 9, 9), in: context)
            office("c", nil, spot(9, 9, 9), in: context)
            expectThrows(CocoaError.self) { try context.save() }
            context.rollback()
        }
        try expectEqual(stored(stack), ["a - - - 1 2.0", "a - - - 1 2.0", "a - - - 2 2.0", "b - - - 1 2.0"])
    }

    @Test(arguments: StoreKind.allCases)
    func `rows pass their values on in one save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let context = stack.context()
        try context.performAndWait {
            let offices = (1...3).map { office("\($0)", ["street": "Main", "number": $0], in: context) }
            try context.save()
            for (index, office) in offices.enumerated() {
                office.setValue((index + 1) % 3 + 1, forKeyPath: "address.number")
            }
            try context.save()
        }
        try expectEqual(stored(stack), ["1 - Main 2 - -", "2 - Main 3 - -", "3 - Main 1 - -"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a row is taken over under a merge policy, by objects and by a batch`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let main: [String: Any] = ["street": "Main", "number": 7]
        let context = stack.context()
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        try context.performAndWait {
            office("first", main, in: context).setValue("kept", forKey: "note")
            office("other", ["street": "Side", "number": 7], in: context)
            try context.save()
            office("second", main, in: context)
            try context.save()
        }
        try expectEqual(stored(stack), ["other - Side 7 - -", "second kept Main 7 - -"])

        let rows: [[String: Any]] = [
            ["name": "third", "address": main], ["name": "new", "address": ["street": "Main", "number": 1]],
        ]
        let error = expectThrows(CocoaError.self) {
            try stack.execute(NSBatchInsertRequest(entityName: "Office", objects: rows))
        }
        let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSConstraintConflict] ?? []
        expectEqual(conflicts.map(\.constraint), [["address"]])
        try expectEqual(address(of: require(conflicts.first)), "Main 7")
        try stack.execute(NSBatchInsertRequest(entityName: "Office", objects: rows), .mergeByPropertyObjectTrump)
        try expectEqual(stored(stack), ["new - Main 1 - -", "other - Side 7 - -", "third kept Main 7 - -"])

        let update = NSBatchUpdateRequest(entityName: "Office")
        update.propertiesToUpdate = ["address": ["street": "Main", "number": 5]]
        expectThrows(CocoaError.self) { try stack.execute(update) }
        try expectEqual(stored(stack), ["new - Main 1 - -", "other - Side 7 - -", "third kept Main 7 - -"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases.filter { $0 != .memory })
    func `the columns of all elements are indexed`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: Self.model())
        let indexes = try stack.column(
            "SELECT sql FROM sqlite_master WHERE tbl_name = 'ZOFFICE' AND sql LIKE 'CREATE%INDEX%' ORDER BY name",
            postgreSQL: """
                SELECT pg_catalog.pg_get_indexdef(indexrelid) FROM pg_catalog.pg_index
                WHERE indrelid = 'office'::regclass AND NOT indisprimary ORDER BY indexrelid::regclass::text
                """
        )
        let columns = indexes.compactMap { text in
            text.firstIndex(of: "(").map { String(text[text.index(after: $0)...].dropLast()) }
        }
        expectEqual(
            columns,
            kind == .sqlite
                ? [
                    "ZSTREET COLLATE BINARY ASC, ZNUMBER COLLATE BINARY ASC",
                    "ZNAME COLLATE BINARY ASC, ZFLOOR COLLATE BINARY ASC, ZX COLLATE BINARY ASC, ZY COLLATE BINARY ASC",
                    "ZSTREET COLLATE BINARY ASC, ZNUMBER COLLATE BINARY ASC, ZNOTE COLLATE BINARY DESC",
                    "ZFLOOR COLLATE BINARY ASC, ZX COLLATE BINARY ASC, ZY COLLATE BINARY ASC, ZNOTE COLLATE BINARY DESC",
                ]
                : [
                    "address_street NULLS FIRST, address_number NULLS FIRST, note DESC NULLS LAST",
                    "spot_floor NULLS FIRST, spot_position_x NULLS FIRST, spot_position_y NULLS FIRST, note DESC NULLS LAST",
                    "address_street NULLS FIRST, address_number NULLS FIRST",
                    "name NULLS FIRST, spot_floor NULLS FIRST, spot_position_x NULLS FIRST, spot_position_y NULLS FIRST",
                ]
        )
    }

    @Test func `a migration that adds the constraint refuses equal rows, and checks what is saved later`() throws {
        let store = try AgingStore(.migrating)
        let main: [String: Any] = ["street": "Main", "number": 7]
        try store.use(Self.model([])) { context in
            office("first", main, in: context)
            office("second", main, in: context)
            try context.save()
        }
        let error = expectThrows(CocoaError.self) { try store.use(Self.model(version: "2")) { _ in } }
        expect(error?.localizedDescription.contains("address") == true, "\(error?.localizedDescription ?? "")")
        try store.use(Self.model([])) { context in
            let offices = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Office"))
            expectEqual(offices.count, 2)
            offices[0].setValue(8, forKeyPath: "address.number")
            try context.save()
        }
        try store.use(Self.model(version: "2")) { context in
            office("third", main, in: context)
            try expectEqual(context.constraintConflictsOfSave().map(\.constraint), [["address"]])
        }
        try expectEqual(store.problems(Self.model(version: "2")), [])
    }

    @Test func `a store that lacks the index gets it with the next migration`() throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.model([["address"]])) { context in
            office("first", ["street": "Main", "number": 7], in: context)
            try context.save()
        }
        try store.run("DROP INDEX Z_Office_UNIQUE_address", postgreSQL: "DROP INDEX strata_unique_office_address")
        expect(try store.problems(Self.model([["address"]])).contains { $0.contains("address") })
        try store.use(Self.model([["address"]], version: "2")) { context in
            office("second", ["street": "Main", "number": 7], in: context)
            try expectEqual(context.constraintConflictsOfSave().map(\.constraint), [["address"]])
        }
        try expectEqual(store.problems(Self.model([["address"]], version: "2")), [])
    }

    @Test func `an element that the attribute gains counts from the migration on`() throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.model([["address"]])) { context in
            office("first", ["street": "Main", "number": 7], in: context)
            try context.save()
        }
        func grown() -> NSManagedObjectModel {
            let model = Self.model([["address"]])
            let address =
                model.entitiesByName["Office"]?.attributesByName["address"] as? NSCompositeAttributeDescription
            address?.elements.append(attribute("door") { $0.defaultValue = "A" })
            return model
        }
        try store.use(grown()) { context in
            let first = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Office")).first)
            first.setValue("A", forKeyPath: "address.door")
            try context.save()
            office("second", ["street": "Main", "number": 7, "door": "B"], in: context)
            try context.save()
            office("third", ["street": "Main", "number": 7, "door": "B"], in: context)
            try expectEqual(context.constraintConflictsOfSave().map(\.constraint), [["address"]])
        }
        try expectEqual(store.problems(grown()), [])
    }
}
