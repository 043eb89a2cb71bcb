import CoreData
import StrataLocks

/// The context for the effects of one run, which is made when the handler asks for it.
final class RunContext: Sendable {
    private let desk: JobDesk
    private let state = Locked<NSManagedObjectContext?>(nil)

    init(_ desk: JobDesk) { self.desk = desk }

    var context: NSManagedObjectContext {
        state.withLock { context in
            if let context { return context }
            let new = desk.newContext()
            context = new
            return new
        }
    }

    /// The context if its save would write or check something; otherwise `nil`.
    ///
    /// It waits for the blocks that the handler has left on the context's queue.
    var changed: NSManagedObjectContext? {
        get async {
            guard let context = state.withLock({ $0 }) else { return nil }
            let isChanged = await context.perform { context.hasSomethingToSave }
            return isChanged ? context : nil
        }
    }

    func rollBack() async {
        guard let context = state.withLock({ $0 }) else { return }
        await context.perform { context.rollback() }
    }
}
