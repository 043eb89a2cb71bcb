import Foundation

/// Finds classes by the names that Foundation knows.
enum FoundationClasses {
    /// The class with a name; `nil` without one.
    ///
    /// Away from Apple's platforms, `NSClassFromString` cannot look up mangled names and those of classes inside other
    /// types. It writes a line to the standard error for each, so it is not asked for these.
    static func named(_ name: String) -> AnyClass? {
        #if !canImport(Darwin)
        if name.hasPrefix("_Tt") || name.count(where: { $0 == "." }) > 1 { return nil }
        #endif
        return NSClassFromString(name)
    }
}
