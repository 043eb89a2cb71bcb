import Foundation
import StrataKeys
import StrataPredicates

/// A fetch request with its names resolved against a frozen model, ready to be answered by a store.
package struct FetchPlan {
    /// The entity that was asked for.
    package let layout: EntityLayout
    /// The numbers of the concrete entities whose rows may match.
    package let entityNumbers: [Int]
    /// Whether `entityNumbers` are all entities of the hierarchy, so that the entity of a row need not be checked.
    package let coversHierarchy: Bool
    /// The condition; `nil` if every row matches.
    package let predicate: ResolvedPredicate?
    /// The order; `nil` for any.
    package let sort: ResolvedSort?
    /// The most rows; 0 for no limit.
    package let limit: Int
    package let offset: Int
    /// Distinguishes the plans that one request leads to.
    ///
    /// A prepared read is found by it. A plan with another predicate, order or limit that is made for such reads needs
    /// another identity.
    package internal(set) var identity = Identity.whole
    /// The number by which the predicate identifies the objects of the store; 0 if there can be none.
    package var storeNumber = 0
    /// The request that the plan was made of, which custom stores receive; `nil` for a plan without one.
    ///
    /// Only the layer that made the plan looks into it.
    package var origin: Any?
    /// The seconds of processor time that the request allows for evaluation; `nil` for the default.
    package var evaluationTimeLimit: TimeInterval?
    /// Stops and follows the reading; `nil` for a fetch that nothing stops or follows.
    package var control: FetchControl?
    /// The slots to read if rows need not be whole; `nil` for all.
    package var wantedSlots: SlotSet?
    /// Whether the values that are computed from the rows, beside the predicate, can take very long.
    package var hasCostlyValues = false
    /// Rows that do not count.
    ///
    /// A store may leave them out, but need not.
    package var skipped: SkippedRows?
    /// Rows that the caller has.
    ///
    /// A store may return them and make no others, but need not.
    package var known: KnownRows?

    /// Tells the plans that are made of one request from one another.
    ///
    /// Two plans of a request that have the same identity ask the same question.
    package enum Identity: Hashable, Sendable {
        /// The request as it is.
        case whole
        /// All objects of the entity, in any order.
        case unfiltered
        /// All matching objects, in any order.
        case unordered
        /// The matching objects up to the end of the request's window, and so many more.
        case first(surplus: Int)
    }

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

    /// The plan in the form in which a store answers it.
    package func asked(ofStore number: Int) -> FetchPlan {
        var plan = self
        plan.storeNumber = number
        return plan
    }
}

extension FetchPlan {
    /// The plan for all objects of the entity, unsorted.
    package var unfiltered: FetchPlan {
        predicate == nil ? unordered : part(.unfiltered, predicate: nil, sort: nil, limit: 0)
    }

    /// The plan without order, limit and offset, for counting.
    package var unordered: FetchPlan {
        sort == nil && !isWindowed ? self : part(.unordered, predicate: predicate, sort: nil, limit: 0)
    }

    /// The plan for the rows that one of several stores may contribute.
    package var firstPart: FetchPlan { widened(by: 0) }

    /// The plan for an answer of which the caller will put aside up to `count` rows.
    package func widened(by count: Int) -> FetchPlan {
        let surplus = limit > 0 ? count : 0
        guard surplus > 0 || offset > 0 else { return self }
        var all = surplus
        if case .first(let earlier) = identity { all = earlier.addingWithoutOverflow(surplus) }
        return part(
            .first(surplus: all),
            predicate: predicate,
            sort: sort,
            limit: limit > 0 ? end.addingWithoutOverflow(surplus) : 0
        )
    }

    /// The plan for another part of the answer to the same request, from its first row on.
    private func part(_ identity: Identity, predicate: ResolvedPredicate?, sort: ResolvedSort?, limit: Int) -> FetchPlan
    {
        var plan = with(predicate: predicate, sort: sort, limit: limit, offset: 0)
        plan.identity = identity
        return plan
    }

    /// The plan for rows of the same entities, with another predicate, order, limit and offset.
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

    /// Whether limit or offset leave out some of the matching rows.
    package var isWindowed: Bool { limit > 0 || offset > 0 }

    /// The end of the plan's window in the whole answer, if it has a limit.
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

    /// Evaluates within the time limit.
    ///
    /// If a predicate cannot be evaluated for a row, the error is the fetch's.
    package func evaluating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            guard let timeLimit else { return try body() }
            return try EvaluationBudget.run(seconds: timeLimit, body)
        } catch let error as PredicateEvaluationError {
            throw CocoaError.refused("A fetch of \(layout.name) cannot be answered: \(error)", error)
        }
    }

    /// The roots of the other entities whose attributes decide which rows match, or in which order.
    package var relatedRootNumbers: Set<Int> {
        var roots: Set<Int> = []
        if let predicate { RelatedEntities.collect(predicate.condition, into: &roots) }
        for term in sort?.terms ?? [] { RelatedEntities.collect(term.expression, into: &roots) }
        return roots
    }
}

/// Rows that an answer may lack, because the context uses its own knowledge of them instead.
package struct SkippedRows {
    package let keys: KeySet
    /// The most other rows that are wanted.
    package let wanted: Int

    package init(keys: KeySet, wanted: Int) {
        self.keys = keys
        self.wanted = wanted
    }
}

extension Int {
    /// The sum; the largest number if it overflows.
    fileprivate func addingWithoutOverflow(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
