import Foundation
import Testing

// The suites use these plain expectations. The compiler has to expand each `#expect` and check its expansion, which
// nearly doubled the time for the largest target. The macros remain where they are necessary: for exit tests, `throws:
// Never.self`, and helpers that pass a source location on.

/// Expects that something is true; otherwise records an issue with the text of the calling line.
///
/// - Parameters:
///   - condition: The condition that shall be true.
///   - comment: A further message, made only if the expectation fails.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
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
///   - value: The actual value.
///   - expected: The expected value.
///   - comment: A further message, made only if the expectation fails.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
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

/// Unwraps an optional; without a value the test cannot go on.
///
/// - Parameters:
///   - value: The value that shall be there.
///   - comment: A further message, made only if there is no value.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
/// - Returns: The value.
/// - Throws: ``RequirementFailed`` if there is no value, after recording an issue.
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

/// Requires that something is true; otherwise the test cannot go on.
///
/// - Parameters:
///   - condition: The condition that shall be true.
///   - comment: A further message, made only if the condition is false.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
/// - Throws: ``RequirementFailed`` if the condition is false, after recording an issue.
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
/// The issue before it says what is missing.
package struct RequirementFailed: Error {}

/// Expects that something throws an error of a type; otherwise records an issue with the actual outcome.
///
/// - Parameters:
///   - type: The type of the error.
///   - comment: A further message, made only if the expectation fails.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
///   - body: The code that shall throw.
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

/// Expects that something throws an error of a type; otherwise records an issue with the actual outcome.
///
/// - Parameters:
///   - type: The type of the error.
///   - comment: A further message, made only if the expectation fails.
///   - isolation: The actor of the caller.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
///   - body: The code that shall throw.
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

/// Gets the messages of failing expectations in place of issues, for the tests of these functions.
@TaskLocal package var failureListener: (@Sendable (String) -> Void)?

private func record(_ values: String?, _ comment: Comment?, _ place: SourceLocation) {
    let parts = [sourceLine(place), values, comment?.rawValue].compactMap { $0 }
    let text = parts.joined(separator: ": ")
    if let failureListener { return failureListener(text) }
    Issue.record(Comment(rawValue: text), sourceLocation: place)
}

/// The text of the calling line; `nil` if the sources are not available.
private func sourceLine(_ place: SourceLocation) -> String? {
    guard let text = try? String(contentsOfFile: place.filePath, encoding: .utf8) else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.indices.contains(place.line - 1) else { return nil }
    return lines[place.line - 1].trimmingCharacters(in: .whitespaces)
}
