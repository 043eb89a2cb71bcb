import Foundation
import StrataPredicates

/// A batch request as a store carries it out: in one transaction, all or nothing.
package struct Batch {
    /// The request that the batch was made of, for custom stores, which receive it.
    package let request: AnyObject
    package var work: Work
    /// Whether the store has to list the rows that it changes and deletes, because the caller wants their IDs.
    package let listsRows: Bool
    /// The context that makes the changes, for history.
    package let recorder: Recorder

    package init(request: AnyObject, work: Work, listsRows: Bool, recordedBy recorder: Recorder) {
        self.request = request
        self.work = work
        self.listsRows = listsRows
        self.recorder = recorder
    }

    /// The author and the context that a history names for a change.
    package struct Recorder: Sendable {
        package let author: String?
        package let contextName: String?

        package init(author: String?, contextName: String?) {
            self.author = author
            self.contextName = contextName
        }
    }

    package enum Work {
        case insert(BatchInsertion)
        case update(BatchUpdate)
        case delete(BatchDeletion)
    }

    /// The entity that the request names.
    package var layout: EntityLayout {
        switch work {
        case .insert(let insertion): insertion.layout
        case .update(let update): update.rows.layout
        case .delete(let deletion): deletion.rows.layout
        }
    }

    /// The rows that an update or a deletion is about; `nil` for an insertion.
    package var rows: FetchPlan? {
        switch work {
        case .insert: nil
        case .update(let update): update.rows
        case .delete(let deletion): deletion.rows
        }
    }

    /// Stops the batch and follows its progress; `nil` if nothing can do so.
    package var control: FetchControl? {
        if case .insert(let insertion) = work { return insertion.control }
        return nil
    }

    /// The batch as a store is to carry it out.
    package func asked(ofStore number: Int) -> Batch {
        var batch = self
        switch work {
        case .insert: break
        case .update(var update):
            update.rows = update.rows.asked(ofStore: number)
            if let rows = update.lease?.quota?.rows { update.lease?.quota?.rows = rows.asked(ofStore: number) }
            batch.work = .update(update)
        case .delete(var deletion):
            deletion.rows = deletion.rows.asked(ofStore: number)
            batch.work = .delete(deletion)
        }
        return batch
    }
}

/// New rows, and the rule for those that break a uniqueness constraint.
package struct BatchInsertion {
    package let layout: EntityLayout
    package var rows: any GivenRows
    package let upsert: Upsert
    /// Stops the insertion, and follows its writing; `nil` if nothing can do so.
    package var control: FetchControl?
    /// Follows how rows are made, before they are written; `nil` if that is not followed.
    package var making: FetchControl?

    package init(
        layout: EntityLayout,
        rows: any GivenRows,
        upsert: Upsert,
        control: FetchControl? = nil,
        making: FetchControl? = nil
    ) {
        self.layout = layout
        self.rows = rows
        self.upsert = upsert
        self.control = control
        self.making = making
    }

    /// The next row; `nil` after the last one.
    ///
    /// - Returns: A row in which no number is NaN.
    /// - Throws: An error that says what is wrong with the row.
    package func nextRow() throws -> GivenRow? {
        guard let given = try rows.next() else { return nil }
        if let slot = given.row.slotWithoutNumber {
            throw CocoaError.refused(
                "A batch insert of \(layout.name) is refused: the value of \"\(slot.name)\" is not a number, which no store keeps."
            )
        }
        return given
    }

    /// Makes all rows, which may run the user's code, and reports the progress to `making`.
    ///
    /// - Parameter body: Called with each row.
    /// - Throws: An error that says what is wrong with a row, `CancellationError`, and the errors of `body`.
    package func makeRows(_ body: (GivenRow) throws -> Void) throws {
        if let count = rows.count { making?.expect(count) }
        var counter = RowCounter(making)
        while let given = try nextRow() {
            try control?.cancellation.check()
            try body(given)
            counter.count()
        }
        counter.finish()
    }

    /// The treatment of a row whose unique values another row already has.
    package enum Upsert {
        case fail
        case skip
        /// The stored row takes over only the values that were given.
        case update
        /// The stored row takes over all values.
        case replace
    }
}

/// The rows to be changed, and their new values.
package struct BatchUpdate {
    package var rows: FetchPlan
    /// Values that are the same for all rows.
    package internal(set) var constants: Row
    package internal(set) var constantSlots: [Slot]
    package let computed: [Computed]
    /// How many variables the expressions use.
    package let variableCount: Int
    /// The lease that the update gives to its rows; `nil`, as for every request for an update, if it gives none.
    package internal(set) var lease: RowLease?

    package init(
        rows: FetchPlan,
        constants: Row,
        constantSlots: [Slot],
        computed: [Computed],
        variableCount: Int,
        lease: RowLease? = nil
    ) {
        self.rows = rows
        self.constants = constants
        self.constantSlots = constantSlots
        self.computed = computed
        self.variableCount = variableCount
        self.lease = lease
    }

    /// A value that is computed for each row from the row as it was before the change.
    package struct Computed {
        package let slot: Slot
        package let expression: ResolvedExpression
        /// The condition under which the value of a row is NaN, which no store keeps; `nil` if that cannot happen.
        package let lacksNumber: ResolvedCondition?

        package init(slot: Slot, expression: ResolvedExpression) {
            self.slot = slot
            self.expression = expression
            lacksNumber = expression.lacksNumber
        }

        /// The value for a row, computed in the process.
        ///
        /// - Throws: `persistentStoreOperation` (134070) if the value is NaN, and the errors of the evaluator.
        package func value(for row: Row, _ evaluator: inout ResolvedEvaluator) throws -> PredicateValue {
            let value = try evaluator.value(of: expression, for: row.buffer)
            if value.isNull, let lacksNumber, try evaluator.holds(lacksNumber, for: row.buffer) {
                throw CocoaError.batchValueIsNoNumber(row.layout)
            }
            return value
        }
    }

    package var slots: [Slot] {
        var slots = constantSlots + computed.map(\.slot)
        if let lease { slots.append(lease.end) }
        return slots
    }

    /// The names of the properties that change.
    package var propertyNames: [String] { slots.propertyNames }
}

extension [Slot] {
    /// The names of the properties that the slots belong to.
    ///
    /// The elements of a composite attribute count under its name.
    package var propertyNames: [String] { Set(map { String($0.name.prefix { $0 != "." }) }).sorted() }
}

/// The rows to be deleted.
package struct BatchDeletion {
    package var rows: FetchPlan

    package init(rows: FetchPlan) {
        self.rows = rows
    }
}
