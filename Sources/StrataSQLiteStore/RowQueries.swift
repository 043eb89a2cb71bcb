import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// The means of reading a store's rows: shapes and statements, made once and used on any of its connections.
final class RowQueries: Sendable {
    let mapping: SQLMapping
    let external: ExternalData
    let url: URL?

    /// The shapes of entities with their sub-entities, by the entity's number in the store.
    private let deepShapes: [RowShape]
    private let ownShapes: [RowShape]
    /// Numbers in the model by numbers in the store.
    private let modelNumbers: [Int]
    /// The statements by the entity's number in the store, and by to-many relationship.
    private let membersStatements: [[SQL?]]
    /// The statements of simple fetches of whole rows.
    let texts = FetchTexts()

    init(_ mapping: SQLMapping, external: ExternalData, url: URL?) {
        self.mapping = mapping
        self.external = external
        self.url = url
        deepShapes = mapping.entities.map { RowShape($0, in: mapping, isDeep: true) }
        ownShapes = mapping.entities.map { RowShape($0, in: mapping, isDeep: false) }
        modelNumbers = mapping.entities.map(\.layout.number)
        membersStatements = mapping.entities.map { $0.toMany.map(Self.membersStatement) }
    }

    func shape(_ mapping: EntityMapping, isDeep: Bool = true) -> RowShape {
        isDeep ? deepShapes[mapping.number - 1] : ownShapes[mapping.number - 1]
    }

    /// The number of an entity in the model, by its number in the store.
    @inline(__always)
    func modelNumber(_ storeNumber: Int64, _ unknown: Int) -> Int {
        storeNumber > 0 && storeNumber <= modelNumbers.count ? modelNumbers[Int(storeNumber) - 1] : unknown
    }

    func membersStatement(_ relationship: ToManySlot, _ entity: EntityMapping) -> SQL? {
        membersStatements[entity.number - 1][relationship.index]
    }

    /// The data behind a tag; `nil` if its file is missing, or if the tag is unknown.
    ///
    /// - Throws: The reason why an existing file cannot be read.
    func tagged(_ value: Value) throws -> Data? {
        switch ExternalData.content(value.bytes) {
        case .inline(let data): return data
        case .file(let name):
            if let data = try external.read(name) { return data }
            MissedFiles.add(name)
            return nil
        case .malformed: return nil
        }
    }

    // MARK: - By key

    /// Reads one row.
    func row(_ key: Int64, of entity: EntityMapping, on connection: Connection, stamp: UInt32) throws -> Row? {
        let shape = shape(entity)
        let statement = try connection.statement(shape.selectByKey)
        try statement.bind(key, at: 1)
        guard try statement.step() else { return nil }
        let offset = connection.note.versionOffset
        return try shape.row(statement, stamp: stamp, offset: offset, self)
            ?? rowOfHierarchy(key, of: entity, on: connection, stamp: stamp)
    }

    /// Reads one row of which only the hierarchy is known.
    private func rowOfHierarchy(
        _ key: Int64,
        of entity: EntityMapping,
        on connection: Connection,
        stamp: UInt32
    ) throws -> Row? {
        let shape = deepShapes[entity.rootNumber - 1]
        let statement = try connection.statement(shape.selectByKey)
        try statement.bind(key, at: 1)
        guard try statement.step() else { return nil }
        let offset = connection.note.versionOffset
        guard let row = try shape.row(statement, stamp: stamp, offset: offset, self) else {
            throw unknownEntity(statement, shape)
        }
        return row
    }

    /// Reads the rows with these keys, as far as they exist.
    ///
    /// - Complexity: O(log n) a key, with one statement for all. Keys that lie close together are read in one scan.
    func rows(_ keys: [Int64], of entity: EntityMapping, on connection: Connection, stamp: UInt32) throws -> [Row] {
        guard keys.count > 1 else {
            return try keys.compactMap { try row($0, of: entity, on: connection, stamp: stamp) }
        }
        let keys = keys.sorted()
        // Both exist, because there are at least two keys.
        let (first, last) = (keys[0], keys[keys.count - 1])
        let (span, overflow) = last.subtractingReportingOverflow(first)
        if !overflow, keys.count > 16, span / 2 < Int64(keys.count) {
            return try sweep(keys, in: first...last, of: entity, on: connection, stamp: stamp)
        }
        var rows: [Row] = []
        rows.reserveCapacity(keys.count)
        let shape = shape(entity)
        let statement = try connection.statement(shape.selectByKeys)
        try statement.bind(ValueList(keys.map { .integer($0) }), at: 1)
        let offset = connection.note.versionOffset
        // Rows of entities that the shape does not cover are read one by one, once this statement is done.
        var others: [Int64] = []
        while try statement.step() {
            if let row = try shape.row(statement, stamp: stamp, offset: offset, self) {
                rows.append(row)
            } else {
                others.append(statement[ColumnPlan.keyPosition].int64)
            }
        }
        for key in others {
            if let row = try rowOfHierarchy(key, of: entity, on: connection, stamp: stamp) { rows.append(row) }
        }
        return rows
    }

    private func sweep(
        _ keys: [Int64],
        in range: ClosedRange<Int64>,
        of entity: EntityMapping,
        on connection: Connection,
        stamp: UInt32
    ) throws -> [Row] {
        var rows: [Row] = []
        rows.reserveCapacity(keys.count)
        let shape = deepShapes[entity.rootNumber - 1]
        let statement = try connection.statement(shape.selectRange)
        try statement.bind(range.lowerBound, at: 1)
        try statement.bind(range.upperBound, at: 2)
        let offset = connection.note.versionOffset
        var next = 0
        while try statement.step() {
            // Both are ascending: the table is scanned in the order of its keys.
            let key = statement[ColumnPlan.keyPosition].int64
            while next < keys.count, keys[next] < key { next += 1 }
            guard next < keys.count, keys[next] == key else { continue }
            guard let row = try shape.row(statement, stamp: stamp, offset: offset, self) else {
                throw unknownEntity(statement, shape)
            }
            rows.append(row)
        }
        return rows
    }

    /// The error for a row whose `Z_ENT` no entity of the hierarchy has.
    func unknownEntity(_ statement: borrowing Statement, _ shape: RowShape) -> CocoaError {
        let key = statement[ColumnPlan.keyPosition].int64
        let number = statement[ColumnPlan.entityPosition].string
        return SQLiteBoundary.damaged(
            url,
            "row \(key) of table \(shape.plan.mapping.table.raw) has entity number \(number.isEmpty ? "NULL" : number), which no entity of its hierarchy has."
        )
    }
}
