import Foundation
import StrataLocks
import StrataRows

/// The failed reads of a context at places that cannot throw, such as the getter of a property.
///
/// The property then shows zero, nil or an empty collection. The block in which the read failed throws the error at
/// its end. The context saves nothing that may have been computed from such a value.
///
/// This is a part of its context. It is used inside the context's scope only.
struct FailedReads {
    /// A part of an object that is read by itself.
    private enum Part: Hashable {
        case row
        case members(index: Int)
        /// A fetched property, or an expression that fetches, by its name or text.
        ///
        /// It is computed anew each time.
        case computed(String)
    }

    private struct Place: Hashable {
        let object: ObjectIdentifier
        let part: Part
    }

    private struct Failure {
        // The object is held, so that its identifier stands for no other object.
        let object: NSManagedObject
        let error: any Error
        /// Whether the object was changed while its row could not be read, or by the write that finally read the row.
        var isWrittenTo = false
    }

    private var failures: [Place: Failure] = [:]
    /// The first failed read of the innermost block, until the block ends.
    private var pending: (any Error)?

    /// Whether all failed reads have been made good.
    var isEmpty: Bool { failures.isEmpty }

    // MARK: - Noting

    /// Notes that a fault could not be filled.
    mutating func recordFailedRow(of object: NSManagedObject, error: any Error) {
        recordFailure(of: object, part: .row, error: error)
    }

    /// Notes that the members of a relationship could not be read.
    mutating func recordFailedMembers(_ slot: ToManySlot, of object: NSManagedObject, error: any Error) {
        recordFailure(of: object, part: .members(index: slot.index), error: error)
    }

    /// Notes that a fetched property, or an expression that fetches, could not be computed for an object.
    mutating func recordFailedComputation(_ name: String, of object: NSManagedObject, error: any Error) {
        recordFailure(of: object, part: .computed(name), error: error)
    }

    /// Notes a failed read that left the earlier values in place, such as a refresh.
    ///
    /// Only the block fails.
    mutating func recordError(_ error: any Error) {
        if pending == nil { pending = error }
    }

    private mutating func recordFailure(of object: NSManagedObject, part: Part, error: any Error) {
        recordError(error)
        let place = Place(object: ObjectIdentifier(object), part: part)
        if failures[place] == nil { failures[place] = Failure(object: object, error: error) }
    }

    /// Notes a write to an object whose row could not be read.
    mutating func recordWrite(to object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .row)]?.isWrittenTo = true
    }

    /// Notes a write to an object whose row was read only by this write.
    ///
    /// If a read of the row has failed earlier in the same block, then the written value may have been computed from
    /// zero. This happens to `price += 1` when the disk fails once.
    mutating func recordReadingWrite(to object: NSManagedObject) {
        if pending != nil { recordWrite(to: object) }
    }

    /// Notes that all changes of an object were dropped, including those made while its row could not be read.
    mutating func forgetWrites(to object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .row)]?.isWrittenTo = false
    }

    /// Notes that the members of a relationship were read.
    ///
    /// Members that were added or removed before the read stay added or removed.
    mutating func forgetFailedMembers(_ slot: ToManySlot, of object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .members(index: slot.index))] = nil
    }

    /// Notes that a fetched property was fetched.
    mutating func forgetFailedComputation(_ name: String, of object: NSManagedObject) {
        failures[Place(object: ObjectIdentifier(object), part: .computed(name))] = nil
    }

    /// Forgets all failures, since all changes are gone and with them all computed values.
    mutating func removeAll() { failures = [:] }

    // MARK: - Consequences for saves

    /// The objects in the context with parts that are still unread, and the first error; `nil` if there are none.
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

    /// The error of reading the row of an object that was changed nevertheless; `nil` for any other object.
    ///
    /// Such an object has made-up values in the properties that were not set.
    func error(ofWrittenRowOf object: NSManagedObject) -> (any Error)? {
        guard !failures.isEmpty, let row = object.current, row.version < 0 else { return nil }
        return failures[Place(object: ObjectIdentifier(object), part: .row)]?.error
    }

    // MARK: - Blocks

    /// Begins a block, which is responsible for its own reads only.
    ///
    /// - Returns: The argument for ``endBlock(_:)``.
    mutating func beginBlock() -> (any Error)? {
        defer { pending = nil }
        return pending
    }

    /// Ends a block.
    ///
    /// - Parameter earlier: The result of ``beginBlock()``.
    /// - Returns: The error of its first read that has failed.
    mutating func endBlock(_ earlier: (any Error)?) -> (any Error)? {
        defer { pending = earlier }
        return pending
    }
}

extension NSManagedObjectContext {
    /// Runs a block of the program inside the scope, and throws if a read inside it failed but could not throw.
    ///
    /// If the block throws, then its error is thrown. If the block cannot throw, then the failure passes to the
    /// enclosing block.
    package final func failingWithReads<T, Failure: Error>(_ block: () throws(Failure) -> T) throws(Failure) -> T {
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
        // The enclosing block is responsible for the error.
        failedReads.recordError(error)
        return result
    }

    /// Runs a block that cannot throw, and returns the error of its first read that has failed beside its result.
    package final func collectingFailure<T>(_ block: () -> T) -> (result: T, failure: (any Error)?) {
        let earlier = failedReads.beginBlock()
        let result = block()
        return (result, failedReads.endBlock(earlier))
    }

    /// Refuses to save values that may have been computed from unread values.
    final func requireReadValues() throws {
        guard !failedReads.isEmpty, let (objects, error) = failedReads.unread() else { return }
        if FaultGuard.failedReadGuard.isOff { return }
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
