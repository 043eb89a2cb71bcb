import CoreDataEssentials
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
    private let reach = Reach()

    /// - Throws: `persistentStoreOperation` (134070) for a fetch request that history does not support.
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

    /// The answer, in the form that the request asks for, and the place up to which history was read.
    func result(from stores: [OpenStore]) throws -> (value: Any?, end: NSPersistentHistoryToken) {
        let value = try ofOneMoment { try result(from: stores, inPortions: $0) }
        return (value, NSPersistentHistoryToken(reach.places))
    }

    /// Reads portion by portion, or all at once if that does not work.
    private func ofOneMoment<R>(_ read: (_ inPortions: Bool) throws -> R) throws -> R {
        // For a store that is not read, the place of the request's token is kept.
        var places: [String: HistoryPlace] = [:]
        if case .token(let token) = start { places = token.places }
        do {
            reach.places = places
            return try read(true)
        } catch is HistoryPortions.WasPurged {
            // One read of the whole rest has the state of one moment; it finds the rest, or throws the reason why that
            // is impossible.
            reach.places = places
            return try read(false)
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

    /// Calls `body` with each requested transaction, with its changes if the form of the answer contains changes.
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
            try source.forEach(matching: query, inPortions: inPortions && (predicate != nil || isAlone), reach: reach) {
                record in
                let transaction = NSPersistentHistoryTransaction(
                    record.transaction,
                    wantsChanges ? record.changes : nil,
                    in: source.entry
                )
                guard try matches(transaction) else { return .goesOn }
                try body(
                    isAlone ? NSPersistentHistoryTransaction(record.transaction, nil, in: source.entry) : transaction
                )
                count += 1
                return count == limit ? .endsAfter : .goesOn
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

    /// Calls `body` with each transaction that has matching changes, and with these changes.
    ///
    /// The limit counts changes.
    private func forEachMatch(
        of stores: [OpenStore],
        _ inPortions: Bool,
        _ body: (HistoryTransactionRecord, [HistoryChangeRecord], OpenStore) throws -> Void
    ) throws {
        var count = 0
        for (source, query) in try queries(stores) {
            try source.forEach(matching: query, inPortions: inPortions, reach: reach) { record in
                func isFound(_ change: HistoryChangeRecord) throws -> Bool {
                    try matches(NSPersistentHistoryChange(change, of: record.transaction, in: source.entry))
                }
                var found: [HistoryChangeRecord] = []
                var looked = 0
                for change in record.changes {
                    looked += 1
                    guard try isFound(change) else { continue }
                    found.append(change)
                    count += 1
                    if count == limit { break }
                }
                if !found.isEmpty { try body(record.transaction, found, source.entry) }
                guard limit > 0, count == limit else { return .goesOn }
                let isCut = try record.changes[looked...].contains { try isFound($0) }
                return isCut ? .endsWithin : .endsAfter
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

    // MARK: - Deleting

    /// Deletes the transactions before a bound that the request matches.
    ///
    /// First the transactions are searched, which may run code of the application. Then each store deletes its
    /// transactions in one database transaction.
    ///
    /// - Returns: The number of deleted transactions; `nil` if the request matches all, so that a purge does the same.
    /// - Throws: `persistentStoreOperation` (134070) for a request for changes, and errors of the stores.
    func deleteMatches(before bound: NSPersistentHistoryChangeRequest.Bound, from stores: [OpenStore]) throws -> Int? {
        guard !isForChanges else {
            throw FetchPlanner.refused(
                """
                History is deleted by whole transactions: use NSPersistentHistoryTransaction.fetchRequest, with a \
                predicate such as "ANY changes.changedObjectID == %@" if it is about changes.
                """
            )
        }
        guard predicate != nil || limit > 0 else { return nil }
        let found = try ofOneMoment { try findMatches(before: bound, in: stores, inPortions: $0) }
        return try found.reduce(0) { count, match in try count + match.store.pickOutOfHistory(match.places) }
    }

    private func findMatches(
        before bound: NSPersistentHistoryChangeRequest.Bound,
        in stores: [OpenStore],
        inPortions: Bool
    ) throws -> [(store: any HistoryStore, places: [HistoryPlace])] {
        let readsChanges = predicate.map(HistoryPredicate.mayReadChanges) ?? false
        var found: [(store: any HistoryStore, places: [HistoryPlace])] = []
        var count = 0
        for (source, query) in try queries(stores) {
            var query = query
            query.wantsChanges = readsChanges
            var end = Double.infinity
            switch bound {
            case .beginning: continue
            case .date(let date): end = date.timeIntervalSinceReferenceDate
            case .token(let token):
                guard let place = token.places[source.entry.store.identifier ?? ""] else { continue }
                query.until = max(place.number, 1) - 1
            }
            var places: [HistoryPlace] = []
            try source.forEach(matching: query, inPortions: inPortions, reach: reach) { record in
                guard record.transaction.time < end else { return .goesOn }
                let changes = readsChanges ? record.changes : nil
                guard try matches(NSPersistentHistoryTransaction(record.transaction, changes, in: source.entry)) else {
                    return .goesOn
                }
                places.append(record.transaction.place)
                count += 1
                return count == limit ? .endsAfter : .goesOn
            }
            found.append((source.store, places))
            if count > 0, count == limit { break }
        }
        return found
    }

    // MARK: - Stores

    /// The places up to which the stores were read, by their UUIDs.
    private final class Reach {
        var places: [String: HistoryPlace] = [:]
    }

    /// Whether the reading continues after a transaction.
    private enum Step {
        case goesOn
        case endsAfter
        /// Some changes of the transaction have not been reported.
        case endsWithin
    }

    /// A store, and the means to make IDs for it.
    private struct Source {
        let store: any HistoryStore
        let entry: OpenStore

        /// Calls `body` with the records at this moment until it ends the reading, and notes the place.
        func forEach(
            matching query: HistoryQuery,
            inPortions: Bool,
            reach: Reach,
            _ body: (HistoryRecord) throws -> Step
        ) throws {
            let end = try store.lastHistoryPlace()
            var query = query
            query.until = min(query.until ?? end.number, end.number)
            var last: HistoryPlace?
            var isEnded = false
            func look(_ record: HistoryRecord) throws -> Bool {
                let step = try body(record)
                isEnded = step != .goesOn
                if step != .endsWithin { last = record.transaction.place }
                return !isEnded
            }
            // If the query has a limit, then it replaces the limit of a portion.
            if query.limit > 0 || !inPortions {
                for record in try store.history(query) { guard try look(record) else { break } }
            } else {
                try HistoryPortions(store: store, query: query).forEach { try look($0) }
            }
            if let place = isEnded ? last : end { reach.places[entry.store.identifier ?? ""] = place }
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
    /// The stores among `stores` that keep a history.
    ///
    /// - Throws: 134091 if none of them does.
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
        stores.compactMap { entry in entry.history.map { ($0, entry) } }
    }

    /// Refuses a token that names none of the stores.
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
