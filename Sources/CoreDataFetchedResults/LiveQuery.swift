import CoreDataEssentials
import Foundation
import StrataLocks
import StrataPredicates
import StrataRows

/// The query of one observer: the changes since its last snapshot, and the wait for the next one.
///
/// Commits leave notes here on the thread that announces them. The observer takes the notes when it asks for its next
/// snapshot, and only then a fetch is made. So a slow observer coalesces commits instead of queueing snapshots, and
/// an observer needs no thread. No commit is missed, because a snapshot is read after the commit was noted. The
/// snapshots come in commit order, because an observer reads them one after the other.
///
/// Any thread may call any member.
final class LiveQuery: Sendable {
    /// The changes that were committed since the last snapshot.
    private struct Notes: PendingNews {
        /// The changed rows of the entity itself.
        private(set) var rows: Set<RowName> = []
        /// Whether nothing was noted.
        private(set) var isEmpty = true
        /// Whether the next snapshot is reported even if it equals the last one.
        private(set) var isCertain = false

        init() {}

        /// The notes that make sure that there is a first snapshot.
        static var certain: Notes {
            var notes = Notes()
            notes.isEmpty = false
            notes.isCertain = true
            return notes
        }

        mutating func add(_ changed: [RowName]) {
            isEmpty = false
            guard !isCertain else { return }
            rows.formUnion(changed)
            // If an observer does not ask for a long time, then it needs no list of the changes that it has missed.
            if rows.count > WorkSize.missedRows { self = .certain }
        }

        mutating func take() -> Notes {
            defer { self = Notes() }
            return self
        }
    }

    /// The context that makes the snapshots; it is not kept alive.
    private struct Asked {
        weak var context: NSManagedObjectContext?
    }

    private let box: NewsBox<Notes>
    private let asked: Locked<Asked>
    private let request: LiveRequest
    /// The relationships that are read with the objects of a snapshot; `nil` for none.
    var prefetching: LivePrefetching? { request.prefetching }
    /// The functions that coordinators and contexts call; they leave notes.
    let observer: CommitObserver

    init(_ request: LiveRequest, _ context: NSManagedObjectContext) {
        self.request = request
        let box = NewsBox(Notes.certain)
        self.box = box
        observer = Self.observer(request, box)
        asked = Locked(Asked(context: context))
    }

    /// A query that has already ended.
    static func finished(_ request: LiveRequest) -> LiveQuery { LiveQuery(finished: request) }

    private init(finished request: LiveRequest) {
        self.request = request
        box = NewsBox()
        observer = Self.observer(request, box)
        asked = Locked(Asked())
        box.finish()
    }

    // MARK: - Noting commits

    /// The functions that note a commit if it may matter, and the end of the context.
    private static func observer(_ request: LiveRequest, _ box: NewsBox<Notes>) -> CommitObserver {
        CommitObserver(
            committed: { message in
                guard let message else { return box.note { $0 = .certain } }
                guard let rows = request.rows(in: message) else { return }
                box.note { $0.add(rows) }
            },
            contextEnded: { box.finish() }
        )
    }

    /// Ends the sequence and every wait.
    func finish() { box.finish() }

    // MARK: - The observer's side

    /// The next list of IDs that differs from `last`, or whose objects have changed.
    ///
    /// - Returns: `nil` when the context has gone or the task was cancelled.
    func next(after last: [NSManagedObjectID]?) async throws -> [NSManagedObjectID]? {
        while let notes = await box.next() {
            guard let context = asked.withLock({ $0.context }) else { return nil }
            let ids: [NSManagedObjectID]
            do {
                let request = request
                ids = try await context.performInternally { try request.fetch(in: context) }
            } catch {
                finish()
                throw error
            }
            if Task.isCancelled { return nil }
            if notes.isCertain || last == nil || isNews(ids, since: last ?? [], changed: notes.rows) { return ids }
        }
        return nil
    }

    private func isNews(
        _ ids: [NSManagedObjectID],
        since last: [NSManagedObjectID],
        changed: Set<RowName>
    ) -> Bool {
        guard ids.count == last.count, zip(ids, last).allSatisfy({ $0 === $1 }) else { return true }
        guard !changed.isEmpty else { return false }
        return ids.contains { id in
            let (key, store) = id.current
            guard let store else { return false }
            return changed.contains(RowName(store, root: id.layout.rootNumber, key: key))
        }
    }
}

/// The relationships that a request prefetches, with the entity from which their key paths start.
struct LivePrefetching: Sendable, Equatable {
    let layout: EntityLayout
    let keyPaths: [String]

    static func == (lhs: LivePrefetching, rhs: LivePrefetching) -> Bool {
        lhs.layout === rhs.layout && lhs.keyPaths == rhs.keyPaths
    }
}

/// The request of a live query, resolved once; any thread may read it.
struct LiveRequest: Sendable {
    /// A private copy that never changes: predicates and sort descriptors are immutable.
    private let specification: UncheckedBox<(FetchSpecification, [NSPersistentStore]?)>
    /// The entities whose rows make up the answer.
    private(set) var entityNumbers: Set<Int> = []
    /// The roots of other entities that influence the answer.
    private(set) var relatedRoots: Set<Int> = []
    /// The relationships that are read with the objects of a snapshot; `nil` for none.
    private(set) var prefetching: LivePrefetching?

    init(_ request: any AnyFetchRequest, _ context: NSManagedObjectContext) {
        var specification = request.specification
        specification.resultType = .managedObjectIDResultType
        specification.includesPendingChanges = false
        self.specification = UncheckedBox((specification, request.affectedStores))
        // If the request makes no sense, then the first fetch reports that.
        guard let model = context.persistentStoreCoordinator?.frozenModel,
            let plan = try? FetchPlanner(model: model).plan(specification)
        else { return }
        entityNumbers = Set(plan.entityNumbers)
        relatedRoots = plan.relatedRootNumbers
        if let keyPaths = specification.relationshipKeyPathsForPrefetching, !keyPaths.isEmpty {
            prefetching = LivePrefetching(layout: plan.layout, keyPaths: keyPaths)
        }
    }

    /// The changed rows of the entity itself; `nil` if the changes cannot concern the answer.
    func rows(in message: ChangeMessage) -> [RowName]? {
        var rows: [RowName] = []
        var mayMatter = false
        for change in [message.inserted, message.updated, message.deleted].joined() {
            if entityNumbers.contains(change.layout.number) {
                rows.append(RowName(change))
                mayMatter = true
            }
            if relatedRoots.contains(change.layout.rootNumber) { mayMatter = true }
        }
        return mayMatter ? rows : nil
    }

    /// The IDs of the committed results; in a tree of contexts, the root fetches them.
    func fetch(in context: NSManagedObjectContext) throws -> [NSManagedObjectID] {
        if let upward = context.upward { return try context.visitParent(upward) { try fetch(in: $0) } }
        return try ContextFetch(context: context, specification: specification.value.0, affected: specification.value.1)
            .ids()
    }
}
