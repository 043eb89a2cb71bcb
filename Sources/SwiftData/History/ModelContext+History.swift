import CoreData
import Foundation

extension ModelContext {
    /// The transactions that a descriptor describes.
    ///
    /// ```swift
    /// let imports = try context.fetchHistory(
    ///     HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.author == "import" && $0.token > last })
    /// )
    /// ```
    ///
    /// - Parameter descriptor: The description.
    /// - Returns: The transactions, in the order of the saves unless the descriptor has another order.
    /// - Throws: `SwiftDataError.historyTokenExpired` if the predicate compares with a token after which transactions were
    ///   removed, or whose transaction is not in the history. `SwiftDataError.invalidTransactionFetchRequest` for another
    ///   type than `DefaultHistoryTransaction` and those of stores of your own, ``DataStoreError/unsupportedFeature`` if no
    ///   store keeps a history, the errors of the predicate, and those of the stores.
    /// - Complexity: O(number of changes in the history), because the predicate is evaluated here.
    public func fetchHistory<H: HistoryTransaction>(_ descriptor: HistoryDescriptor<H>) throws -> [H] {
        let custom = try onQueue { try container.snapshotStores.compactMap { try $0.history(descriptor) } }
        guard !custom.isEmpty || !container.ownStores.isEmpty else { throw DataStoreError.unsupportedFeature }
        var found = custom.flatMap(\.self)
        if custom.isEmpty || H.self == DefaultHistoryTransaction.self {
            found += try recorded().compactMap { try Self.matching($0, descriptor) }
            // A removal while the history was read is noticed as well.
            for token in descriptor.tokens { try requireRest(after: token) }
        }
        if !descriptor.sortBy.isEmpty { found.sort(using: descriptor.sortBy) }
        return descriptor.fetchLimit == 0 ? found : Array(found.prefix(Int(clamping: descriptor.fetchLimit)))
    }

