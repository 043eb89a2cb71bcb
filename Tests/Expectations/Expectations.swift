import Foundation
import Testing

// The plain expectations of the suites. Each `#expect` is expanded by the compiler, and its expansion checked anew: with it the largest
// target took nearly twice as long to compile. `#expect` stays for what only a macro can do: thrown errors, exit tests, and helpers that
// pass a source location on.

/// Expects that something is true; otherwise records an issue with the text of the line that calls.
///
/// - Parameters:
///   - condition: What shall be true.
///   - comment: What to tell as well; made if the expectation fails.
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
package func expect(
    _ condition: Bool,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) {
    guard !condition else { return }
    record(nil, comment(), SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column))
}

/// Expects that two values are equal; otherwise records an issue with both.
///
/// - Parameters:
///   - value: What came out.
///   - expected: What should have.
///   - comment: What to tell as well; made if the expectation fails.
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
package func expectEqual<Value: Equatable>(
    _ value: Value,
    _ expected: Value,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) {
    guard value != expected else { return }
    record(
        "\(String(reflecting: value)) is not equal to \(String(reflecting: expected))",
        comment(),
        SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    )
}

private func record(_ values: String?, _ comment: Comment?, _ place: SourceLocation) {
    let parts = [sourceLine(place), values, comment?.rawValue].compactMap { $0 }
    Issue.record(Comment(rawValue: parts.joined(separator: ": ")), sourceLocation: place)
}

/// The line that calls; `nil` where the sources are not at hand.
private func sourceLine(_ place: SourceLocation) -> String? {
    guard let text = try? String(contentsOfFile: place.filePath, encoding: .utf8) else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.indices.contains(place.line - 1) else { return nil }
    return lines[place.line - 1].trimmingCharacters(in: .whitespaces)
}
