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
        guard ReportedPlaces.add(member) else { return }
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

/// The places from which contexts were used outside of their scopes, and how often.
///
/// A place is the member and the innermost calls that lead to it. So a loop is reported once, and a function that several others call
/// once for each of them. When the process exits, one more line reports the totals: the places of a long run stand far apart.
private enum ReportedPlaces {
    private struct Place: Hashable {
        let member: String
        let calls: [UInt]
    }

    private struct Record {
        var places: Set<Place> = []
        var uses = 0
    }

    /// How many calls count: those of the framework itself, and some beyond.
    private static let depth = 12
    /// More places than this are not told apart, so that a program that goes on for long does not collect them without end.
    private static let limit = 1000
    private static let record = Mutex(Record())

    /// Counts a use by the caller.
    ///
    /// - Returns: whether its place was not reported before.
    static func add(_ member: String) -> Bool {
        let calls = Thread.callStackReturnAddresses.prefix(depth).map(\.uintValue)
        let (isFirst, isNew) = record.withLock { record in
            record.uses += 1
            guard record.places.count < limit else { return (false, false) }
            let isNew = record.places.insert(Place(member: member, calls: calls)).inserted
            return (record.uses == 1, isNew)
        }
        if isFirst { atexit { ReportedPlaces.reportTotals() } }
        return isNew
    }

    private static func reportTotals() {
        let (uses, places) = record.withLock { ($0.uses, $0.places.count) }
        let more = places == limit ? " or more" : ""
        let text = "CoreData: uses outside of a context's scope: \(uses), places: \(places)\(more)\n"
        FileHandle.standardError.write(Data(text.utf8))
    }
}
