import Foundation

/// How many properties a venue has.
enum RowWidth: String, CaseIterable {
    /// The six that all workloads know.
    case narrow
    /// Eight more.
    case medium
    /// Twenty-four more.
    case wide

    /// That of all venues of this process; it is set before anything is measured.
    nonisolated(unsafe) static var current = narrow

    /// The workloads that can be measured with other rows than narrow ones.
    static let workloads: [Workload] = [.readEverything, .query, .lookUp, .traverse, .change]

    /// How often a venue has the eight properties more.
    var groups: Int {
        switch self {
        case .narrow: 0
        case .medium: 1
        case .wide: 3
        }
    }

    var properties: Int { 6 + 8 * groups }
}

/// Eight more values of a venue.
struct ExtraValues {
    let note: String
    let code: String
    let count: Int64
    let stock: Int32
    let amount: Double
    let rate: Double
    let time: Date
    let flag: Bool

    /// Those of a venue by its number, and of which group they are.
    init(_ number: Int, _ group: Int) {
        note = "A note about \(number), the one in place \(group)"
        code = "N\(number % 1000)"
        count = Int64(number * 7 + group)
        stock = Int32(truncatingIfNeeded: number % 5000)
        amount = Double(number % 10_007) / 8
        rate = Double(number % 101) / 4
        time = Date(timeIntervalSinceReferenceDate: 600_000_000 + Double(number))
        flag = number % 2 == 0
    }

    /// Those of a row, from a column on.
    @inline(__always)
    init(_ row: RawStatement, from column: Int32) {
        note = row.text(column)
        code = row.text(column + 1)
        count = row.integer(column + 2)
        stock = Int32(truncatingIfNeeded: row.integer(column + 3))
        amount = row.double(column + 4)
        rate = row.double(column + 5)
        time = Date(timeIntervalSinceReferenceDate: row.double(column + 6))
        flag = row.integer(column + 7) != 0
    }

    @inline(__always)
    var checksum: Int {
        let numbers = Int(count) &+ Int(stock) &+ Int(amount) &+ Int(rate) &+ (flag ? 1 : 0)
        return numbers &+ note.utf8.count &+ code.utf8.count &+ Int(time.timeIntervalSinceReferenceDate)
    }
}
