import CoreData

/// The history that a fault script must find.
struct FaultHistory {
    /// The authors of the saves and batches that have succeeded, in order, from the first one that is left.
    var told: [String] = []
    /// The authors after a purge that gave an error, in case it has purged nonetheless; `nil` if no purge has failed.
    var purged: [String]?
    /// The token of the last transaction that was read.
    var token: NSPersistentHistoryToken?
    /// The author of the transaction of the token.
    var author = ""

    /// Records a save or batch that has succeeded.
    mutating func add(_ author: String) {
        told.append(author)
        purged?.append(author)
    }
}

extension FaultScript {
    /// The transactions that are stored.
    private func transactions(_ context: NSManagedObjectContext) throws -> [NSPersistentHistoryTransaction] {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
        let result = try context.execute(request)
        return (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
    }

    /// Demands that the history contains everything that has succeeded, and nothing else.
    func readHistory(_ context: NSManagedObjectContext) {
        guard let all = attempt("fetching the history", { try transactions(context) }) else { return }
        let authors = checkNumbers(all)
        // A failed purge may show only now, when the log is read anew, like any write that gave an error.
        if authors == history.purged { (history.told, history.purged) = (authors, nil) }
        if authors != history.told { find("the history tells of \(authors), not of \(history.told)") }
        (history.token, history.author) = (all.last?.token, authors.last ?? "")
    }

    /// Purges the transactions that were read before, except the last one.
    func purgeHistory(_ context: NSManagedObjectContext) {
        guard let token = history.token, let place = history.told.firstIndex(of: history.author) else { return }
        let rest = Array(history.told[place...])
        let request = NSPersistentHistoryChangeRequest.deleteHistory(before: token)
        if attempt("purging", failed: { history.purged = rest }, { try context.execute(request) }) != nil {
            (history.told, history.purged) = (rest, nil)
        }
    }

    /// Demands that the history contains everything that was acknowledged, after the store was opened again.
    ///
    /// Work that has failed may be in it too.
    ///
    /// - Parameters:
    ///   - context: The context. This runs on its queue.
    ///   - saves: The number of saves that are stored. The history must contain them too.
    /// - Throws: Errors of fetching.
    func compareHistory(_ context: NSManagedObjectContext, _ saves: Int) throws {
        let authors = checkNumbers(try transactions(context))
        let known = Set(history.told)
        let told = authors.filter(known.contains)
        if told != history.told, told != history.purged {
            find("after closing the history tells of \(authors), acknowledged were \(history.told)")
        }
        if let last = authors.compactMap({ Int($0) }).last, last != saves - 1 {
            find("the history ends with save \(last), and \(saves) saves are there")
        }
    }

    /// Demands that the numbers rise one by one.
    private func checkNumbers(_ all: [NSPersistentHistoryTransaction]) -> [String] {
        for (one, next) in zip(all, all.dropFirst()) where next.transactionNumber != one.transactionNumber + 1 {
            find("transaction \(next.transactionNumber) comes after \(one.transactionNumber)")
        }
        return all.map { $0.author ?? "nobody" }
    }
}
