import Testing

/// Expects that a table has exactly the lines of a text; otherwise records an issue with the first lines that differ.
///
/// A suite computes a line for each input. A difference in any of them is found, also an unexpected one.
///
/// - Parameters:
///   - lines: The lines as they are.
///   - expected: The lines as they should be.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
package func expectTable(
    _ lines: [String],
    _ expected: String,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) {
    let wanted = expected.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines != wanted else { return }
    var differences: [String] = []
    for index in 0..<max(lines.count, wanted.count) {
        let (actual, should) = (index < lines.count ? lines[index] : nil, index < wanted.count ? wanted[index] : nil)
        if actual != should {
            differences.append("line \(index + 1) is \(actual ?? "missing"), not \(should ?? "there")")
        }
    }
    let shown = differences.prefix(8).joined(separator: "\n")
    expect(
        false,
        "\(differences.count) lines differ:\n\(shown)",
        fileID: fileID,
        filePath: filePath,
        line: line,
        column: column
    )
}

/// A title with items behind it, in as many lines as they need.
///
/// - Parameters:
///   - title: The beginning of each line.
///   - items: The items.
/// - Returns: The lines.
package func wrapped(_ title: String, _ items: [String]) -> [String] {
    var lines = [title]
    for item in items {
        if lines[lines.count - 1].count + item.count > 108, lines[lines.count - 1] != title { lines.append(title) }
        lines[lines.count - 1] += "  " + item
    }
    return lines
}
