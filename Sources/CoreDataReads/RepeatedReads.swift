import CoreDataEssentials
import Foundation
import StrataLocks
import Synchronization

/// Reads of one kind that a block makes one by one, where one prefetch or one fetch would do: the N+1 problem.
///
/// ```swift
/// RepeatedReadLog.handler = { reads in print(reads.entity, reads.prefetch ?? "", reads.place ?? "") }
/// ```
///
/// An addition to Apple's API.
public struct RepeatedReads: Sendable, CustomStringConvertible {
    /// The name of the context in messages.
    public let context: String
    /// The number of objects that were read by then, or of fetches.
    public let count: Int
    /// The entity of the objects or fetches; for a to-many relationship the entity that has it.
    public let entity: String
    /// The to-many relationship whose members were read; `nil` if rows of objects were.
    public let relationship: String?
    /// The property that the program has read last; `nil` if that is not known.
    public let property: String?
    /// The relationship by which the program has come to the objects, as `Entity.relationship`; `nil` if there is none.
    public let origin: String?
    /// The key path for `relationshipKeyPathsForPrefetching` that would have helped; `nil` if no prefetch would.
    public let prefetch: String?
    /// The entity of the fetch that needs the prefetch.
    public let fetchedEntity: String?
    /// The predicate of that fetch, with `?` for every value; `nil` if it has none, or was not made in this block.
    public let predicate: String?
    /// The properties that each of these fetches has compared with other values; empty if the reads were no fetches.
    ///
    /// One fetch with `IN`, in place of `==`, would find the same objects.
    public let comparedKeyPaths: [String]
    /// The file and the line of the program that made the last read, such as `VenueList.swift:12`; `nil` if it is not known.
    ///
    /// It is known on Linux, unless the program was built or stripped without debug information. Swift's package manager
    /// adds it to debug and release builds.
    public let place: String?
    /// The function of the program that made the last read, such as `VenueList.show`; `nil` if it is not known.
    ///
    /// It is known on Linux, unless the program has lost its symbols. A closure is named by its function, and an accessor by
    /// the function that uses the property.
    public let function: String?

    /// Where the last read was made, with a blank in front; empty if that is not known.
    private var caller: String {
        (place.map { " at \($0)" } ?? "") + (function.map { " in \($0)" } ?? "")
    }

    /// The reads and the advice as one line of a log.
    public var description: String {
        if !comparedKeyPaths.isEmpty { return descriptionOfFetches }
        let what =
            relationship.map { "the members of \(entity).\($0) of \(count) objects" } ?? "\(count) objects of \(entity)"
        var text = "CoreData: repeated reads in \(context): \(what) were read one by one"
        if let property, relationship == nil { text += ", the last for \"\(property)\"" }
        if !caller.isEmpty { text += ",\(caller)" }
        if let origin, relationship == nil { text += "; \(origin) leads to them" }
        let request = "fetch of \(fetchedEntity ?? entity)" + (predicate.map { " where \($0)" } ?? "")
        guard let prefetch else {
            guard fetchedEntity != nil else {
                return text + ". Fetch these objects together before you read them, for instance where SELF IN ?."
            }
            return text
                + ". Let the \(request) read the values, with includesPropertyValues, or fetch the objects again."
        }
        return text + ". On the \(request), set relationshipKeyPathsForPrefetching = [\"\(prefetch)\"]."
    }

    private var descriptionOfFetches: String {
        let request = entity + (predicate.map { " where \($0)" } ?? "")
        var text = "CoreData: repeated reads in \(context): \(count) fetches of \(request) were made one by one"
        if !caller.isEmpty { text += ", the last\(caller)" }
        let conditions = comparedKeyPaths.map { "\($0) IN ?" }.joined(separator: " and ")
        return text + ". Fetch these objects together before you look for each, with \(conditions)."
    }
}

/// The log of reads that a block makes one by one, and that one prefetch or one fetch could make together.
///
/// In a debug build all blocks of `perform` and of actors are watched, otherwise one in 64. The log counts the objects
/// whose fault, or whose to-many relationship, a block reads from a store because of a property that is accessed. Reads
/// from the row cache, prefetches, batches of a fetch, saves and merges do not count. Each entity, and each to-many
/// relationship, is reported once for each block. It also counts the fetches of an entity that differ only in the values
/// for which they compare properties for equality, as in a loop that looks for one object after the other. The coordinator's ``NSPersistentStoreCoordinator/instrument``
/// receives an event of the kind ``CoreDataEvent/Kind/repeatedReads`` as well.
///
/// `STRATA_REPEATED_READS` in the environment is the ``threshold``; 0 turns the log off. Any thread may use it.
///
/// See <doc:Diagnostics>.
///
/// ```swift
/// RepeatedReadLog.threshold = 5
/// RepeatedReadLog.handler = { reads in print(reads) }
/// ```
///
/// An addition to Apple's API.
public enum RepeatedReadLog {
    private struct Settings {
        var threshold = ReadWatching.initialThreshold
        var interval = ReadWatching.usualInterval
        var handler: (@Sendable (RepeatedReads) -> Void)?
        /// The lines that were written, so that each is written once.
        var written: Set<Int> = []

        /// Makes the blocks that begin from now on keep to the settings.
        func apply() { ReadWatching.interval.store(threshold == nil ? 0 : interval, ordering: .relaxed) }
    }

    /// The most lines that are written in one process.
    private static let lineLimit = 1000
    private static let settings = Locked(Settings())

    /// The number of objects from which on their reads are reported; at least 2.
    ///
    /// Default 10, or the number that the environment sets; `nil` turns the log off. A change affects the blocks that
    /// begin afterwards.
    public static var threshold: Int? {
        get { settings.withLock { $0.threshold } }
        set {
            settings.withLock {
                $0.threshold = newValue.map { max(2, $0) }
                $0.apply()
            }
        }
    }

    /// How many blocks there are to each that is watched; at least 1, which means all.
    ///
    /// Default 1 in a debug build of the package, otherwise 64.
    public static var samplingInterval: Int {
        get { settings.withLock { $0.interval } }
        set {
            settings.withLock {
                $0.interval = max(1, newValue)
                $0.apply()
            }
        }
    }

    /// The function that receives the entries of the log.
    ///
    /// It is called on the thread that reads, inside the scope of the context, in the middle of the read. So return
    /// quickly, and do not use the context.
    ///
    /// Default nil: each entry is written to standard error as one line, once for each place of the program.
    public static var handler: (@Sendable (RepeatedReads) -> Void)? {
        get { settings.withLock { $0.handler } }
        set {
            // An object that only the former handler holds ends after the lock: its end may be code of the program.
            var handler = newValue
            settings.withLock { swap(&$0.handler, &handler) }
        }
    }

    /// Reports an entry.
    ///
    /// - Parameters:
    ///   - name: The entity or the relationship. It tells places apart, together with the calls that lead to the read.
    ///   - entry: Makes the entry from the place and the function of the program.
    static func report(_ name: String, _ entry: (_ place: String?, _ function: String?) -> RepeatedReads) {
        let calls = PlaceOfCall.calls
        var hasher = Hasher()
        hasher.combine(name)
        hasher.combine(calls)
        let place = hasher.finalize()
        let (handler, isNew) = settings.withLock { settings in
            guard settings.handler == nil, settings.written.count < lineLimit else { return (settings.handler, false) }
            return (nil, settings.written.insert(place).inserted)
        }
        guard handler != nil || isNew else { return }
        let caller = PlaceOfCall(of: calls)
        SlowLog(handler: handler).report(entry(caller.line, caller.function))
    }
}
