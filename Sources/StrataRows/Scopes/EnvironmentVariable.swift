import Foundation

/// Variables of the process's environment.
///
/// Foundation's dictionary of the environment is made anew, with all variables, each time it is asked for.
package enum EnvironmentVariable {
    /// The value of a variable; `nil` if it is not set.
    package static func value(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// A dictionary with the variable of a name, if it is set.
    package static func only(_ name: String) -> [String: String] { value(name).map { [name: $0] } ?? [:] }
}
