/// An expression of a subclass, such as a fetch, whose value does not depend on the object that a predicate is about.
///
/// Reading the value may fail. A store's predicate reads it once, when it is resolved.
package protocol StoreEvaluatedExpression: NSExpression {
    /// Reads the value.
    ///
    /// - Throws: The error that prevents it; it becomes the error of the fetch whose predicate contains the expression.
    func valueForStore() throws -> Any?
}
