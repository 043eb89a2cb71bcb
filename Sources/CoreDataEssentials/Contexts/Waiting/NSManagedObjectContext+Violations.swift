import CDispatch
import Foundation
import StrataLocks
import StrataRows

// Messages about uses of a context outside of its scope.

extension NSManagedObjectContext {
    /// Stops the program, or writes the message once for each place, depending on `ConcurrencyDebug`.
    @inline(never)
    final func reportViolation(_ member: String, _ object: NSManagedObject?) {
        guard ConcurrencyDebug.current == .warn else { stop(violation(member, object)) }
        guard ReportedPlaces.add(member) else { return }
        FileHandle.standardError.write(Data("\(violation(member, object))\n".utf8))
    }

    /// Stops the program with a message.
    final func stop(_ message: String) -> Never { fatalError(message) }

    /// The message: the member that was used, the place of the use, and the context that it is confined to.
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

/// The places from which contexts were used outside of their scopes, and the number of uses.
///
/// A place is the member and the innermost calls that lead to it. So a loop is reported once, and a function that is
/// called from several places is reported once for each of them. When the process exits, one more line reports the
/// totals, since the lines of a long run may be far apart.
private enum ReportedPlaces {
    private struct Place: Hashable {
        let member: String
        let calls: [UInt]
    }

    private struct Record {
        var places: Set<Place> = []
        var uses = 0
    }

    /// The number of calls that count: those of the framework itself, and some before them.
    private static let depth = 12
    /// The greatest number of places to distinguish; it limits the memory of a program that runs for long.
    private static let limit = 1000
    private static let record = Locked(Record())

    /// Counts a use by the caller.
    ///
    /// - Returns: Whether its place was not reported before.
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
