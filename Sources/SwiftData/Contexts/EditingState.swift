import Foundation

/// The editor of a context, as stores know it.
///
/// ```swift
/// func initializeState(for editingState: EditingState) { editors[editingState.id] = editingState.author }
/// ```
public struct EditingState: Identifiable, Sendable {
    /// The identifier of the editor, which is another one for each context.
    public let id: UUID
    /// The author of the context.
    public var author: String?
}
