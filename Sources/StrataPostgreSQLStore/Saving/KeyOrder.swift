import StrataPostgreSQL
import StrataSQL

/// How the numbers that a sequence gives become keys of rows.
///
/// A number stands for a block of ``PostgreSQLSchema/keyBlock`` keys. The greatest value of a sequence shows the order of its keys. So all
/// processes agree on it, and a sequence keeps its order under another name.
package enum KeyOrder: Sendable {
    /// Each block begins where the one before it ends. The first key of a block is the number.
    case consecutive
    /// Blocks that are drawn one after the other lie far apart.
    ///
    /// Some engines split tables by ranges of keys, and keep the parts on several machines. With consecutive keys, all new rows go to the last part.
    /// Here the bits of a block's number are reversed, so that new rows go to all parts.
    case scattered

    /// The number of bits that are reversed.
    static let blockBits = 30
    /// The number of bits below those, enough for the keys of a block.
    static let keyBits = KeyTimeline.numberBits - blockBits
    /// The greatest value of a sequence with scattered keys.
    static let greatestScattered =
        (Int64(1) << (blockBits + KeyTimeline.areaBits)) * Int64(PostgreSQLSchema.keyBlock) - 1

    /// The order of a sequence with this greatest value.
    init(greatest: Int64) { self = greatest == Self.greatestScattered ? .scattered : .consecutive }

    /// The order in which a table gets its keys.
    static func order(of table: SQLTable, _ connection: Connection) throws -> Self {
        try order(of: PostgreSQLSchema.sequence(table).description, connection)
    }

    /// The order of the keys that a sequence gives.
    ///
    /// - Parameters:
    ///   - sequence: The sequence, in SQL.
    ///   - connection: The connection.
    /// - Returns: The order.
    /// - Throws: ``PostgreSQLError``.
    static func order(of sequence: String, _ connection: Connection) throws -> Self {
        let greatest = try connection.query(
            "SELECT (pg_catalog.pg_sequence_parameters($1::text::regclass)).maximum_value",
            [.text(sequence)]
        )
        return greatest.firstInt64.map(Self.init(greatest:)) ?? .consecutive
    }

    /// The orders in which the tables of a store get their keys.
    static func orders(in mapping: SQLMapping, _ connection: Connection) throws -> [SQLName: Self] {
        var orders: [SQLName: Self] = [:]
        for table in mapping.tables { orders[table.name] = try order(of: table, connection) }
        return orders
    }

    /// The order for a table that a store gets later: that of its other tables.
    static func order(in mapping: SQLMapping, _ connection: Connection) throws -> Self {
        try mapping.tables.first.map { try order(of: $0, connection) } ?? .consecutive
    }

    /// The properties of a sequence, as `CREATE SEQUENCE` takes them.
    var properties: String {
        switch self {
        case .consecutive: "INCREMENT BY \(PostgreSQLSchema.keyBlock)"
        case .scattered: "INCREMENT BY \(PostgreSQLSchema.keyBlock) MAXVALUE \(Self.greatestScattered)"
        }
    }

    /// The keys of the block that a number stands for.
    func block(_ number: Int64, _ timeline: Int64) -> Range<Int64> {
        let size = Int64(PostgreSQLSchema.keyBlock)
        let first =
            switch self {
            case .consecutive: KeyTimeline.key(number, timeline)
            case .scattered:
                Self.area(number, timeline) + Self.reversed(number / size & Self.blockMask) << Self.keyBits + 1
            }
        return first..<(first + size)
    }

    /// The greatest key that may have been given when a sequence has given this number last.
    func lastKey(_ number: Int64, _ timeline: Int64) -> Int64 {
        switch self {
        case .consecutive: block(number, timeline).upperBound - 1
        case .scattered: Self.area(number, timeline) + 1 << KeyTimeline.numberBits - 1
        }
    }

    /// A number of the sequence; the keys of all later numbers are greater than a given key.
    ///
    /// They lie in another area of keys, so that the sequence need not go through all numbers before. It is `nil` if no area is left.
    func number(beyond key: Int64) -> Int64? {
        let area = key >> KeyTimeline.numberBits + 1
        return area < 1 << KeyTimeline.areaBits ? area * numbersOfArea : nil
    }

    /// The numbers of an area of 2^40 keys.
    private var numbersOfArea: Int64 {
        switch self {
        case .consecutive: 1 << KeyTimeline.numberBits
        case .scattered: Int64(PostgreSQLSchema.keyBlock) << Self.blockBits
        }
    }

    /// How many numbers of its area a sequence has given up to this one.
    func count(_ number: Int64) -> Int64 { number % numbersOfArea }

    /// The greatest number that stands for the block of a key, in SQL, which is not given yet if it is beyond the last one.
    ///
    /// A key in a later area than the last number comes from a later timeline of the server, and counts by its place in the area. A key in an earlier area
    /// comes from another store, and its number is 0.
    ///
    /// - Parameters:
    ///   - key: The key, in SQL.
    ///   - last: The last number of the sequence, in SQL.
    /// - Returns: The number, in SQL.
    func greatestNumber(of key: String, last: String) -> String {
        let bits = KeyTimeline.numberBits
        let area = "\(last) / \(numbersOfArea)"
        let place: String
        switch self {
        case .consecutive: place = "\(key) % \(numbersOfArea)"
        case .scattered:
            let block = "pg_catalog.reverse((\(key) - 1 >> \(Self.keyBits))::bit(\(Self.blockBits))::text)"
            let size = PostgreSQLSchema.keyBlock
            // A key between the blocks counts as one of the last block.
            let isInBlock = "(\(key) - 1 & \(1 << Self.keyBits - 1)) < \(size)"
            place =
                "CASE WHEN \(isInBlock) THEN \(block)::bit(\(Self.blockBits))::bigint ELSE \(Self.blockMask) END * \(size) + \(size - 1)"
        }
        return "CASE WHEN \(key) - 1 >> \(bits) < \(area) THEN 0 ELSE \(area) * \(numbersOfArea) + \(place) END"
    }

    // MARK: - Areas

    // Scattered keys take the whole area of 2^40 keys from the first block on. Copies of another store's rows have the keys that they had there, so a
    // store with such copies gives keys in a later area.

    private static let blockMask = Int64(1) << blockBits - 1

    /// The key before the area of a number.
    ///
    /// Other timelines of the server have other areas.
    private static func area(_ number: Int64, _ timeline: Int64) -> Int64 {
        let area = (number / Int64(PostgreSQLSchema.keyBlock)) >> blockBits
        return ((max(timeline - 1, 0) + area) % (1 << KeyTimeline.areaBits)) << KeyTimeline.numberBits
    }

    private static func reversed(_ block: Int64) -> Int64 {
        var rest = block
        var reversed: Int64 = 0
        for _ in 0..<blockBits {
            reversed = reversed << 1 | rest & 1
            rest >>= 1
        }
        return reversed
    }
}
