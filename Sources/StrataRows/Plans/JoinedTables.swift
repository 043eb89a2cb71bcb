import StrataKeys
import StrataPredicates

/// The tables that a fetch joins along to-one relationships: one for each path from an object, however often it is used.
///
/// SQLite joins at most 64 in one query. All stores have the same limit, a little below that, so that a request that works on
/// one of them works on the others.
package struct JoinedTables {
    /// The most paths from one object; the remaining tables are left for the object's own.
    package static let limit = 60

    /// The paths that were used, by the number of their variable.
    private var paths: [Int: [ArraySlice<PredicateRelationship>]] = [:]

    package init() {
    }

    /// Whether SQLite can join them all.
    package var areFewEnough: Bool {
        paths.values.allSatisfy { paths in
            guard paths.reduce(0, { $0 + $1.count }) > Self.limit else { return true }
            var ways: Set<[String]> = []
            for path in paths {
                var way: [String] = []
                for step in path {
                    way.append(step.isCast ? "CAST " + step.destination.predicateEntityName : step.name)
                    ways.insert(way)
                }
                if ways.count > Self.limit { return false }
            }
            return true
        }
    }

    private mutating func add(_ variable: Int, _ steps: ArraySlice<PredicateRelationship>) {
        if !steps.isEmpty { paths[variable, default: []].append(steps) }
    }

    package mutating func add(_ condition: ResolvedCondition) {
        switch condition {
        case .constant: break
        case .and(let operands), .or(let operands): for operand in operands { add(operand) }
        case .not(let operand): add(operand)
        case .isNull(let operand), .member(let operand, _): add(operand)
        case .comparison(let comparison):
            add(comparison.left)
            add(comparison.right)
        case .between(let operand, let lower, let upper, _): for value in [operand, lower, upper] { add(value) }
        case .string(let test):
            add(test.text)
            add(test.pattern)
        case .exists(let collection, let test):
            add(collection)
            add(test)
        }
    }

    package mutating func add(_ expression: ResolvedExpression) {
        switch expression {
        case .constant: break
        // The last step's object is only named; its key is in the row before it.
        case .object(let path): add(path.variable, path.steps.dropLast())
        case .attribute(let path, _): add(path.variable, path.steps[...])
        case .function(_, let operands, _): for operand in operands { add(operand) }
        case .aggregate(let aggregate):
            add(aggregate.collection)
            if let element = aggregate.element { add(element) }
        case .conditional(let test, let first, let second):
            add(test)
            add(first)
            add(second)
        case .rowAggregate(_, let operand): add(operand)
        }
    }

    private mutating func add(_ collection: ResolvedCollection) {
        add(collection.owner.variable, collection.owner.steps[...])
        if let filter = collection.filter { add(filter) }
    }
}

extension JoinedTables {
    /// Refuses a request with more paths than SQLite can join.
    package func requireFewEnough(for layout: EntityLayout) throws {
        guard !areFewEnough else { return }
        throw CocoaError.refused(
            "A fetch of \(layout.name) cannot be answered: it looks along more than \(JoinedTables.limit) different ways of to-one relationships, which is more than SQLite can join. Take it apart, or fetch in several steps."
        )
    }
}
