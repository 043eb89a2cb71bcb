extension RawSide {
    /// A venue of eight properties more.
    final class MediumVenue: Venue {
        let extras: ExtraValues

        override init(_ row: RawStatement) {
            extras = ExtraValues(row, from: RawSide.firstExtra)
            super.init(row)
        }

        override var extraChecksum: Int { extras.checksum }
    }

    /// A venue of twenty-four properties more.
    final class WideVenue: Venue {
        let extras: (ExtraValues, ExtraValues, ExtraValues)

        override init(_ row: RawStatement) {
            let first = RawSide.firstExtra
            extras = (
                ExtraValues(row, from: first), ExtraValues(row, from: first + 8), ExtraValues(row, from: first + 16)
            )
            super.init(row)
        }

        override var extraChecksum: Int { extras.0.checksum &+ extras.1.checksum &+ extras.2.checksum }
    }

    /// The first column of those that narrow venues do not have.
    static let firstExtra: Int32 = 8

    private static let extraColumns = [
        ("note", "VARCHAR"), ("code", "VARCHAR"), ("count", "INTEGER"), ("stock", "INTEGER"), ("amount", "FLOAT"),
        ("rate", "FLOAT"), ("time", "TIMESTAMP"), ("flag", "INTEGER"),
    ]

    /// The names of these columns with a comma before each, and the same with their types.
    static var extraNames: String { extraList { name, _ in name } }
    static var extraDefinitions: String { extraList { name, type in "\(name) \(type)" } }
    /// A place for each of them.
    static var extraPlaces: String { extraList { _, _ in "?" } }

    private static func extraList(_ text: (String, String) -> String) -> String {
        (0..<RowWidth.current.groups).flatMap { group in
            extraColumns.map { ", " + text("\($0.0)\(group)", $0.1) }
        }.joined()
    }

    /// Binds the values that narrow venues do not have.
    static func bindExtras(of number: Int, to statement: RawStatement) {
        for group in 0..<RowWidth.current.groups {
            let (values, place) = (ExtraValues(number, group), firstExtra + 1 + Int32(8 * group))
            statement.bind(values.note, at: place)
            statement.bind(values.code, at: place + 1)
            statement.bind(values.count, at: place + 2)
            statement.bind(Int64(values.stock), at: place + 3)
            statement.bind(values.amount, at: place + 4)
            statement.bind(values.rate, at: place + 5)
            statement.bind(values.time.timeIntervalSinceReferenceDate, at: place + 6)
            statement.bind(Int64(values.flag ? 1 : 0), at: place + 7)
        }
    }
}
