import Foundation
import StrataPredicates

/// A fetch request after its names were resolved against a frozen model: what a store answers.
struct FetchPlan {
    /// The entity that was asked for.
    let layout: EntityLayout
    /// The numbers of the concrete entities whose rows may match.
    let entityNumbers: [Int]
    /// Whether `entityNumbers` are all entities of the hierarchy, so that no row has to be told apart.
    let coversHierarchy: Bool
    /// `nil` when every row matches.
    let predicate: ResolvedPredicate?
    /// `nil` for any order.
    let sort: ResolvedSort?
    /// 0 for no limit.
    let limit: Int
    let offset: Int
    /// The number by which the predicate tells the objects of the store that is asked; 0 where there can be none.
    var storeNumber = 0
    /// What the plan was made of, since stores of one's own are asked with a request.
    ///
    /// Its window is that of the plan, and where the plan has no predicate or order it has none either. `nil` for a plan
    /// that no request asked for.
    var specification: FetchSpecification?
    /// Stops and follows the reading; `nil` for a fetch that its caller waits for.
    var control: FetchControl?
    /// The slots to read, for rows that shall not be whole; `nil` for all.
    var wantedSlots: SlotSet?
    /// Whether what is computed of the rows, beside the predicate, can take very long.
    var hasCostlyValues = false
    /// Rows that do not count; a store may leave them out, but need not.
    var skipped: SkippedRows?

    /// The plan as a store is to answer it.
    func asked(of store: OpenStore) -> FetchPlan {
        var plan = self
        plan.storeNumber = store.number
        return plan
    }
}

extension FetchPlan {
    /// The plan for all objects of the entity, unsorted.
    var unfiltered: FetchPlan { with(predicate: nil, sort: nil, limit: 0, offset: 0) }

    /// The plan without order, limit and offset, for counting.
    var unordered: FetchPlan { with(predicate: predicate, sort: nil, limit: 0, offset: 0) }

    /// The plan for what one of several stores may have to contribute.
    var firstPart: FetchPlan {
        with(predicate: predicate, sort: sort, limit: limit > 0 ? end : 0, offset: 0)
    }

    /// The plan for an answer of which up to `count` rows will be put aside.
    func widened(by count: Int) -> FetchPlan {
        with(predicate: predicate, sort: sort, limit: limit > 0 ? end.addingWithoutOverflow(count) : 0, offset: 0)
    }

    /// The plan for rows of the same entities by another predicate, in another order and window.
    func with(predicate: ResolvedPredicate?, sort: ResolvedSort?, limit: Int, offset: Int) -> FetchPlan {
        FetchPlan(
            layout: layout,
            entityNumbers: entityNumbers,
            coversHierarchy: coversHierarchy,
            predicate: predicate,
            sort: sort,
            limit: limit,
            offset: offset,
            storeNumber: storeNumber,
            specification: specification,
            control: control,
            wantedSlots: wantedSlots,
            hasCostlyValues: hasCostlyValues,
            skipped: skipped
        )
    }

    /// Whether limit or offset leave out some of what matches.
    var isWindowed: Bool { limit > 0 || offset > 0 }

    /// Where the plan's window ends in the whole answer, if it has a limit.
    var end: Int {
        let (end, overflow) = limit.addingReportingOverflow(offset)
        return overflow ? .max : end
    }

    /// Applies offset and limit to the size of a whole answer.
    func windowed(_ count: Int) -> Int {
        let rest = max(0, count - offset)
        return limit > 0 ? min(limit, rest) : rest
    }

    /// Applies offset and limit to a whole answer.
    func window<Element>(_ elements: [Element]) -> [Element] {
        guard isWindowed else { return elements }
        let rest = elements.dropFirst(offset)
        return Array(limit > 0 ? rest.prefix(limit) : rest)
    }
}

extension FetchPlan {
    // MARK: - In memory

    /// The objects that match, with their unsaved changes.
    func matching(_ objects: [NSManagedObject], _ reader: ObjectReader) throws -> [NSManagedObject] {
        guard let predicate else { return objects }
        if timeLimit == nil, let filter = RowFilter(predicate, layout: layout) {
            return try objects.filter { object in
                // Most objects are loaded, and then their row needs no counting.
                if let words = object.readyWords { return filter.matches(words) }
                let row = try reader.row(of: object)
                return withExtendedLifetime(row) { filter.matches(row.unsafe) }
            }
        }
        var evaluator = ResolvedEvaluator(predicate, reader: reader)
        return try evaluating { try objects.filter { try evaluator.evaluate($0) } }
    }

    /// The seconds of processor time that an evaluation may take; `nil` for any number.
    var timeLimit: TimeInterval? {
        if let limit = specification?.evaluationTimeLimit { return limit }
        return hasCostlyValues || predicate?.isCostly ?? false ? Self.defaultTimeLimit : nil
    }

    private static let defaultTimeLimit: TimeInterval = 10

    /// Evaluates within the time limit; what a predicate cannot tell of some row is the fetch's error.
    func evaluating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            guard let timeLimit else { return try body() }
            return try EvaluationBudget.run(seconds: timeLimit, body)
        } catch let error as PredicateEvaluationError {
            throw FetchPlanner.refused("A fetch of \(layout.entity.name ?? "") cannot be answered: \(error)", error)
        }
    }

    /// The objects in the plan's order.
    func sorted(_ objects: [NSManagedObject], _ reader: ObjectReader) throws -> [NSManagedObject] {
        guard let sort else { return objects }
        return try sort.sorted(objects, reader: reader)
    }

    /// Two sorted lists as one; of equal objects those of the first come first.
    ///
    /// The second list is the short one: each of its objects is put in its place by bisection.
    ///
    /// What is passed:
    ///   - first: The long list, of what stands for objects.
    ///   - second: Objects in order.
    ///   - reader: Reads the objects.
    ///   - element: What stands for an object of the second list.
    ///   - object: The object at a position of the first list.
    func merged<Element>(
        _ first: [Element],
        _ second: [NSManagedObject],
        _ reader: ObjectReader,
        as element: (NSManagedObject) -> Element,
        object: (Int) -> NSManagedObject
    ) throws -> [Element] {
        guard let sort, !first.isEmpty, !second.isEmpty else { return first + second.map(element) }
        var result: [Element] = []
        result.reserveCapacity(first.count + second.count)
        var position = 0
        for added in second {
            let keys = try sort.keys(of: added, reader: reader)
            var (low, high) = (position, first.count)
            while low < high {
                let middle = (low + high) / 2
                let order = sort.compare(keys, try sort.keys(of: object(middle), reader: reader))
                if order == .orderedAscending { high = middle } else { low = middle + 1 }
            }
            result.append(contentsOf: first[position..<low])
            result.append(element(added))
            position = low
        }
        result.append(contentsOf: first[position...])
        return result
    }

    /// The roots of the other entities whose attributes decide what matches, or in what order.
    var relatedRootNumbers: Set<Int> {
        var roots: Set<Int> = []
        if let predicate { RelatedEntities.collect(predicate.condition, into: &roots) }
        for term in sort?.terms ?? [] { RelatedEntities.collect(term.expression, into: &roots) }
        return roots
    }
}

/// Rows that an answer may lack, since what a context knows of them counts instead.
struct SkippedRows {
    let keys: KeySet
    /// How many of the other rows are wanted at most.
    let wanted: Int
}

extension Int {
    /// The sum, or the largest number.
    fileprivate func addingWithoutOverflow(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
