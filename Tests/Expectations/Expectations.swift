import Foundation
import Testing

// The plain expectations of the suites. Each `#expect` is expanded by the compiler, and its expansion checked anew: with it the largest
// target took nearly twice as long to compile. The macros stay for what only they can do: exit tests, `throws: Never.self`, and helpers
// that pass a source location on.

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

/// Takes the value out of an optional, without which the test cannot go on.
///
/// - Parameters:
///   - value: What shall be there.
///   - comment: What to tell as well; made if there is nothing.
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
/// - Returns: The value.
/// - Throws: ``RequirementFailed`` if there is none, after an issue was recorded.
package func require<Value>(
    _ value: Value?,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) throws -> Value {
    if let value { return value }
    record(
        "there is no value",
        comment(),
        SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    )
    throw RequirementFailed()
}

/// Requires that something is true, without which the test cannot go on.
///
/// - Parameters:
///   - condition: What shall be true.
///   - comment: What to tell as well; made if it is false.
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
/// - Throws: ``RequirementFailed`` if it is false, after an issue was recorded.
package func require(
    _ condition: Bool,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) throws {
    guard !condition else { return }
    record(nil, comment(), SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column))
    throw RequirementFailed()
}

/// Ends a test that cannot go on.
///
/// What is missing is told by the issue before it.
package struct RequirementFailed: Error {}

/// Expects that something throws an error of a type; otherwise records an issue with what came instead.
///
/// - Parameters:
///   - type: The type of the error.
///   - comment: What to tell as well; made if the expectation fails.
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
///   - body: What shall throw.
/// - Returns: The error; `nil` if the expectation has failed.
@discardableResult
package func expectThrows<Failure: Error, Result>(
    _ type: Failure.Type,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column,
    _ body: () throws -> Result
) -> Failure? {
    let place = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    do {
        let result = try body()
        record("returns \(String(describing: result))", comment(), place)
    } catch let error as Failure {
        return error
    } catch {
        record("throws \(String(reflecting: error))", comment(), place)
    }
    return nil
}

/// Expects that something throws an error of a type; otherwise records an issue with what came instead.
///
/// - Parameters:
///   - type: The type of the error.
///   - comment: What to tell as well; made if the expectation fails.
///   - isolation: The actor that calls.
///   - fileID: The file that calls, and so for the others: nobody passes these.
///   - filePath: Its path.
///   - line: The line of the call.
///   - column: Its column.
///   - body: What shall throw.
/// - Returns: The error; `nil` if the expectation has failed.
@discardableResult
package func expectThrows<Failure: Error, Result>(
    _ type: Failure.Type,
    _ comment: @autoclosure () -> Comment? = nil,
    isolation: isolated (any Actor)? = #isolation,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column,
    _ body: () async throws -> sending Result
) async -> Failure? {
    let place = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    do {
        let result = try await body()
        record("returns \(String(describing: result))", comment(), place)
    } catch let error as Failure {
        return error
    } catch {
        record("throws \(String(reflecting: error))", comment(), place)
    }
    return nil
}

/// Takes what failing expectations tell, in place of issues: these functions have a test themselves.
@TaskLocal package var failureListener: (@Sendable (String) -> Void)?

private func record(_ values: String?, _ comment: Comment?, _ place: SourceLocation) {
    let parts = [sourceLine(place), values, comment?.rawValue].compactMap { $0 }
    let text = parts.joined(separator: ": ")
    if let failureListener { return failureListener(text) }
    Issue.record(Comment(rawValue: text), sourceLocation: place)
}

/// The line that calls; `nil` where the sources are not at hand.
private func sourceLine(_ place: SourceLocation) -> String? {
    guard let text = try? String(contentsOfFile: place.filePath, encoding: .utf8) else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.indices.contains(place.line - 1) else { return nil }
    return lines[place.line - 1].trimmingCharacters(in: .whitespaces)
}
