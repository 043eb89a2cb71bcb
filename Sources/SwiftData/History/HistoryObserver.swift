import CoreData
import Dispatch
import Foundation
import Observation
import StrataLocks

/// Counts the transactions that the histories of a container's stores record.
///
/// Observers of ``eventCounter`` are called, on a queue of the observer's own, after each save that counts. Any thread may
/// use it.
///
/// ```swift
/// let imports = try HistoryObserver(observedModels: [Trip.self], authors: ["import"], modelContainer: container)
/// withObservationTracking { _ = imports.eventCounter } onChange: { print("trips were imported") }
/// ```
public final class HistoryObserver: Observable, @unchecked Sendable {
    // @unchecked Sendable: types are immutable, and all that changes is locked or used on the queue.

    /// The container.
    public let modelContainer: ModelContainer
    /// The classes whose changes count; empty for all.
    public let observedModels: [any PersistentModel.Type]
    /// The authors whose transactions count; empty for all.
    public let authors: Set<String>
    private let registrar = ObservationRegistrar()
    private let counter = Locked(0)
    private let queue = DispatchQueue(label: "SwiftData.HistoryObserver")
    private let context: ManagedContext
    private let entities: Set<String>
    /// The place in the histories up to which the transactions are counted.
    private var place: NSPersistentHistoryToken
    private var commits: CommitObserver?

    /// Counts from given places in the histories, or from now.
    ///
    /// - Parameters:
    ///   - historyTokens: The places, by the identifiers of the stores. Later transactions are counted at once. A store
    ///     without one is counted from now.
    ///   - observedModels: The classes whose changes count; empty for all.
    ///   - authors: The authors whose transactions count; empty for all.
    ///   - modelContainer: The container.
    ///   - isolation: The actor of the caller.
    /// - Throws: `SwiftDataError.invalidTransactionFetchRequest` for a token of another type than `DefaultHistoryToken`,
    ///   `SwiftDataError.historyTokenExpired` for one after which transactions were removed, and the errors of the stores.
    public convenience init(
        historyTokens: [String: any HistoryToken]? = nil,
        observedModels: [any PersistentModel.Type] = [],
        authors: Set<String> = [],
        modelContainer: ModelContainer,
        isolation: isolated (any Actor)? = #isolation
    ) throws {
        try self.init(historyTokens, observedModels, authors, modelContainer)
    }

    private init(
        _ tokens: [String: any HistoryToken]?,
        _ observedModels: [any PersistentModel.Type],
        _ authors: Set<String>,
        _ container: ModelContainer
    ) throws {
        modelContainer = container
        self.observedModels = observedModels
        self.authors = authors
        entities = Set(observedModels.map { Schema.entityName(for: $0) })
        context = ManagedContext(container)
        var places: [String: Int64] = [:]
        for (store, token) in tokens ?? [:] {
            guard let token = token as? DefaultHistoryToken else {
                throw SwiftDataError(.invalidTransactionFetchRequest, "\(type(of: token)) is no DefaultHistoryToken")
            }
            places[store] = token.tokenValue?[store] ?? 0
        }
        let now = container.coordinator.currentPersistentHistoryToken(fromStores: nil)
        place = NSPersistentHistoryToken(
            transactionNumbers: (now?.transactionNumbers ?? [:]).merging(places) { $1 }
        )
        let commits = CommitObserver(
            committed: { [weak self] _ in
                guard let self else { return }
                queue.async { self.countLater() }
            },
            contextEnded: {}
        )
        self.commits = commits
        container.coordinator.commits.subscribe(commits)
        try container.followOtherProcesses()
        try queue.sync {
            do {
                try count()
            } catch let error where Self.isExpired(error) {
                throw SwiftDataError(.historyTokenExpired, error.localizedDescription)
            }
        }
    }

    private static func isExpired(_ error: any Error) -> Bool {
        (error as? CocoaError)?.code.rawValue == NSPersistentHistoryTokenExpiredError
    }

    /// The number of transactions so far that have an observed author and change an observed class.
    ///
    /// If transactions were removed from the history before they were counted, then they count as one.
    public var eventCounter: Int {
        registrar.access(self, keyPath: \.eventCounter)
        return counter.withLock { $0 }
    }

    private func countLater() {
        do {
            try count()
        } catch let error where Self.isExpired(error) {
            countRemoved()
        } catch {
            // The next save counts these transactions, too.
            modelContainer.coordinator.report(error, "reading the history")
        }
    }

    /// Counts the transactions after the place, on the queue.
    private func count() throws {
        // Since the container was erased, its stores have other identifiers. They are read from their beginning.
        let known = Set(modelContainer.coordinator.persistentStores.compactMap(\.identifier))
        let start = place.transactionNumbers.filter { known.contains($0.key) }
        let transactions = try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(
                after: NSPersistentHistoryToken(transactionNumbers: start)
            )
            let result = try context.execute(request) as? NSPersistentHistoryResult
            return result?.result as? [NSPersistentHistoryTransaction] ?? []
        }
        guard !transactions.isEmpty else { return }
        var numbers = start
        for transaction in transactions {
            numbers[transaction.storeID] = max(numbers[transaction.storeID] ?? 0, transaction.transactionNumber)
        }
        place = NSPersistentHistoryToken(transactionNumbers: numbers)
        let events = transactions.filter(counts).count
        if events > 0 { add(events) }
    }

    /// Goes on from now, because the removed transactions cannot be read any more.
    private func countRemoved() {
        let now = modelContainer.coordinator.currentPersistentHistoryToken(fromStores: nil)
        place = NSPersistentHistoryToken(
            transactionNumbers: place.transactionNumbers.merging(now?.transactionNumbers ?? [:]) { $1 }
        )
        add(1)
    }

    private func add(_ events: Int) {
        registrar.withMutation(of: self, keyPath: \.eventCounter) { counter.withLock { $0 += events } }
    }

    private func counts(_ transaction: NSPersistentHistoryTransaction) -> Bool {
        guard authors.isEmpty || transaction.author.map(authors.contains) == true else { return false }
        return entities.isEmpty
            || (transaction.changes ?? []).contains { entities.contains($0.changedObjectID.entity.name ?? "") }
    }
}
