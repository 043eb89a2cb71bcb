/// Rows of text under a header, in columns of the necessary width.
struct TextTable {
    enum Alignment {
        case left
        case right
    }

    struct Column {
        let title: String
        let alignment: Alignment

        static func left(_ title: String) -> Column { Column(title: title, alignment: .left) }
        static func right(_ title: String) -> Column { Column(title: title, alignment: .right) }
    }

    /// The widest cell: longer text is cut and ends in an ellipsis.
    static let widestCell = 60

    private let columns: [Column]
    private var rows: [[String]] = []

    init(_ columns: Column...) {
        self.columns = columns
    }

    var isEmpty: Bool { rows.isEmpty }

    /// Adds a row.
    ///
    /// Missing cells stay empty, and those beyond the last column are left out.
    mutating func append(_ cells: String...) {
        rows.append(columns.indices.map { $0 < cells.count ? Self.shortened(cells[$0]) : "" })
    }

    /// The table as lines: the titles, a rule, the rows.
    ///
    /// No line ends in blanks.
    func lines() -> [String] {
        let widths = columns.indices.map { column in
            rows.reduce(columns[column].title.count) { max($0, $1[column].count) }
        }
        return [line(columns.map(\.title), widths), line(widths.map { String(repeating: "─", count: $0) }, widths)]
            + rows.map { line($0, widths) }
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (column, cell) in cells.enumerated() {
            let padding = String(repeating: " ", count: widths[column] - cell.count)
            if column > 0 { line += "  " }
            line += columns[column].alignment == .right ? padding + cell : cell + padding
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    private static func shortened(_ cell: String) -> String {
        // A control character would break the line, or the terminal.
        let cell = String(cell.map { $0.isNewline || $0.unicodeScalars.contains { $0.value < 0x20 } ? " " : $0 })
        return cell.count <= widestCell ? cell : cell.prefix(widestCell - 1) + "…"
    }
}
