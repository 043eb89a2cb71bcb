import Foundation

extension NSPersistentStoreCoordinator {
    /// The place after the last transaction of each store.
    ///
    /// Asks the stores, so that it knows of what other processes have written. May be called on any thread. An error of a store
    /// is reported to ``unreportableErrorHandler``, and the store left out.
    ///
    /// - Parameter stores: The stores; `nil` for all of the coordinator. An array of `NSPersistentStore`.
    /// - Returns: A token, with 0 for a store in which nothing has been changed yet; `nil` if no store keeps a history.
    public func currentPersistentHistoryToken(fromStores stores: [Any]?) -> NSPersistentHistoryToken? {
        let wanted = stores.map { $0.compactMap { $0 as? NSPersistentStore } }
        let asked = openStores.filter { entry in wanted?.contains { $0 === entry.store } ?? true }
        var numbers: [String: Int64] = [:]
        for (store, entry) in HistoryStores.ofAll(asked) {
            do {
                numbers[entry.store.identifier ?? ""] = try store.lastHistoryNumber()
            } catch {
                report(error, "reading the last history number of the store \(store.place)")
            }
        }
        return numbers.isEmpty ? nil : NSPersistentHistoryToken(transactionNumbers: numbers)
    }
}
