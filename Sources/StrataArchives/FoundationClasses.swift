import Foundation

/// Finds classes by the names that Foundation knows.
package enum FoundationClasses {
    /// The class with a name; `nil` if there is none.
    ///
    /// On platforms other than Apple's, `NSClassFromString` cannot look up mangled names or classes inside other
    /// types. It writes a line to the standard error for each such name, so it is not called for these.
    package static func named(_ name: String) -> AnyClass? {
        #if !canImport(Darwin)
        if name.hasPrefix("_Tt") || name.count(where: { $0 == "." }) > 1 { return nil }
        #endif
        return NSClassFromString(name)
    }
}
