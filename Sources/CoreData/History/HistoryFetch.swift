import Foundation
import StrataPredicates
import StrataRows

/// Answers a history request from the stores of a coordinator.
struct HistoryFetch {
    private let request: NSPersistentHistoryChangeRequest
    private let start: NSPersistentHistoryChangeRequest.Start
    private let isForChanges: Bool
    private let predicate: NSPredicate?
    private let limit: Int

    /// - Throws: `persistentStoreOperation` (134070) for a fetch request that history cannot be asked with.
    init(_ request: NSPersistentHistoryChangeRequest, from start: NSPersistentHistoryChangeRequest.Start) throws {
        self.request = request
        self.start = start
        let fetch = request.fetchRequest
        let entity = fetch?.entity ?? HistoryModel.shared.entity(named: fetch?.entityName)
        if fetch != nil, !HistoryModel.shared.has(entity) {
            throw FetchPlanner.refused(
                """
                A history request takes a fetch request for the entity of NSPersistentHistoryTransaction or of \
                NSPersistentHistoryChange: use their fetchRequest or entityDescription(with:).
                """
            )
        }
        if fetch?.sortDescriptors?.isEmpty == false {
            throw FetchPlanner.refused(
                "History comes in the order in which it happened: leave out the sort descriptors."
            )
        }
        if let fetch, fetch.fetchOffset != 0 || fetch.fetchLimit < 0 {
            throw FetchPlanner.refused("A history request takes no offset, and no negative limit: use a token.")
        }
        isForChanges = entity === HistoryModel.shared.change
        predicate = fetch?.predicate
        limit = fetch?.fetchLimit ?? 0
    }

    /// The answer, in the form that the request asks for.
    func result(from stores: [OpenStore]) throws -> Any? {
        do {
            return try result(from: stores, inPortions: true)
        } catch is HistoryPortions.WasPurged {
            // What is left, or the reason why that will not do, is of one moment if it is read at once.
            return try result(from: stores, inPortions: false)
        }
    }

    private func result(from stores: [OpenStore], inPortions: Bool) throws -> Any? {
        func transactions() throws -> [NSPersistentHistoryTransaction] {
            var found: [NSPersistentHistoryTransaction] = []
            try forEachTransaction(of: stores, inPortions) { found.append($0) }
            return found
        }
        func changes() throws -> [NSPersistentHistoryChange] {
            var found: [NSPersistentHistoryChange] = []
            try forEachChange(of: stores, inPortions) { found.append($0) }
            return found
        }
        switch request.resultType {
        case .statusOnly:
            try forEachTransaction(of: stores, inPortions) { _ in }
            return true
        case .count:
            var count = 0
            if isForChanges {
                try forEachChange(of: stores, inPortions) { _ in count += 1 }
            } else {
                try forEachTransaction(of: stores, inPortions) { _ in count += 1 }
            }
            return count
        case .objectIDs:
            var seen: Set<NSManagedObjectID> = []
            var found: [NSManagedObjectID] = []
            try forEachChange(of: stores, inPortions) { change in
                let id = change.changedObjectID
                if seen.insert(id).inserted { found.append(id) }
            }
            return found
        case .changesOnly:
            return try changes()
        case .transactionsAndChanges where isForChanges:
            var found: [NSPersistentHistoryTransaction] = []
            try forEachMatch(of: stores, inPortions) { transaction, changes, store in
                found.append(NSPersistentHistoryTransaction(transaction, changes, in: store))
            }
            return found
        case .transactionsOnly where isForChanges:
            var seen: Set<NSPersistentHistoryTransaction> = []
            return try changes().compactMap(\.transaction).filter { seen.insert($0).inserted }
        case .transactionsOnly, .transactionsAndChanges:
            return try transactions()
        }
    }

    // MARK: - Transactions and changes

    /// Calls `body` with the transactions that are asked for, each with its changes if the form of the answer has them.
    private func forEachTransaction(
        of stores: [OpenStore],
        _ inPortions: Bool,
        _ body: (NSPersistentHistoryTransaction) throws -> Void
    ) throws {
        let isAlone =
            request.resultType != .transactionsAndChanges && request.resultType != .changesOnly
            && request.resultType != .objectIDs
        let wantsChanges = !isAlone || predicate.map(HistoryPredicate.mayReadChanges) ?? false
        var count = 0
        for (source, query) in try queries(stores) {
            var query = query
            query.wantsChanges = wantsChanges
            if limit > 0, predicate == nil { query.limit = limit - count }
            try source.forEach(query, inPortions: inPortions && (predicate != nil || isAlone)) { record in
                let transaction = NSPersistentHistoryTransaction(
                    record.transaction,
                    wantsChanges ? record.changes : nil,
                    in: source.entry
                )
                guard try matches(transaction) else { return true }
                try body(
                    isAlone ? NSPersistentHistoryTransaction(record.transaction, nil, in: source.entry) : transaction
                )
                count += 1
                return count != limit
            }
            if count > 0, count == limit { return }
        }
    }

