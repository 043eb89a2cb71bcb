import CoreData

/// The accounts that the batches of a fault script must leave, and those that they may leave.
struct FaultBatches {
    /// Numbers and balances of accounts.
    typealias Rows = [Int64: Int64]

    /// One batch request.
    enum Step {
        case insert
        case update
        case delete

        /// The batch that follows a save, if there is one.
        init?(after save: Int) {
            switch save {
            case 1: self = .insert
            case 2: self = .update
            case 3: self = .delete
            default: return nil
            }
        }

        /// The request.
        var request: NSPersistentStoreRequest {
            switch self {
            case .insert:
                return NSBatchInsertRequest(entityName: "Account", objects: (0..<6).map { ["number": Int64($0)] })
            case .update:
                let request = NSBatchUpdateRequest(entityName: "Account")
                request.propertiesToUpdate = ["balance": Int64(9)]
                return request
            case .delete:
                let victims = NSFetchRequest<NSFetchRequestResult>(entityName: "Account")
                victims.predicate = NSPredicate(format: "number < 3")
                return NSBatchDeleteRequest(fetchRequest: victims)
            }
        }

        /// The rows after the request.
        func applied(to rows: Rows) -> Rows {
            switch self {
            case .insert: Dictionary(uniqueKeysWithValues: (0..<6).map { (Int64($0), 0) })
            case .update: rows.mapValues { _ in 9 }
            case .delete: rows.filter { $0.key >= 3 }
            }
        }
    }

    /// The rows while the store is open.
    private(set) var rows: Rows = [:]
    /// The rows that are possible when the store is opened again: a commit that failed may be in the log.
    private(set) var possible: [Rows] = [[:]]

    /// Ends all doubt, because something was committed.
    mutating func settle() { possible = [rows] }

    /// Records a step that has succeeded.
    mutating func note(_ step: Step) {
        rows = step.applied(to: rows)
        settle()
    }

    /// Records a step that gave an error.
    mutating func noteFailed(_ step: Step) { possible += possible.map(step.applied) }
}

extension FaultScript {
    /// Executes a batch, and checks what it has done.
    func play(_ step: FaultBatches.Step, _ context: NSManagedObjectContext) {
        let author = "batch \(step)"
        context.transactionAuthor = author
        let isThere = !batches.rows.isEmpty
        if attempt("a batch", failed: { batches.noteFailed(step) }, { try context.execute(step.request) }) != nil {
            batches.note(step)
            // A batch that changes no row is not in the history.
            if isThere || step == .insert { history.add(author) }
        }
        if let rows = attempt("fetching accounts", { try self.rows(context) }), rows != batches.rows {
            find("after a batch to \(step) the accounts are \(rows), not \(batches.rows)")
        }
    }

    /// The accounts that are stored.
    func rows(_ context: NSManagedObjectContext) throws -> FaultBatches.Rows {
        let request = NSFetchRequest<NSDictionary>(entityName: "Account")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["number", "balance"]
        let rows = try context.fetch(request).map {
            (($0["number"] as? NSNumber)?.int64Value ?? -1, ($0["balance"] as? NSNumber)?.int64Value ?? -1)
        }
        return Dictionary(rows) { one, _ in one }
    }
}
