import Foundation

/// Takes back what was done, step by step, and does it again.
///
/// Foundation's class of this name does not exist on Linux. Give one to a context
/// (``NSManagedObjectContext/undoManager``) to undo changes of objects: all changes of one event are one step.
///
/// Not thread-safe: a context's undo manager is confined to the context's queue.
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
    }

    private struct Group {
        var actions: [Action] = []
        var name = ""
    }

    private var undoStack: [Group] = []
    private var redoStack: [Group] = []
    private var open: [Group] = []
    private var disabled = 0
    /// The contexts whose current events are steps to come.
    private var followers: [Follower] = []

    /// Makes an undo manager with no steps.
    public override init() {}

    /// Whether ``undo()`` is running.
    public private(set) var isUndoing = false
    /// Whether ``redo()`` is running.
    public private(set) var isRedoing = false
    /// Whether there is a step to take back.
    open var canUndo: Bool { !undoStack.isEmpty || open.contains { !$0.actions.isEmpty } }
    /// Whether there is a step to do again.
    open var canRedo: Bool { !redoStack.isEmpty }
    /// The most steps to keep; 0, the default, for no limit.
    open var levelsOfUndo = 0 {
        didSet { trim() }
    }
    /// Whether steps are recorded at all.
    open var isUndoRegistrationEnabled: Bool { disabled == 0 }
    /// How many groups are open.
    open var groupingLevel: Int { open.count }
    /// The name of the step that ``undo()`` would take back.
    open var undoActionName: String { undoStack.last?.name ?? "" }
    /// The name of the step that ``redo()`` would do again.
    open var redoActionName: String { redoStack.last?.name ?? "" }

    /// Stops recording until ``enableUndoRegistration()``.
    ///
    /// Calls nest.
    open func disableUndoRegistration() { disabled += 1 }

    /// Takes one ``disableUndoRegistration()`` back.
    open func enableUndoRegistration() { disabled = max(0, disabled - 1) }

    /// Opens a group: what is registered until it is closed is one step.
    open func beginUndoGrouping() { open.append(Group()) }

    /// Closes the innermost group.
    open func endUndoGrouping() {
        guard let group = open.popLast() else { return }
        if !open.isEmpty {
            open[open.count - 1].actions.append(contentsOf: group.actions)
        } else {
            push(group)
        }
    }

    /// Names the step that was recorded last.
    ///
    /// - Parameter actionName: The name, which ``undoActionName`` or ``redoActionName`` then gives.
    open func setActionName(_ actionName: String) {
        if !open.isEmpty {
            open[open.count - 1].name = actionName
        } else if !undoStack.isEmpty {
            undoStack[undoStack.count - 1].name = actionName
        }
    }

    /// Registers what takes back something that was just done; while undoing, what does it again.
    ///
    /// - Parameters:
    ///   - target: What the handler is about. It is not kept alive: once it is gone, the handler is not called.
    ///   - handler: Called with the target by ``undo()`` or ``redo()``.
    open func registerUndo<Target: AnyObject>(withTarget target: Target, handler: @escaping (Target) -> Void) {
        guard isUndoRegistrationEnabled else { return }
        let action = Action(target: ObjectIdentifier(target)) { [weak target] in
            if let target { handler(target) }
        }
        if !open.isEmpty {
            open[open.count - 1].actions.append(action)
        } else {
            push(Group(actions: [action]))
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

    /// Lets the current event of a context be a step of its own when something is undone.
    func follow(_ context: NSManagedObjectContext) {
        followers.removeAll { $0.context == nil || $0.context === context }
        followers.append(Follower(context: context))
    }

    private func endEvents() {
        for follower in followers {
            guard let context = follower.context, context.undoManager === self else { continue }
            context.processPendingChanges()
        }
    }

    /// Takes the last step back, that of the current event of a context first.
    open func undo() {
        endEvents()
        while !open.isEmpty { endUndoGrouping() }
        guard !isUndoing, !isRedoing, let group = undoStack.popLast() else { return }
        isUndoing = true
        run(group)
        isUndoing = false
    }

    /// Does the step again that was taken back last.
    ///
    /// Nothing happens if there were other changes since.
    open func redo() {
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
        undoStack.removeAll()
        redoStack.removeAll()
        open = open.map { _ in Group() }
    }

    /// Forgets what was registered with one target; steps with nothing else in them go.
    ///
    /// - Parameter target: The target that was registered, compared by identity.
    open func removeAllActions(withTarget target: Any) {
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