    private func forEachChange(
        of stores: [OpenStore],
        _ inPortions: Bool,
        _ body: (NSPersistentHistoryChange) throws -> Void
    ) throws {
        guard isForChanges || request.fetchRequest == nil else {
            return try forEachTransaction(of: stores, inPortions) { transaction in
                for change in transaction.changes ?? [] { try body(change) }
            }
        }
        try forEachMatch(of: stores, inPortions) { transaction, changes, store in
            for change in changes { try body(NSPersistentHistoryChange(change, of: transaction, in: store)) }
        }
    }

    /// Calls `body` with each transaction that has changes of those asked for, and with these.
    ///
    /// The limit counts changes.
    private func forEachMatch(
        of stores: [OpenStore],
        _ inPortions: Bool,
        _ body: (HistoryTransactionRecord, [HistoryChangeRecord], OpenStore) throws -> Void
    ) throws {
        var count = 0
        for (source, query) in try queries(stores) {
            try source.forEach(query, inPortions: inPortions) { record in
                var found: [HistoryChangeRecord] = []
                for change in record.changes
                where try matches(NSPersistentHistoryChange(change, of: record.transaction, in: source.entry)) {
                    found.append(change)
                    count += 1
                    if count == limit { break }
                }
                if !found.isEmpty { try body(record.transaction, found, source.entry) }
                return limit == 0 || count != limit
            }
            if count > 0, count == limit { return }
        }
    }

    private func matches(_ object: AnyObject) throws -> Bool {
        guard let predicate else { return true }
        do {
            return try predicate.evaluateOrThrow(with: object)
        } catch let error as PredicateEvaluationError {
            throw FetchPlanner.refused("History cannot be asked with \"\(predicate.formatText)\": \(error).")
        }
    }

    // MARK: - Stores

    /// A store, and the means to make IDs for it.
    private struct Source {
        let store: any HistoryStore
        let entry: OpenStore

        /// Calls `body` with what is found until it gives false.
        func forEach(_ query: HistoryQuery, inPortions: Bool, _ body: (HistoryRecord) throws -> Bool) throws {
            // A limit of the query says more than that of a portion could.
            guard query.limit > 0 || !inPortions else {
                return try HistoryPortions(store: store, query: query).forEach(body)
            }
            for record in try store.history(query) { guard try body(record) else { return } }
        }
    }

    private func queries(_ stores: [OpenStore]) throws -> [(Source, HistoryQuery)] {
        let sources = try HistoryStores.keeping(stores).map { Source(store: $0.store, entry: $0.entry) }
        if case .token(let token) = start { try HistoryStores.requireKnown(token, among: stores) }
        return sources.map { source in
            var query = HistoryQuery()
            switch start {
            case .beginning: break
            case .date(let date): query.since = date.timeIntervalSinceReferenceDate
            case .token(let token): query.begin(after: token.places[source.entry.store.identifier ?? ""])
            }
            return (source, query)
        }
    }
}

/// Finds the stores that keep a history.
enum HistoryStores {
    /// Those of `stores` that keep one.
    ///
    /// - Throws: 134091 if none does.
    static func keeping(_ stores: [OpenStore]) throws -> [(store: any HistoryStore, entry: OpenStore)] {
        let found = ofAll(stores)
        guard found.isEmpty else { return found }
        let reasons = stores.map { entry in
            let reason =
                entry.rows is any HistoryStore
                ? "was added without NSPersistentHistoryTrackingKey"
                : "is of type \(entry.store.type), which keeps none"
            return "\(entry.store.url?.placeName ?? entry.store.identifier ?? "") \(reason)"
        }
        throw CocoaError.described(
            .persistentStoreUnsupportedRequestType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "None of the stores keeps a history: \(reasons.isEmpty ? "there is none" : reasons.joined(separator: "; ")). Add a store of SQLite or PostgreSQL with NSPersistentHistoryTrackingKey.",
                NSAffectedStoresErrorKey: stores.map { $0.store },
            ]
        )
    }

    static func ofAll(_ stores: [OpenStore]) -> [(store: any HistoryStore, entry: OpenStore)] {
        stores.compactMap { entry in
            guard let store = entry.rows as? any HistoryStore, store.hasHistory else { return nil }
            return (store, entry)
        }
    }

    /// Refuses a token that is of other stores altogether.
    static func requireKnown(_ token: NSPersistentHistoryToken, among stores: [OpenStore]) throws {
        let named = token.transactionNumbers.keys
        guard !named.isEmpty, !stores.contains(where: { named.contains($0.store.identifier ?? "") }) else { return }
        throw CocoaError.described(
            CocoaError.Code(rawValue: NSPersistentHistoryTokenStoreNotFoundError),
            userInfo: [
                NSLocalizedDescriptionKey:
                    """
                The history token is of other stores (\(named.sorted().joined(separator: ", "))) than those asked. Read \
                the data anew, and go on from currentPersistentHistoryToken(fromStores:).
                """,
                NSAffectedStoresErrorKey: stores.map { $0.store },
            ]
        )
    }
}

extension HistoryModel {
    func has(_ entity: NSEntityDescription?) -> Bool { entity === transaction || entity === change }

    func entity(named name: String?) -> NSEntityDescription? {
        [transaction, change].first { $0.name == name }
    }
}
