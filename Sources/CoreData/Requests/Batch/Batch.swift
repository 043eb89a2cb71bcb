import StrataPredicates

/// What a store carries out for a batch request, in one transaction: all or nothing.
struct Batch {
    /// The request itself, for stores that are asked with it.
    let request: NSPersistentStoreRequest
    var work: Work
    /// Whether the rows that are changed and deleted have to be listed, for whoever wants their IDs.
    let listsRows: Bool
    /// Who changes, for history.
    let author: String?
    let contextName: String?

    enum Work {
        case insert(BatchInsertion)
        case update(BatchUpdate)
        case delete(BatchDeletion)
    }

    /// The entity that the request names.
    var layout: EntityLayout {
        switch work {
        case .insert(let insertion): insertion.layout
        case .update(let update): update.rows.layout
        case .delete(let deletion): deletion.rows.layout
        }
    }

    /// The rows that an update or a deletion means; `nil` for an insertion.
    var rows: FetchPlan? {
        switch work {
        case .insert: nil
        case .update(let update): update.rows
        case .delete(let deletion): deletion.rows
        }
    }

    /// Stops and follows the batch; `nil` if nobody can.
    var control: FetchControl? {
        if case .insert(let insertion) = work { return insertion.control }
        return nil
    }

    /// The batch as a store is to carry it out.
    func asked(of store: OpenStore) -> Batch {
        var batch = self
        switch work {
        case .insert: break
        case .update(var update):
            update.rows = update.rows.asked(of: store)
            batch.work = .update(update)
        case .delete(var deletion):
            deletion.rows = deletion.rows.asked(of: store)
            batch.work = .delete(deletion)
        }
        return batch
    }
}

/// New rows, and what becomes of those that break a uniqueness constraint.
struct BatchInsertion {
    let layout: EntityLayout
    var rows: any BatchRowSource
    let policy: NSMergePolicyType
    /// Stops the insertion, and follows its writing; `nil` if nobody can.
    var control: FetchControl?
    /// Follows how rows are made, before they are written; `nil` if nobody does.
    var making: FetchControl?

    /// What becomes of a row whose unique values another row has already.
    enum Upsert {
        case fail
        case skip
        /// The stored row takes over what was given.
        case update
        /// The stored row takes over everything.
        case replace
    }

    var upsert: Upsert {
        switch policy {
        case .errorMergePolicyType: .fail
        case .mergeByPropertyStoreTrumpMergePolicyType, .rollbackMergePolicyType: .skip
        case .mergeByPropertyObjectTrumpMergePolicyType: .update
        case .overwriteMergePolicyType: .replace
        }
    }
}

/// The rows to be changed, and their new values.
struct BatchUpdate {
    var rows: FetchPlan
    /// Values that are the same for all rows.
    let constants: Row
    let constantSlots: [Slot]
    let computed: [Computed]
    /// How many variables the expressions use.
    let variableCount: Int

    /// A value that is worked out for each row, of the row before it changes.
    struct Computed {
        let slot: Slot
        let expression: ResolvedExpression
    }

    var slots: [Slot] { constantSlots + computed.map(\.slot) }

    /// The names of the properties that change.
    var propertyNames: [String] { slots.propertyNames }
}

extension [Slot] {
    /// The names of the properties that the slots belong to: a composite attribute's own name for all of its elements.
    var propertyNames: [String] { Set(map { String($0.name.prefix { $0 != "." }) }).sorted() }
}

/// The rows to be deleted.
struct BatchDeletion {
    var rows: FetchPlan
}
