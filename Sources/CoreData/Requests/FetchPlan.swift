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
    /// What the plan was made of: stores of one's own are asked with a request. Its window is that of the plan, and where the
    /// plan has no predicate or order it has none either. `nil` for a plan that no request asked for.
    var specification: FetchSpecification?
    /// Stops and follows the reading; `nil` for a fetch that its caller waits for.
    var control: FetchControl?

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
        with(predicate: predicate, sort: sort, limit: limit > 0 ? limit + offset : 0, offset: 0)
    }

    /// The plan for an answer of which up to `count` rows will be put aside.
    func widened(by count: Int) -> FetchPlan {
        with(predicate: predicate, sort: sort, limit: limit > 0 ? limit + offset + count : 0, offset: 0)
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
            specification: specification
        )
    }

    /// Applies offset and limit to the size of a whole answer.
    func windowed(_ count: Int) -> Int {
        let rest = max(0, count - offset)
        return limit > 0 ? min(limit, rest) : rest
    }

    /// Applies offset and limit to a whole answer.
    func window<Element>(_ elements: [Element]) -> [Element] {
        guard limit > 0 || offset > 0 else { return elements }
        let rest = elements.dropFirst(offset)
        return Array(limit > 0 ? rest.prefix(limit) : rest)
    }
}

extension FetchPlan {
    // MARK: - In memory

    /// The objects that match, with their unsaved changes.
    func matching(_ objects: [NSManagedObject]) throws -> [NSManagedObject] {
        guard let predicate else { return objects }
        var evaluator = ResolvedEvaluator(predicate, reader: ObjectReader())
        return try evaluating { try objects.filter { try evaluator.evaluate($0) } }
    }

    /// Evaluates in memory; what a predicate cannot tell of some row is the fetch's error.
    func evaluating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as PredicateEvaluationError {
            throw FetchPlanner.refused("A fetch of \(layout.entity.name ?? "") cannot be answered: \(error)", error)
        }
    }

    /// The objects in the plan's order.
    func sorted(_ objects: [NSManagedObject]) throws -> [NSManagedObject] {
        guard let sort else { return objects }
        return try sort.sorted(objects, reader: ObjectReader())
    }

    /// Two sorted lists as one; of equal objects those of the first come first.
    func merged(_ first: [NSManagedObject], _ second: [NSManagedObject]) throws -> [NSManagedObject] {
        guard let sort, !first.isEmpty, !second.isEmpty else { return first + second }
        var result: [NSManagedObject] = []
        result.reserveCapacity(first.count + second.count)
        var position = 0
        let reader = ObjectReader()
        // The second list is the short one: each of its objects is put in its place by bisection.
        for object in second {
            let keys = try sort.keys(of: object, reader: reader)
            var (low, high) = (position, first.count)
            while low < high {
                let middle = (low + high) / 2
                let order = sort.compare(keys, try sort.keys(of: first[middle], reader: reader))
                if order == .orderedAscending { high = middle } else { low = middle + 1 }
            }
            result.append(contentsOf: first[position..<low])
            result.append(object)
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
