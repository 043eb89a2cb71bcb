import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import Synchronization

/// A question that is about to be asked of a store.
///
/// It is made only while reads are watched.
package struct StoreRead {
    /// The ways in which stores are asked.
    package enum Kind: Sendable {
        /// A fetch of objects, IDs or values, or a count.
        case fetch
        /// The row of one object.
        case row
        /// The members of a to-many relationship of one object.
        case members
        /// The rows of several objects at once, for a prefetch or a batch.
        case rows
        /// The members of a to-many relationship of several objects at once, for a prefetch.
        case memberships
    }

    package let kind: Kind
    /// The name of the entity whose rows are read; for members the entity that has the relationship.
    package let entity: String
    /// The number of the root of the entity's hierarchy; 0 if it is not known.
    package let root: Int
    /// The relationship, if members are read.
    package let relationship: String?
    /// The object whose row or members are read; `nil` unless it is one alone.
    package let key: Int64?
    /// The predicate of a fetch.
    package let predicate: NSPredicate?
    /// Whether a fetch has brought the row before, and others may have changed it since.
    package let renewsRow: Bool

    package init(
        _ kind: Kind,
        _ layout: EntityLayout,
        relationship: String? = nil,
        key: Int64? = nil,
        predicate: NSPredicate? = nil,
        renewsRow: Bool = false
    ) {
        self.kind = kind
        entity = layout.name
        root = layout.rootNumber
        self.relationship = relationship
        self.key = key
        self.predicate = predicate
        self.renewsRow = renewsRow
    }
}

/// Follows the reads of one block of a context, or all reads of a coordinator's contexts.
package protocol ReadWatch: AnyObject {
    /// Receives a read before the store is asked.
    ///
    /// Called on the thread that reads, with no lock held.
    ///
    /// - Parameters:
    ///   - read: The read.
    ///   - context: The context in whose block it is made, which may be below the one that reads; `nil` if it is not made
    ///     in a block.
    /// - Throws: An error with which the read fails; the store is not asked.
    func willRead(_ read: StoreRead, in context: NSManagedObjectContext?) throws
}

/// The rules of a context for the reads in its blocks.
package struct ReadRules: Sendable, Equatable {
    /// The greatest number of reads in one block; `nil` for any.
    package var budget: Int?
    /// Whether a property that has to be read from the store makes the block fail.
    package var refusesLazyReads = false

    /// Makes rules that allow everything.
    package init() {}

    /// Whether nothing is demanded.
    package var isEmpty: Bool { budget == nil && !refusesLazyReads }
}

/// The property whose value is being read, for messages.
package struct LazyRead {
    // It is valid during the read, and its object is held by the code that reads.
    package unowned(unsafe) let object: NSManagedObject
    /// The name of the property; `nil` for the object as a whole.
    package let property: String?
}

/// The choice of the blocks that are watched, and their number at this time.
///
/// If nothing is watched, then a read looks at one number of the process.
package enum ReadWatching {
    /// The name of the environment variable that sets from which number of reads on a repetition is reported.
    package static let variable = "STRATA_REPEATED_READS"

    /// The number of reads of one kind from which on they are reported, before the program has set it; `nil` for never.
    package static let initialThreshold: Int? = {
        let text = ProcessInfo.processInfo.environment[variable]
        guard let text else { return 10 }
        return Int(text).flatMap { $0 > 0 ? $0 : nil }
    }()

    /// How many blocks there are to each that is watched without rules: all in a debug build, otherwise one in 64.
    package static var usualInterval: Int {
        #if DEBUG
        1
        #else
        64
        #endif
    }

    /// How many blocks there are to each that is watched without rules; 0 if none is.
    package static let interval = AtomicCell(initialThreshold == nil ? 0 : usualInterval)

    /// The number of blocks and coordinators in the process that are watched.
    private static let watches = AtomicCell(0)

    /// Whether anything is watched, so that reads have to be announced.
    @inline(__always) static var isOn: Bool { watches.load(ordering: .relaxed) > 0 }

    /// Notes that a block or a coordinator is watched from now on.
    package static func begin() { watches.add(1, ordering: .relaxed) }

    /// Notes that a block or a coordinator is no longer watched.
    package static func end() { watches.subtract(1, ordering: .relaxed) }
}

