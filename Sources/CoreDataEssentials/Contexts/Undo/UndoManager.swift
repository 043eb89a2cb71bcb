import Foundation

/// Undoes changes step by step, and redoes them.
///
/// Foundation's class of this name does not exist on Linux. Give one to a context
/// (``NSManagedObjectContext/undoManager``) to undo changes of objects: all changes of one event are one step.
///
/// Not thread-safe: a context's undo manager is confined to the context's queue. That of a `ModelContext` of `SwiftData`
/// is used where that context is used.
///
/// ```swift
/// context.undoManager = UndoManager()
/// venue.price += 1
/// context.processPendingChanges()
/// context.undo()
/// print(context.hasChanges)
/// ```
open class UndoManager: NSObject {
    private struct Action {
        let target: ObjectIdentifier
        let perform: () -> Void
    }

    private struct Follower {
        weak var context: NSManagedObjectContext?
        /// Runs work on the context's queue; `nil` if the program does that itself.
        var scope: Scope?
    }

    /// Runs work where a context may be used; the flag says whether the work undoes or redoes a step.
    package typealias Scope = (_ isStep: Bool, _ work: () -> Void) -> Void

    private struct Group {
        var actions: [Action] = []
        var name = ""
    }

    private var undoStack: [Group] = []
    private var redoStack: [Group] = []
    private var open: [Group] = []
    private var disabled = 0
    /// The contexts whose current events become steps.
    private var followers: [Follower] = []

    /// Makes an undo manager with no steps.
    public override init() {}

    /// Whether ``undo()`` is running.
    public private(set) var isUndoing = false
    /// Whether ``redo()`` is running.
    public private(set) var isRedoing = false
    /// Whether there is a step to undo.
    open var canUndo: Bool { inScopes { !undoStack.isEmpty || open.contains { !$0.actions.isEmpty } } }
    /// Whether there is a step to redo.
    open var canRedo: Bool { inScopes { !redoStack.isEmpty } }
    /// The maximum number of steps to keep; 0, the default, for no limit.
    open var levelsOfUndo = 0 {
        didSet { inScopes { trim() } }
    }
    /// Whether steps are recorded at all.
    open var isUndoRegistrationEnabled: Bool { inScopes { disabled == 0 } }
    /// The number of open groups.
    open var groupingLevel: Int { inScopes { open.count } }
    /// The name of the step that ``undo()`` would undo.
    open var undoActionName: String { inScopes { undoStack.last?.name ?? "" } }
    /// The name of the step that ``redo()`` would redo.
    open var redoActionName: String { inScopes { redoStack.last?.name ?? "" } }

    /// Stops recording until ``enableUndoRegistration()``.
    ///
    /// Calls nest.
    open func disableUndoRegistration() { inScopes { disabled += 1 } }

    /// Cancels one call of ``disableUndoRegistration()``.
    open func enableUndoRegistration() { inScopes { disabled = max(0, disabled - 1) } }

    /// Opens a group: all actions that are registered until it is closed form one step.
    open func beginUndoGrouping() { inScopes { open.append(Group()) } }

    /// Closes the innermost group.
    open func endUndoGrouping() { inScopes { closeGroup() } }

    private func closeGroup() {
        guard let group = open.popLast() else { return }
        if !open.isEmpty {
            open[open.count - 1].actions.append(contentsOf: group.actions)
        } else {
            push(group)
        }
    }

    /// Names the step that was recorded last.
    ///
    /// - Parameter actionName: The name, which ``undoActionName`` or ``redoActionName`` then returns.
    open func setActionName(_ actionName: String) {
        inScopes {
            if !open.isEmpty {
                open[open.count - 1].name = actionName
            } else if !undoStack.isEmpty {
                undoStack[undoStack.count - 1].name = actionName
            }
        }
    }

