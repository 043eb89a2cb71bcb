import Foundation
import StrataPredicates

/// What a store carries out for a batch request, in one transaction: all or nothing.
package struct Batch {
    /// What the batch was made of, for stores that are asked with that.
    package let request: AnyObject
    package var work: Work
    /// Whether the rows that are changed and deleted have to be listed, for whoever wants their IDs.
    package let listsRows: Bool
    /// Who changes, for history.
    package let recorder: Recorder

    package init(request: AnyObject, work: Work, listsRows: Bool, recordedBy recorder: Recorder) {
        self.request = request
        self.work = work
        self.listsRows = listsRows
        self.recorder = recorder
    }

    /// Who is named in a history as the one who has changed something.
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

    /// The rows that an update or a deletion means; `nil` for an insertion.
    package var rows: FetchPlan? {
        switch work {
        case .insert: nil
        case .update(let update): update.rows
        case .delete(let deletion): deletion.rows
        }
    }

    /// Stops and follows the batch; `nil` if nobody can.
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
            batch.work = .update(update)
        case .delete(var deletion):
            deletion.rows = deletion.rows.asked(ofStore: number)
            batch.work = .delete(deletion)
        }
        return batch
    }
}

/// New rows, and what becomes of those that break a uniqueness constraint.
package struct BatchInsertion {
    package let layout: EntityLayout
    package var rows: any BatchRowSource
    package let upsert: Upsert
    /// Stops the insertion, and follows its writing; `nil` if nobody can.
    package var control: FetchControl?
    /// Follows how rows are made, before they are written; `nil` if that is not followed.
    package var making: FetchControl?

    package init(
        layout: EntityLayout,
        rows: any BatchRowSource,
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
    /// - Returns: A row whose numbers are numbers.
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
            if let control, control.isCancelled { throw CancellationError() }
            try body(given)
            counter.count()
        }
        counter.finish()
    }

    /// What becomes of a row whose unique values another row has already.
    package enum Upsert {
        case fail
        case skip
        /// The stored row takes over what was given.
        case update
        /// The stored row takes over everything.
        case replace
    }
}

/// The rows to be changed, and their new values.
package struct BatchUpdate {
    package var rows: FetchPlan
    /// Values that are the same for all rows.
    package let constants: Row
    package let constantSlots: [Slot]
    package let computed: [Computed]
    /// How many variables the expressions use.
    package let variableCount: Int

    package init(rows: FetchPlan, constants: Row, constantSlots: [Slot], computed: [Computed], variableCount: Int) {
        self.rows = rows
        self.constants = constants
        self.constantSlots = constantSlots
        self.computed = computed
        self.variableCount = variableCount
    }

    /// A value that is worked out for each row, of the row before it changes.
    package struct Computed {
        package let slot: Slot
        package let expression: ResolvedExpression
        /// The condition that it is no number for a row, which no store keeps; `nil` if that cannot be.
        package let lacksNumber: ResolvedCondition?

        package init(slot: Slot, expression: ResolvedExpression) {
            self.slot = slot
            self.expression = expression
            lacksNumber = expression.lacksNumber
        }

        /// The value for a row, worked out in the process.
        ///
        /// - Throws: `persistentStoreOperation` (134070) if it is no number, and what the evaluator throws.
        package func value(for row: Row, _ evaluator: inout ResolvedEvaluator) throws -> PredicateValue {
            let value = try evaluator.value(of: expression, for: row.buffer)
            if value.isNull, let lacksNumber, try evaluator.holds(lacksNumber, for: row.buffer) {
                throw CocoaError.batchValueIsNoNumber(row.layout)
            }
            return value
        }
    }

    package var slots: [Slot] { constantSlots + computed.map(\.slot) }

    /// The names of the properties that change.
    package var propertyNames: [String] { slots.propertyNames }
}

extension [Slot] {
    /// The names of the properties that the slots belong to: a composite attribute's own name for all of its elements.
    package var propertyNames: [String] { Set(map { String($0.name.prefix { $0 != "." }) }).sorted() }
}

/// The rows to be deleted.
package struct BatchDeletion {
    package var rows: FetchPlan

    package init(rows: FetchPlan) {
        self.rows = rows
    }
}
