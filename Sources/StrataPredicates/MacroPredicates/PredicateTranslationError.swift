/// The error of a `#Predicate`, an `#Expression` or a Swift key path that has no counterpart in the format language.
///
/// In most cases it is a programmer's error: the same code fails in the same way for all data. The text names the part
/// of the tree that has no counterpart.
///
/// ```swift
/// do { _ = try NSPredicate(translating: #Predicate<Venue> { $0.name.hashValue == 1 }) } catch { print(error) }
/// ```
public struct PredicateTranslationError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// The part that cannot be translated, with an alternative if there is one.
    public let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The description.
    public var errorDescription: String? {
        description
    }
}