    /// Registers the action that undoes a change; during an undo, the action that redoes it.
    ///
    /// - Parameters:
    ///   - target: The target of the handler. It is not kept alive: once it is gone, the handler is not called.
    ///   - handler: The action, which ``undo()`` or ``redo()`` calls with the target.
    open func registerUndo<Target: AnyObject>(withTarget target: Target, handler: @escaping (Target) -> Void) {
        guard isUndoRegistrationEnabled else { return }
        let action = Action(target: ObjectIdentifier(target)) { [weak target] in
            if let target { handler(target) }
        }
        inScopes {
            if !open.isEmpty {
                open[open.count - 1].actions.append(action)
            } else {
                push(Group(actions: [action]))
            }
        }
    }

    private func push(_ group: Group) {
        guard !group.actions.isEmpty else { return }
        if isUndoing {
            redoStack.append(group)
        } else {
            if !isRedoing { redoStack.removeAll() }
            undoStack.append(group)
            trim()
        }
    }

    private func trim() {
        guard levelsOfUndo > 0, undoStack.count > levelsOfUndo else { return }
        undoStack.removeFirst(undoStack.count - levelsOfUndo)
    }

    /// Makes the current event of a context a separate step when something is undone.
    func follow(_ context: NSManagedObjectContext) {
        followers.removeAll { $0.context == nil || $0.context === context }
        followers.append(Follower(context: context))
    }

    /// Lets all members run their work where a context may be used, so that any thread that owns the context can call
    /// them.
    package func setScope(of context: NSManagedObjectContext, _ scope: @escaping Scope) {
        follow(context)
        followers[followers.count - 1].scope = scope
    }

    /// Runs work in the scopes of all contexts that have one.
    private func inScopes<Result>(isStep: Bool = false, _ work: () -> Result) -> Result {
        let scopes = followers.compactMap { follower in
            follower.context?.undoManager === self ? follower.scope : nil
        }
        if scopes.isEmpty { return work() }
        var result: Result?
        func enter(_ rest: ArraySlice<Scope>) {
            guard let scope = rest.first else { return result = work() }
            scope(isStep) { enter(rest.dropFirst()) }
        }
        enter(scopes[...])
        // Each scope runs its work.
        return result.unsafelyUnwrapped
    }

    private func endEvents() {
        for follower in followers {
            guard let context = follower.context, context.undoManager === self else { continue }
            context.assertCurrent("undoManager")
            context.endEvent(isMerge: false)
        }
    }

    /// Undoes the last step; if the current event of a context has changes, then these are the last step.
    open func undo() { inScopes(isStep: true) { undoStep() } }

    private func undoStep() {
        endEvents()
        while !open.isEmpty { closeGroup() }
        guard !isUndoing, !isRedoing, let group = undoStack.popLast() else { return }
        isUndoing = true
        run(group)
        isUndoing = false
    }

    /// Redoes the step that was undone last.
    ///
    /// Nothing happens if there have been other changes since.
    open func redo() { inScopes(isStep: true) { redoStep() } }

    private func redoStep() {
        endEvents()
        guard !isUndoing, !isRedoing, let group = redoStack.popLast() else { return }
        isRedoing = true
        run(group)
        isRedoing = false
    }

    private func run(_ group: Group) {
        beginUndoGrouping()
        for action in group.actions.reversed() { action.perform() }
        setActionName(group.name)
        endUndoGrouping()
    }

    /// Forgets all steps.
    open func removeAllActions() {
        inScopes {
            undoStack.removeAll()
            redoStack.removeAll()
            open = open.map { _ in Group() }
        }
    }

    /// Forgets the actions that were registered with one target; steps without other actions are removed.
    ///
    /// - Parameter target: The target that was registered, compared by identity.
    open func removeAllActions(withTarget target: Any) { inScopes { removeActions(withTarget: target) } }

    private func removeActions(withTarget target: Any) {
        let target = ObjectIdentifier(target as AnyObject)
        func without(_ groups: [Group]) -> [Group] {
            groups.compactMap { group in
                var rest = group
                rest.actions.removeAll { $0.target == target }
                return rest.actions.isEmpty && !group.actions.isEmpty ? nil : rest
            }
        }
        undoStack = without(undoStack)
        redoStack = without(redoStack)
        for index in open.indices { open[index].actions.removeAll { $0.target == target } }
    }
}
