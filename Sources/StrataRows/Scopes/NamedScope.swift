/// The owner of a scope, with its name for messages.
///
/// A context is one. An engine that waits for a lock names the context for which it waits, and knows nothing else of
/// it.
package protocol NamedScope: AnyObject {
    /// The label that the program has set; `nil` without one.
    var scopeName: String? { get }
}
