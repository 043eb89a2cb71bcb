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
    /// The greatest value of a sequence with scattered keys; 22 bits are left for areas.
    static let greatestScattered = (Int64(1) << (blockBits + 22)) * Int64(PostgreSQLSchema.keyBlock) - 1

    /// The order of a sequence with this greatest value.
    init(greatest: Int64) { self = greatest == Self.greatestScattered ? .scattered : .consecutive }

    /// The order of the keys in a store.
    static func found(in mapping: SQLMapping, _ connection: Connection) throws -> Self {
        guard let table = mapping.tables.first else { return .consecutive }
        return try found(PostgreSQLSchema.sequence(table).description, connection)
    }

    /// The order of the keys that a sequence gives.
    static func found(_ sequence: String, _ connection: Connection) throws -> Self {
        let greatest = try connection.query(
            "SELECT (pg_catalog.pg_sequence_parameters($1::text::regclass)).maximum_value",
            [.text(sequence)]
        )
        return greatest.firstInt64.map(Self.init(greatest:)) ?? .consecutive
    }

    /// The properties of a sequence, as `CREATE SEQUENCE` and `ALTER SEQUENCE` take them.
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
    /// They lie in another area of keys, so that the sequence need not go through all numbers before.
    func number(beyond key: Int64) -> Int64 {
        let area = key >> KeyTimeline.numberBits + 1
        return switch self {
        case .consecutive: area << KeyTimeline.numberBits
        case .scattered: area << Self.blockBits * Int64(PostgreSQLSchema.keyBlock)
        }
    }

    /// The greatest number that stands for the block of a key, in SQL.
    ///
    /// If a key belongs to no block, because it comes from another store, then that is the greatest number of its area.
    ///
    /// - Parameters:
    ///   - key: The key, in SQL.
    ///   - timeline: The timeline of the server.
    /// - Returns: The number, in SQL.
    func greatestNumber(of key: String, _ timeline: Int64) -> String {
        let bits = KeyTimeline.numberBits
        switch self {
        case .consecutive: return "\(key) % (1::bigint << \(bits))"
        case .scattered:
            let size = PostgreSQLSchema.keyBlock
            let area = "((\(key) - 1 >> \(bits)) - \(max(timeline - 1, 0)))"
            let block = "pg_catalog.reverse((\(key) - 1 >> \(Self.keyBits))::bit(\(Self.blockBits))::text)"
            let isInBlock = "(\(key) - 1 & \(1 << Self.keyBits - 1)) < \(size)"
            let place =
                "CASE WHEN \(isInBlock) THEN \(block)::bit(\(Self.blockBits))::bigint ELSE \(Self.blockMask) END"
            return "(\(area) << \(Self.blockBits) | \(place)) * \(size) + \(size - 1)"
        }
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
        return ((max(timeline - 1, 0) + area) % (1 << 22)) << KeyTimeline.numberBits
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
