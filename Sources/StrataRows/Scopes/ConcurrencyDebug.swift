import Foundation

/// The switch that makes release builds check who touches contexts and objects, by the name that it has on Apple's platforms.
package enum ConcurrencyDebug {
    /// The name of the variable, and, behind a minus sign, of the argument.
    package static let name = "com.apple.CoreData.ConcurrencyDebug"

    /// Whether the checks are asked for: by a number above zero, in the environment or, if it is not there, as the argument that
    /// follows the name.
    package static func isAsked(environment: [String: String], arguments: [String]) -> Bool {
        if let value = environment[name] { return (Int(value) ?? 0) > 0 }
        guard let index = arguments.firstIndex(of: "-" + name), index + 1 < arguments.count else { return false }
        return (Int(arguments[index + 1]) ?? 0) > 0
    }
}
