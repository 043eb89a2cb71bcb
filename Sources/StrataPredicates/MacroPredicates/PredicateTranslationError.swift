/// Why a `#Predicate`, an `#Expression` or a Swift key path has no counterpart in the format language.
///
/// A programmer's error in most cases: the same code fails the same way for all data. The text names the part of the
/// tree that has no counterpart.
///
/// ```swift
/// do { _ = try NSPredicate(translating: #Predicate<Venue> { $0.name.hashValue == 1 }) } catch { print(error) }
/// ```
public struct PredicateTranslationError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// What cannot be translated, and what to write instead where there is something.
    public let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The description.
    public var errorDescription: String? {
        description
    }
}
