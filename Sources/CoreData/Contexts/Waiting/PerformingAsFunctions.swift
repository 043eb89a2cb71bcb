// The forms without results and errors, for code that passes them on as functions: `let run: (() -> Void) -> Void =
// context.performAndWait`. A call with a closure takes the general forms.

extension NSManagedObjectContext {
    /// Runs `block` inside the context's scope and waits for it, as ``performAndWait(_:)->_``.
    ///
    /// - Parameter block: What to run. It is not kept.
    @_disfavoredOverload
    public final func performAndWait(_ block: () -> Void) {
        let _: Void = performAndWait { () -> Void in block() }
    }
}

extension NSPersistentStoreCoordinator {
    /// Runs `block` on the coordinator's queue and waits for it.
    ///
    /// - Parameter block: What to run. It is not kept.
    @_disfavoredOverload
    public final func performAndWait(_ block: () -> Void) {
        let _: Void = performAndWait { () -> Void in block() }
    }
}
