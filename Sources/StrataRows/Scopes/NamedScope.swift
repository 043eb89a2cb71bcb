/// The owner of a scope, with what messages call it.
///
/// A context is one: an engine that waits for a lock names the context for which it does, and knows nothing else of it.
package protocol NamedScope: AnyObject {
    /// The label that the program has given; `nil` without one.
    var scopeName: String? { get }
}
