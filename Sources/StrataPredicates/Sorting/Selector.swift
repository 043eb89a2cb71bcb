/// The name of a method, which stands in for Objective-C's type.
///
/// There is no `#selector` on Linux; write the name as a string literal, or use one of the constants:
///
/// ```swift
/// let byName = NSSortDescriptor(key: "name", ascending: true, selector: "localizedStandardCompare:")
/// let same = NSSortDescriptor(key: "name", ascending: true, selector: .localizedStandardCompare)
/// ```
public struct Selector: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name, with a colon for each argument.
    public let description: String

    /// A selector by its name, with a colon for each argument.
    ///
    /// - Parameter name: The name, which is not checked.
    public init(_ name: String) {
        description = name
    }

    /// A selector by its name, with a colon for each argument.
    ///
    /// - Parameter name: The name, which is not checked.
    public init(stringLiteral name: String) {
        description = name
    }

    /// `compare:`, the order of numbers, dates and of the bytes of strings.
    public static let compare: Selector = "compare:"
    /// `caseInsensitiveCompare:`, which ignores case.
    public static let caseInsensitiveCompare: Selector = "caseInsensitiveCompare:"
    /// `localizedCompare:`, the order of words in the current locale.
    public static let localizedCompare: Selector = "localizedCompare:"
    /// `localizedCaseInsensitiveCompare:`, the same order without regard to case.
    public static let localizedCaseInsensitiveCompare: Selector = "localizedCaseInsensitiveCompare:"
    /// `localizedStandardCompare:`, the order of a file manager: numbers inside strings by their value.
    public static let localizedStandardCompare: Selector = "localizedStandardCompare:"
}

/// The selector with this name.
///
/// - Parameter name: The name, with a colon for each argument.
/// - Returns: A selector of that name, even if there is no such method.
public func NSSelectorFromString(_ name: String) -> Selector {
    Selector(name)
}

/// The name of a selector.
///
/// - Parameter selector: The selector.
/// - Returns: The name, with a colon for each argument.
public func NSStringFromSelector(_ selector: Selector) -> String {
    selector.description
}
