import StrataPredicates

/// The error of a save of which it is not known whether it was committed.
///
/// The store was lost between the request to commit and the answer. An engine throws this error only after it has tried
/// to find out, up to its deadline. The context keeps its changes as unsaved ones, because they could be lost if they
/// were reported as saved. It asks again before it saves them. The row cache forgets the rows that the save may have
/// changed.
package struct SaveInDoubt: Error {
    /// The save's identifier.
    ///
    /// The store has it if the save was committed.
    package let identifier: UUID
    /// The error that occurred in place of the answer.
    package let reason: any Error
    /// The result that the store reports if the save turns out to be committed.
    package var result = StoreSaveResult()
    /// Asks anew whether the save was committed, and throws ``SaveInDoubt`` as long as that is not known.
    ///
    /// It is `nil` if the store can never find out.
    package let settling: (@Sendable () throws -> Bool)?

    package init(identifier: UUID, reason: any Error, settling: (@Sendable () throws -> Bool)? = nil) {
        self.identifier = identifier
        self.reason = reason
        self.settling = settling
    }
}