extension NSPersistentStoreCoordinator {
    /// Watches all reads of the coordinator's contexts until ``remove(_:)``.
    package func add(_ watch: any ReadWatch & Sendable) {
        instrumentation.readWatches.withLock { $0.append(watch) }
        ReadWatching.begin()
    }

    /// Ends a watch.
    package func remove(_ watch: any ReadWatch & Sendable) {
        instrumentation.readWatches.withLock { $0.removeAll { $0 === watch } }
        ReadWatching.end()
    }

    /// Announces a read that no context makes.
    @inline(__always)
    package func willRead(_ read: @autoclosure () -> StoreRead) throws {
        guard ReadWatching.isOn else { return }
        try announce(read(), in: nil)
    }

    fileprivate func announce(_ read: StoreRead, in context: NSManagedObjectContext?) throws {
        for watch in instrumentation.readWatches.withLock({ $0 }) { try watch.willRead(read, in: context) }
    }
}

extension NSManagedObjectContext {
    /// The rules for the reads in the context's blocks; `nil` for none.
    package final var readRules: ReadRules? {
        get { settings.readRules }
        set {
            assertCurrentOrUnused(#function)
            settings.readRules = newValue.flatMap { $0.isEmpty ? nil : $0 }
        }
    }

    /// Runs a block of the program, and watches its reads if the context demands something of them, or if it is the
    /// block's turn.
    ///
    /// A block inside a block of the same context belongs to the outer one.
    @inline(__always)
    final func watchingReads<T, Failure: Error>(_ block: () throws(Failure) -> T) throws(Failure) -> T {
        guard blockWatch == nil, settings.readRules != nil || isWatchedInTurn else { return try block() }
        return try runWatched(block)
    }

    @inline(never)
    private final func runWatched<T, Failure: Error>(_ block: () throws(Failure) -> T) throws(Failure) -> T {
        blockWatch = HigherTargets.all.watch(self)
        ReadWatching.begin()
        defer {
            ReadWatching.end()
            blockWatch = nil
        }
        return try block()
    }

    /// Whether the next block is one of those that are watched without rules.
    private final var isWatchedInTurn: Bool {
        @inline(__always) get {
            let interval = ReadWatching.interval.load(ordering: .relaxed)
            guard interval > 1 else { return interval == 1 }
            // Most contexts run few blocks, so each begins at another place of the count.
            if blocksUntilWatch < 0 { blocksUntilWatch = Int(OperationTally.now >> 8) % interval }
            guard blocksUntilWatch == 0 else {
                blocksUntilWatch -= 1
                return false
            }
            blocksUntilWatch = interval - 1
            return true
        }
    }

    /// Announces a read to those who watch; called before each read of a store.
    ///
    /// - Throws: The error of a watch that refuses the read.
    @inline(__always)
    final func willRead(_ read: @autoclosure () -> StoreRead) throws {
        guard ReadWatching.isOn else { return }
        try announce(read())
    }

    /// Announces a read to the coordinator's watches, and to those of all blocks that wait for it.
    @inline(never)
    private final func announce(_ read: StoreRead) throws {
        var blocks: [NSManagedObjectContext] = []
        for case let context as NSManagedObjectContext in ConfinementScope.stack.owners
        where context.blockWatch != nil && !blocks.contains(where: { $0 === context }) {
            blocks.append(context)
        }
        // The program knows the block that it has just submitted, so the innermost one comes first.
        try coordinator?.announce(read, in: blocks.first)
        for context in blocks { try context.blockWatch?.willRead(read, in: context) }
    }

    /// Runs `body`, which reads a property of an object, so that a watch can name both.
    @inline(__always)
    final func readingLazily<T>(
        _ object: NSManagedObject,
        _ property: @autoclosure () -> String?,
        _ body: () throws -> T
    ) rethrows -> T {
        guard blockWatch != nil else { return try body() }
        let outer = lazyRead
        lazyRead = LazyRead(object: object, property: property())
        defer { lazyRead = outer }
        return try body()
    }
}
