import StrataPredicates

/// Nobody can tell whether a save was committed: the store was lost between the request to commit and the answer.
///
/// An engine throws it only once it has asked in vain, within its deadline, whoever may know. The context keeps its changes, as
/// unsaved ones, since to report them as saved could lose them; and the row cache forgets what the save may have changed.
package struct SaveInDoubt: Error {
    /// The save's identifier, under which the store has it if it was committed.
    package let identifier: UUID
    /// What kept the answer from coming.
    package let reason: any Error

    package init(identifier: UUID, reason: any Error) {
        self.identifier = identifier
        self.reason = reason
    }
}
