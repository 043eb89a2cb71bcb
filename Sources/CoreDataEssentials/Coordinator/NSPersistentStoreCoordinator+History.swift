import Foundation
import StrataRows

extension NSPersistentStoreCoordinator {
    /// The place after the last transaction of each store.
    ///
    /// It reads the stores, so that it includes the transactions of other processes. May be called on any thread. If a
    /// store throws an error, then the error is reported to ``unreportableErrorHandler``, and the token does not name
    /// that store.
    ///
    /// ```swift
    /// let before = coordinator.currentPersistentHistoryToken(fromStores: nil)
    /// venue.price += 1
    /// try context.save()
    /// let changes = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: before))
    /// ```
    ///
    /// - Parameter stores: The stores; `nil` for all of the coordinator. An array of `NSPersistentStore`.
    /// - Returns: A token, with 0 for a store in which nothing has been changed yet; `nil` if no store keeps a history.
    public func currentPersistentHistoryToken(fromStores stores: [Any]?) -> NSPersistentHistoryToken? {
        let wanted = stores.map { $0.compactMap { $0 as? NSPersistentStore } }
        let asked = openStores.filter { entry in wanted?.contains { $0 === entry.store } ?? true }
        var places: [String: HistoryPlace] = [:]
        for entry in asked {
            guard let store = entry.history else { continue }
            do {
                places[entry.store.identifier ?? ""] = try store.lastHistoryPlace()
            } catch {
                report(error, "reading the last history number of the store \(store.place)")
            }
        }
        return places.isEmpty ? nil : NSPersistentHistoryToken(places)
    }

    /// The place after the transactions of a save; `nil` if no history has recorded any of it.
    ///
    /// Stores that the save has not written are included, so that a reader that continues from there does not begin
    /// anew with them.
    func historyToken(after saved: SavedChanges) -> NSPersistentHistoryToken? {
        guard !saved.historyNumbers.isEmpty else { return nil }
        var places = saved.historyNumbers.mapValues { HistoryPlace(number: $0) }
        let others = hasSeveralStores ? openStores.filter { places[$0.store.identifier ?? ""] == nil } : []
        if !others.isEmpty, let rest = currentPersistentHistoryToken(fromStores: others.map(\.store)) {
            places.merge(rest.places) { own, _ in own }
        }
        return NSPersistentHistoryToken(places)
    }
}

extension OpenStore {
    /// The history of the store; `nil` if it keeps none.
    package var history: (any HistoryStore)? {
        guard let store = rows as? any HistoryStore, store.hasHistory else { return nil }
        return store
    }
}
