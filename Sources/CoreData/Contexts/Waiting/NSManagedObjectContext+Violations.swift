import CDispatch
import Foundation
import StrataRows
import Synchronization

// What is said of accesses outside of a context's scope.

extension NSManagedObjectContext {
    /// Stops the program, or says once for each place what has stopped others, as `ConcurrencyDebug` wants it.
    @inline(never)
    final func reportViolation(_ member: String, _ object: NSManagedObject?) {
        guard ConcurrencyDebug.current == .warn else { stop(violation(member, object)) }
        guard ReportedPlaces.isNew(member) else { return }
        FileHandle.standardError.write(Data("\(violation(member, object))\n".utf8))
    }

    /// Stops the program with a message.
    final func stop(_ message: String) -> Never { fatalError(message) }

    /// What was touched, where, and where it may be.
    final func violation(_ member: String, _ object: NSManagedObject?) -> String {
        let what = object.map { "\(member) of \($0.objectID)" } ?? member
        let label = String(cString: dispatch_queue_get_label(nil))
        let here =
            (ConfinementScope.innermost as? NSManagedObjectContext)
            .map { "inside the scope of \($0.describedName), on queue \"\(label)\"" } ?? "on queue \"\(label)\""
        return """
            CoreData: \(what) was used \(here), but is confined to \(describedName), whose queue is "\(queue.label)". \
            Use it inside perform or performAndWait of that context, or pass the objectID instead.
            """
    }
}

/// The places from which contexts were used outside of their scopes, as far as they were reported.
///
/// A place is the member and the innermost calls that lead to it. So a loop is reported once, and a function that several others call
/// once for each of them.
private enum ReportedPlaces {
    private struct Place: Hashable {
        let member: String
        let calls: [UInt]
    }

    /// How many calls count: those of the framework itself, and some beyond.
    private static let depth = 12
    /// More places than this are not told apart, so that a program that goes on for long does not collect them without end.
    private static let limit = 1000
    private static let places = Mutex<Set<Place>>([])

    /// Whether the place of the caller was not reported before.
    static func isNew(_ member: String) -> Bool {
        let calls = Thread.callStackReturnAddresses.prefix(depth).map(\.uintValue)
        return places.withLock { places in
            guard places.count < limit else { return false }
            return places.insert(Place(member: member, calls: calls)).inserted
        }
    }
}