    /// Removes the oldest transactions from the history.
    ///
    /// - Parameter descriptor: The description of the transactions, which must be the oldest ones of their store: a
    ///   history has no gaps. Its order does not matter.
    /// - Throws: `SwiftDataError.invalidTransactionFetchRequest` if an older transaction would stay, or for another type
    ///   than `DefaultHistoryTransaction`; then nothing is removed. The errors of the predicate and of the stores.
    public func deleteHistory<H: HistoryTransaction>(_ descriptor: HistoryDescriptor<H>) throws {
        let answers = try onQueue { try container.snapshotStores.map { try $0.deleteHistory(descriptor) } }
        let isDone = answers.contains(true)
        guard isDone || !container.ownStores.isEmpty else { throw DataStoreError.unsupportedFeature }
        if isDone, H.self != DefaultHistoryTransaction.self { return }
        for (store, transactions) in Dictionary(grouping: try recorded(), by: \.storeID) {
            let matches = try transactions.map { try Self.matching($0, descriptor) != nil }
            let limit = descriptor.fetchLimit == 0 ? transactions.count : Int(clamping: descriptor.fetchLimit)
            let count = min(matches.prefix { $0 }.count, limit)
            guard limit < transactions.count || !matches.dropFirst(count).contains(true) else {
                throw SwiftDataError(
                    .invalidTransactionFetchRequest,
                    "the transactions to delete are not the oldest ones of their store"
                )
            }
            guard count > 0 else { continue }
            // The token names this store only, so the others keep their histories. Transactions that are committed
            // meanwhile have higher numbers, and stay.
            let end = NSPersistentHistoryToken(
                transactionNumbers: [store: transactions[count - 1].transaction.transactionNumber + 1]
            )
            try onQueue { _ = try managed.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: end)) }
        }
    }

    /// A transaction of Core Data with SwiftData's form.
    private struct Recorded {
        let transaction: NSPersistentHistoryTransaction
        let form: DefaultHistoryTransaction
        var storeID: String { form.storeIdentifier }
    }

    private static func matching<H: HistoryTransaction>(
        _ recorded: Recorded,
        _ descriptor: HistoryDescriptor<H>
    ) throws -> H? {
        guard let form = recorded.form as? H else {
            throw SwiftDataError(
                .invalidTransactionFetchRequest,
                "the stores keep transactions of DefaultHistoryTransaction"
            )
        }
        return try descriptor.predicate?.evaluate(form) ?? true ? form : nil
    }

    /// All transactions in the order of the saves.
    private func recorded() throws -> [Recorded] {
        guard !container.ownStores.isEmpty else { return [] }
        return try onQueue {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            if container.hasSnapshotStores { request.affectedStores = container.ownStores }
            let result = try managed.execute(request) as? NSPersistentHistoryResult
            return try (result?.result as? [NSPersistentHistoryTransaction] ?? []).map {
                Recorded(transaction: $0, form: try form(of: $0))
            }
        }
    }

    /// Checks that the stores have all transactions after a place.
    private func requireRest(after token: DefaultHistoryToken) throws {
        let stores = container.ownStores.filter { token.tokenValue?[$0.identifier ?? ""] != nil }
        guard let numbers = token.tokenValue, !stores.isEmpty else { return }
        try onQueue {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(
                after: NSPersistentHistoryToken(transactionNumbers: numbers)
            )
            request.affectedStores = stores
            request.resultType = .count
            do {
                _ = try managed.execute(request)
            } catch let error as CocoaError where error.code.rawValue == NSPersistentHistoryTokenExpiredError {
                throw SwiftDataError(.historyTokenExpired, error.localizedDescription)
            }
        }
    }

    private func form(of transaction: NSPersistentHistoryTransaction) throws -> DefaultHistoryTransaction {
        try DefaultHistoryTransaction(
            timestamp: transaction.timestamp,
            changes: (transaction.changes ?? []).compactMap { try change($0, in: transaction.transactionNumber) },
            token: DefaultHistoryToken(tokenValue: [transaction.storeID: transaction.transactionNumber]),
            transactionIdentifier: transaction.transactionNumber,
            storeIdentifier: transaction.storeID,
            bundleIdentifier: transaction.bundleID,
            processIdentifier: transaction.processID,
            author: transaction.author
        )
    }

    /// A change; `nil` if the schema has no class of its entity.
    private func change(_ change: NSPersistentHistoryChange, in number: Int64) throws -> HistoryChange? {
        guard let record = change.changedObjectID.entity.name.flatMap({ container.schema.records[$0] }) else {
            return nil
        }
        let identifier = PersistentIdentifier(change.changedObjectID)
        func made<Model: PersistentModel>(_ type: Model.Type) throws -> HistoryChange {
            switch change.changeType {
            case .insert:
                .insert(
                    DefaultHistoryInsert<Model>(
                        changeIdentifier: change.changeID,
                        transactionIdentifier: number,
                        changedPersistentIdentifier: identifier
                    )
                )
            case .update:
                .update(
                    DefaultHistoryUpdate<Model>(
                        changeIdentifier: change.changeID,
                        transactionIdentifier: number,
                        changedPersistentIdentifier: identifier,
                        updatedAttributes: Self.keyPaths(of: change, in: record)
                    )
                )
            case .delete:
                .delete(
                    DefaultHistoryDelete<Model>(
                        changeIdentifier: change.changeID,
                        transactionIdentifier: number,
                        changedPersistentIdentifier: identifier,
                        tombstone: try Self.tombstone(of: change, in: record)
                    )
                )
            }
        }
        return try made(record.type)
    }

    private static func keyPaths<Model: PersistentModel>(
        of change: NSPersistentHistoryChange,
        in record: ModelRecord
    ) -> [any PartialKeyPath<Model> & Sendable] {
        let names = Set((change.updatedProperties ?? []).map(\.name))
        return record.properties.filter { names.contains($0.name) }.compactMap { property in
            guard let keyPath = property.keyPath as? PartialKeyPath<Model> else { return nil }
            // Key paths of properties capture nothing, and `Sendable` adds nothing to the value.
            return unsafeBitCast(keyPath, to: (any PartialKeyPath<Model> & Sendable).self)
        }
    }

    private static func tombstone<Model: PersistentModel>(
        of change: NSPersistentHistoryChange,
        in record: ModelRecord
    ) throws -> HistoryTombstone<Model> {
        let kept = change.tombstone ?? [:]
        let values = try record.properties.compactMap { property -> (keyPath: AnyKeyPath, value: any Sendable)? in
            guard case .attribute(let form) = property.kind, let stored = kept[property.name],
                let value = try form.value(stored)
            else { return nil }
            func sendable<Value>(_ value: Value) -> any Sendable { UnsafeSendable.cast(value) }
            return (property.keyPath, _openExistential(value, do: sendable))
        }
        return HistoryTombstone(values: values)
    }
}

/// Values of attributes are immutable, but their types do not say that they are `Sendable`.
private enum UnsafeSendable {
    static func cast<Value>(_ value: Value) -> any Sendable {
        unsafeBitCast(value as Any, to: (any Sendable).self)
    }
}
