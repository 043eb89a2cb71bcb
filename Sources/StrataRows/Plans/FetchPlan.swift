import Foundation
import StrataKeys
import StrataPredicates

/// A fetch request after its names were resolved against a frozen model: what a store answers.
package struct FetchPlan {
    /// The entity that was asked for.
    package let layout: EntityLayout
    /// The numbers of the concrete entities whose rows may match.
    package let entityNumbers: [Int]
    /// Whether `entityNumbers` are all entities of the hierarchy, so that no row has to be told apart.
    package let coversHierarchy: Bool
    /// `nil` when every row matches.
    package let predicate: ResolvedPredicate?
    /// `nil` for any order.
    package let sort: ResolvedSort?
    /// 0 for no limit.
    package let limit: Int
    package let offset: Int
    /// The number by which the predicate tells the objects of the store that is asked; 0 where there can be none.
    package var storeNumber = 0
    /// The request that the plan was made of, which custom stores receive; `nil` for a plan without one.
    ///
    /// Only the layer that made the plan looks into it.
    package var origin: Any?
    /// The seconds of processor time that the request allows for evaluation; `nil` for the default.
    package var evaluationTimeLimit: TimeInterval?
    /// Stops and follows the reading; `nil` for a fetch that its caller waits for.
    package var control: FetchControl?
    /// The slots to read, for rows that shall not be whole; `nil` for all.
    package var wantedSlots: SlotSet?
    /// Whether what is computed of the rows, beside the predicate, can take very long.
    package var hasCostlyValues = false
    /// Rows that do not count; a store may leave them out, but need not.
    package var skipped: SkippedRows?

    package init(
        layout: EntityLayout,
        entityNumbers: [Int],
        coversHierarchy: Bool,
        predicate: ResolvedPredicate?,
        sort: ResolvedSort?,
        limit: Int,
        offset: Int,
        storeNumber: Int = 0,
        origin: Any? = nil,
        evaluationTimeLimit: TimeInterval? = nil,
        control: FetchControl? = nil,
        wantedSlots: SlotSet? = nil,
        hasCostlyValues: Bool = false,
        skipped: SkippedRows? = nil
    ) {
        self.layout = layout
        self.entityNumbers = entityNumbers
        self.coversHierarchy = coversHierarchy
        self.predicate = predicate
        self.sort = sort
        self.limit = limit
        self.offset = offset
        self.storeNumber = storeNumber
        self.origin = origin
        self.evaluationTimeLimit = evaluationTimeLimit
        self.control = control
        self.wantedSlots = wantedSlots
        self.hasCostlyValues = hasCostlyValues
        self.skipped = skipped
    }

    /// The plan as a store is to answer it.
    package func asked(ofStore number: Int) -> FetchPlan {
        var plan = self
        plan.storeNumber = number
        return plan
    }
}

extension FetchPlan {
    /// The plan for all objects of the entity, unsorted.
    package var unfiltered: FetchPlan { with(predicate: nil, sort: nil, limit: 0, offset: 0) }

    /// The plan without order, limit and offset, for counting.
    package var unordered: FetchPlan { with(predicate: predicate, sort: nil, limit: 0, offset: 0) }

    /// The plan for what one of several stores may have to contribute.
    package var firstPart: FetchPlan {
        with(predicate: predicate, sort: sort, limit: limit > 0 ? end : 0, offset: 0)
    }

    /// The plan for an answer of which up to `count` rows will be put aside.
    package func widened(by count: Int) -> FetchPlan {
        with(predicate: predicate, sort: sort, limit: limit > 0 ? end.addingWithoutOverflow(count) : 0, offset: 0)
    }

    /// The plan for rows of the same entities by another predicate, in another order and window.
    package func with(predicate: ResolvedPredicate?, sort: ResolvedSort?, limit: Int, offset: Int) -> FetchPlan {
        FetchPlan(
            layout: layout,
            entityNumbers: entityNumbers,
            coversHierarchy: coversHierarchy,
            predicate: predicate,
            sort: sort,
            limit: limit,
            offset: offset,
            storeNumber: storeNumber,
            origin: origin,
            evaluationTimeLimit: evaluationTimeLimit,
            control: control,
            wantedSlots: wantedSlots,
            hasCostlyValues: hasCostlyValues,
            skipped: skipped
        )
    }

    /// Whether limit or offset leave out some of what matches.
    package var isWindowed: Bool { limit > 0 || offset > 0 }

    /// Where the plan's window ends in the whole answer, if it has a limit.
    package var end: Int {
        let (end, overflow) = limit.addingReportingOverflow(offset)
        return overflow ? .max : end
    }

    /// Applies offset and limit to the size of a whole answer.
    package func windowed(_ count: Int) -> Int {
        let rest = max(0, count - offset)
        return limit > 0 ? min(limit, rest) : rest
    }

    /// Applies offset and limit to a whole answer.
    package func window<Element>(_ elements: [Element]) -> [Element] {
        guard isWindowed else { return elements }
        let rest = elements.dropFirst(offset)
        return Array(limit > 0 ? rest.prefix(limit) : rest)
    }
}

extension FetchPlan {
    // MARK: - In memory

    /// The seconds of processor time that an evaluation may take; `nil` for any number.
    package var timeLimit: TimeInterval? {
        if let limit = evaluationTimeLimit { return limit }
        return hasCostlyValues || predicate?.isCostly ?? false ? Self.defaultTimeLimit : nil
    }

    private static let defaultTimeLimit: TimeInterval = 10

    /// Evaluates within the time limit; what a predicate cannot tell of some row is the fetch's error.
    package func evaluating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            guard let timeLimit else { return try body() }
            return try EvaluationBudget.run(seconds: timeLimit, body)
        } catch let error as PredicateEvaluationError {
            throw CocoaError.refused("A fetch of \(layout.name) cannot be answered: \(error)", error)
        }
    }

    /// The roots of the other entities whose attributes decide what matches, or in what order.
    package var relatedRootNumbers: Set<Int> {
        var roots: Set<Int> = []
        if let predicate { RelatedEntities.collect(predicate.condition, into: &roots) }
        for term in sort?.terms ?? [] { RelatedEntities.collect(term.expression, into: &roots) }
        return roots
    }
}

/// Rows that an answer may lack, since what a context knows of them counts instead.
package struct SkippedRows {
    package let keys: KeySet
    /// How many of the other rows are wanted at most.
    package let wanted: Int

    package init(keys: KeySet, wanted: Int) {
        self.keys = keys
        self.wanted = wanted
    }
}

extension Int {
    /// The sum, or the largest number.
    fileprivate func addingWithoutOverflow(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
