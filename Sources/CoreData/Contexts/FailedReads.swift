import Foundation
import StrataRows

#if FaultPoints
import StrataLocks
#endif

/// The reads of a context that have failed where nothing can throw, such as that of a property.
///
/// The property shows zero, nil or an empty collection then. The block in which that happened throws the error at its end. The context
/// saves nothing that may have been computed from such a value.
///
/// A part of its context: used inside the context's scope only.
struct FailedReads {
    /// A part of an object that is read by itself.
    private enum Part: Hashable {
        case row
        case members(index: Int)
        /// A fetched property, or an expression that fetches, by its name or text: it is computed anew each time.
        case computed(String)
    }

    private struct Place: Hashable {
        let object: ObjectIdentifier
        let part: Part
    }

    private struct Failure {
        // Held, so that its identifier stands for no other object.
        let object: NSManagedObject
        let error: any Error
        /// Whether the object was changed while its row could not be read, or by the write that has read it in the end.
        var isWrittenTo = false
    }

    private var failures: [Place: Failure] = [:]
    /// The first failed read of the innermost block, until the block ends.
    private var pending: (any Error)?

    /// Whether every read that has failed was made good.
    var isEmpty: Bool { failures.isEmpty }

    // MARK: - What happens

    /// A fault could not be filled.
    mutating func noteRow(of object: NSManagedObject, _ error: any Error) { note(object, .row, error) }

    /// The members of a relationship could not be read.
    mutating func noteMembers(_ slot: ToManySlot, of object: NSManagedObject, _ error: any Error) {
        note(object, .members(index: slot.index), error)
    }

    /// A fetched property, or an expression that fetches, could not be computed for an object.
    mutating func noteComputed(_ name: String, of object: NSManagedObject, _ error: any Error) {
        note(object, .computed(name), error)
    }

    /// A read failed that leaves what was there before, such as a refresh: only the block fails.
    mutating func note(_ error: any Error) {
        if pending == nil { pending = error }
    }

    private mutating func note(_ object: NSManagedObject, _ part: Part, _ error: any Error) {
        note(error)
        let place = Place(object: ObjectIdentifier(object), part: part)
        if failures[place] == nil { failures[place] = Failure(object: object, error: error) }
    }

    /// An object is written to although its row could not be read.
    mutating func noteWrite(to object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .row)]?.isWrittenTo = true
    }

    /// An object is written to, and only that has read its row.
    ///
    /// If a read of the row has failed in the same block, as that of `price += 1` does when the disk fails once, then
    /// the value that is written may have been computed from zero.
    mutating func noteWriteThatReads(to object: NSManagedObject) {
        if pending != nil { noteWrite(to: object) }
    }

    /// All changes of an object are dropped, those included that were made while its row could not be read.
    mutating func noteDroppedChanges(of object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .row)]?.isWrittenTo = false
    }

    /// The members of a relationship were read.
    ///
    /// Members that were added and removed before then stay added and removed.
    mutating func noteRead(_ slot: ToManySlot, of object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .members(index: slot.index))] = nil
    }

    /// A fetched property was fetched.
    mutating func noteComputedRead(_ name: String, of object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .computed(name))] = nil
    }

    /// All changes are gone, and so is what was computed.
    mutating func removeAll() { failures = [:] }

    // MARK: - What follows

    /// The objects still in the context with parts that were not read yet, and the first error; `nil` if there are
    /// none.
    mutating func unread() -> (objects: [NSManagedObject], error: any Error)? {
        if failures.isEmpty { return nil }
        failures = failures.filter { !Self.isMadeGood($0.key.part, $0.value) }
        guard let first = failures.values.first else { return nil }
        var seen: Set<ObjectIdentifier> = []
        return (failures.values.map(\.object).filter { seen.insert(ObjectIdentifier($0)).inserted }, first.error)
    }

    private static func isMadeGood(_ part: Part, _ failure: Failure) -> Bool {
        let object = failure.object
        guard object.managedObjectContext != nil else { return true }
        guard part == .row, !object.flags.contains(.fault) else { return false }
        if failure.isWrittenTo, object.flags.contains(.ownsRow) { return false }
        return object.baseRow.map { $0.version >= 0 } ?? true
    }

    /// The error of reading the row of an object that was changed all the same; `nil` for any other object.
    ///
    /// The values of such an object that were not set are made up.
    func error(ofWrittenRowOf object: NSManagedObject) -> (any Error)? {
        guard !failures.isEmpty, let row = object.current, row.version < 0 else { return nil }
        return failures[Place(object: ObjectIdentifier(object), part: .row)]?.error
    }

    // MARK: - Blocks

    /// Begins a block, which answers for its own reads only.
    ///
    /// - Returns: The argument for ``endBlock(_:)``.
    mutating func beginBlock() -> (any Error)? {
        defer { pending = nil }
        return pending
    }

    /// Ends a block.
    ///
    /// - Parameter earlier: The result of ``beginBlock()``.
    /// - Returns: The error of the first of its reads that has failed.
    mutating func endBlock(_ earlier: (any Error)?) -> (any Error)? {
        defer { pending = earlier }
        return pending
    }
}

extension NSManagedObjectContext {
    /// Runs a block of the program inside the scope, and throws if a read inside it failed without a throw.
    ///
    /// A block that throws by itself throws its own error. One that cannot throw leaves the failure to the block around it.
    final func failingWithReads<T, Failure: Error>(_ block: () throws(Failure) -> T) throws(Failure) -> T {
        let earlier = failedReads.beginBlock()
        let result: T
        do throws(Failure) {
            result = try block()
        } catch {
            _ = failedReads.endBlock(earlier)
            throw error
        }
        guard let error = failedReads.endBlock(earlier) else { return result }
        if let failure = error as? Failure { throw failure }
        // The block around this one answers for it.
        failedReads.note(error)
        return result
    }

    /// Refuses to save what may have been computed from values that were not read.
    final func requireReadValues() throws {
        guard !failedReads.isEmpty, let (objects, error) = failedReads.unread() else { return }
        #if FaultPoints
        if FaultGuard.failedReadGuard.isOff { return }
        #endif
        throw CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey: """
                Nothing was saved: \(objects[0].objectID)\(objects.count > 1 ? " and \(objects.count - 1) other objects" : "") could not be \
                read, and changes may have been computed from the values that are missing. Roll back, or read the objects \
                again before you save: \(error.localizedDescription)
                """,
                NSAffectedObjectsErrorKey: objects,
                NSUnderlyingErrorKey: error,
            ]
        ).marked(.environment)
    }
}
