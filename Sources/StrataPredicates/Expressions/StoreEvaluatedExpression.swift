/// An expression of a subclass whose value does not depend on the object that a predicate is about, and may fail to come:
/// a fetch.
///
/// A store's predicate takes the value once, when it is resolved.
package protocol StoreEvaluatedExpression: NSExpression {
    /// The value.
    ///
    /// - Throws: What stands in the way; it becomes the error of the fetch whose predicate holds the expression.
    func valueForStore() throws -> Any?
}
