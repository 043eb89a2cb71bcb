import Foundation

/// The reaction to the use of a context or its objects outside of the context's scope.
///
/// A switch selects it, with the name that it has on Apple's platforms.
package enum ConcurrencyDebug: Sendable {
    /// There is no reaction: accesses are not checked.
    case off
    /// Each place is reported once, and the program goes on.
    case warn
    /// The program stops.
    case trap

    /// The name of the environment variable.
    ///
    /// An argument has it behind a minus sign.
    package static let name = "com.apple.CoreData.ConcurrencyDebug"

    /// The reaction in this process: the one that the environment or an argument sets, or else the default.
    package static let current: ConcurrencyDebug = {
        let arguments = ProcessInfo.processInfo.arguments
        return asked(environment: EnvironmentVariable.only(name), arguments: arguments)
            ?? byDefault(isTestProcess: isTestProcess(arguments: arguments))
    }()

    /// The reaction in a process whose environment and arguments set none.
    ///
    /// A release build checks nothing. In a debug build, a test process warns, because a trap would end all tests with
    /// the first wrong one. Any other process traps.
    package static func byDefault(isTestProcess: Bool) -> ConcurrencyDebug {
        #if DEBUG
        return isTestProcess ? .warn : .trap
        #else
        return .off
        #endif
    }

    /// Whether a process with these arguments runs tests.
    ///
    /// SwiftPM gives the program that contains all tests the extension `xctest`, for XCTest and for Swift Testing
    /// alike.
    package static func isTestProcess(arguments: [String]) -> Bool {
        arguments.first?.hasSuffix(".xctest") ?? false
    }

    /// The reaction that the environment sets, or, if the variable is missing, the argument that follows the name.
    ///
    /// - Returns: `off` for a number that is not above zero, `trap` for one that is, `warn` for that word, and `nil` for
    ///   anything else.
    package static func asked(environment: [String: String], arguments: [String]) -> ConcurrencyDebug? {
        if let value = environment[name] { return meaning(of: value) }
        guard let index = arguments.firstIndex(of: "-" + name), index + 1 < arguments.count else { return nil }
        return meaning(of: arguments[index + 1])
    }

    private static func meaning(of value: String) -> ConcurrencyDebug? {
        if value == "warn" { return .warn }
        return Int(value).map { $0 > 0 ? .trap : .off }
    }
}
