/// Aligns rows of cells: each column is as wide as its widest cell, and no line ends in blanks.
///
/// - Parameters:
///   - rows: The cells, row by row; a row may be shorter than others.
///   - rightAligned: The columns that hold numbers.
///   - indent: Blanks before each line.
/// - Returns: A line for each row.
func columns(_ rows: [[String]], rightAligned: Set<Int> = [], indent: Int = 2) -> [String] {
    var widths: [Int] = []
    for row in rows {
        for (column, cell) in row.enumerated() {
            if column == widths.count { widths.append(0) }
            widths[column] = max(widths[column], cell.count)
        }
    }
    return rows.map { row in
        var line = String(repeating: " ", count: indent)
        for (column, cell) in row.enumerated() {
            let padding = String(repeating: " ", count: widths[column] - cell.count)
            if column > 0 { line += "  " }
            line += rightAligned.contains(column) ? padding + cell : cell + padding
        }
        while line.last == " " { line.removeLast() }
        return line
    }
}
