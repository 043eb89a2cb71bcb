import Foundation

/// The editor of a context, as stores know it.
public struct EditingState: Identifiable, Sendable {
    /// The identifier of the editor, which is another one for each context.
    public let id: UUID
    /// The author of the context.
    public var author: String?
}
