import StrataPredicates

/// It is not known whether a save was committed: the store was lost between the request to commit and the answer.
///
/// An engine throws it only after it has tried to find out, up to its deadline. The context keeps its changes as unsaved ones,
/// since they could be lost if they were reported as saved, and asks again before it saves them. The row cache forgets the rows that the save
/// may have changed.
package struct SaveInDoubt: Error {
    /// The save's identifier, under which the store has it if it was committed.
    package let identifier: UUID
    /// The error that kept the answer from coming.
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
