import CoreDataEssentials
import Foundation

extension NSPersistentHistoryChangeRequest: ExecutableRequest {
    package func execute(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
        guard let coordinator = context.persistentStoreCoordinator else {
            throw FetchPlanner.refused("\(context.describedName) has no coordinator whose stores could be asked.")
        }
        return try execute(on: coordinator)
    }

    /// Carries out the request in the stores of a coordinator, on any thread.
    func execute(on coordinator: NSPersistentStoreCoordinator) throws -> NSPersistentHistoryResult {
        let stores = coordinator.openStores.filter { affectedStores?.contains($0.store) ?? true }
        switch kind {
        case .fetch(let start):
            let (value, end) = try HistoryFetch(self, from: start).result(from: stores)
            return NSPersistentHistoryResult(value, resultType, endToken: end)
        case .delete(let bound):
            let count = try delete(before: bound, from: stores)
            return NSPersistentHistoryResult(
                resultType == .count ? count : true,
                resultType == .count ? .count : .statusOnly
            )
        }
    }

    private func delete(before bound: Bound, from stores: [OpenStore]) throws -> Int {
        if case .token(let token) = bound { try HistoryStores.requireKnown(token, among: stores) }
        if fetchRequest != nil,
            let count = try HistoryFetch(self, from: .beginning).deleteMatches(before: bound, from: stores)
        {
            return count
        }
        var count = 0
        for (store, entry) in try HistoryStores.keeping(stores) {
            switch bound {
            case .beginning: break
            case .date(let date): count += try store.deleteHistory(.time(date.timeIntervalSinceReferenceDate))
            case .token(let token):
                guard let number = token.transactionNumbers[entry.store.identifier ?? ""] else { continue }
                count += try store.deleteHistory(.number(number))
            }
        }
        return count
    }
}
