import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// Everything that reads rows of a store: shapes and statements, made once, used on any connection of it.
final class RowQueries: Sendable {
    let mapping: SQLMapping
    let external: ExternalData
    let url: URL?

    /// By the entity's number in the store: with its sub-entities, and alone.
    private let deepShapes: [RowShape]
    private let ownShapes: [RowShape]
    /// Numbers in the model by numbers in the store.
    private let modelNumbers: [Int]
    /// By the entity's number in the store, and by to-many relationship.
    private let membersStatements: [[SQL?]]

    init(_ mapping: SQLMapping, _ external: ExternalData, _ url: URL?) {
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

    /// The number in the model of an entity by its number in the store.
    @inline(__always)
    func modelNumber(_ storeNumber: Int64, _ unknown: Int) -> Int {
        storeNumber > 0 && storeNumber <= modelNumbers.count ? modelNumbers[Int(storeNumber) - 1] : unknown
    }

    func membersStatement(_ relationship: ToManySlot, _ entity: EntityMapping) -> SQL? {
        membersStatements[entity.number - 1][relationship.index]
    }

    /// The data behind a tag; `nil` if its file is missing, or there is no tag that we know.
    ///
    /// - Throws: Why a file that is there cannot be read.
    func tagged(_ value: Value) throws -> Data? {
        switch ExternalData.content(value.bytes) {
        case .inline(let data): return data
        case .file(let name):
            if let data = try external.read(name) { return data }
            MissedFiles.note(name)
            return nil
        case .malformed: return nil
        }
    }

    // MARK: - By key

    /// One row.
    func row(_ key: Int64, _ entity: EntityMapping, _ connection: Connection, stamp: UInt32) throws -> Row? {
        let shape = shape(entity)
        let statement = try connection.statement(shape.selectByKey)
        try statement.bind(key, at: 1)
        guard try statement.step() else { return nil }
        let offset = connection.note.versionOffset
        return try shape.row(statement, stamp: stamp, offset: offset, self)
            ?? rowOfHierarchy(key, entity, connection, stamp)
    }

    /// One row of which only the hierarchy is known.
    private func rowOfHierarchy(
        _ key: Int64,
        _ entity: EntityMapping,
        _ connection: Connection,
        _ stamp: UInt32
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

    /// The rows with these keys that are there.
    ///
    /// - Complexity: O(log n) a key, with one statement for all. Keys that lie close together are read in one sweep.
    func rows(_ keys: [Int64], _ entity: EntityMapping, _ connection: Connection, stamp: UInt32) throws -> [Row] {
        guard keys.count > 1 else { return try keys.compactMap { try row($0, entity, connection, stamp: stamp) } }
        let keys = keys.sorted()
        // Neither can be missing: there are two keys at least.
        let (first, last) = (keys[0], keys[keys.count - 1])
        let (span, overflow) = last.subtractingReportingOverflow(first)
        if !overflow, keys.count > 16, span / 2 < Int64(keys.count) {
            return try sweep(keys, first...last, entity, connection, stamp)
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
                others.append(statement[RowShape.keyPosition].int64)
            }
        }
        for key in others {
            if let row = try rowOfHierarchy(key, entity, connection, stamp) { rows.append(row) }
        }
        return rows
    }

    private func sweep(
        _ keys: [Int64],
        _ range: ClosedRange<Int64>,
        _ entity: EntityMapping,
        _ connection: Connection,
        _ stamp: UInt32
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
            // Both run upwards: the table is swept in the order of its keys.
            let key = statement[RowShape.keyPosition].int64
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
        let key = statement[RowShape.keyPosition].int64
        let number = statement[RowShape.entityPosition].string
        return SQLiteBoundary.damaged(
            url,
            "row \(key) of table \(shape.mapping.table.raw) has entity number \(number.isEmpty ? "NULL" : number), which no entity of its hierarchy has."
        )
    }
}
