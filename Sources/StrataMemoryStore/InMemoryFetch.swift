import Foundation
import StrataPredicates
import StrataRows

/// One fetch over the contents of an in-memory store, which saves no longer change.
struct InMemoryFetch {
    private let plan: FetchPlan
    let reader: RowReader

    init(_ plan: FetchPlan, _ contents: InMemoryContents) {
        self.plan = plan
        reader = RowReader(contents, plan.storeNumber)
    }

    /// The matching rows, in order, within the plan's window.
    func rows() throws -> [Row] {
        // Rows, equal ones too, come in the order of insertion, as a table without an index returns them.
        var found = try matching().sorted { $0.header.key < $1.header.key }
        if let sort = plan.sort { found = try sort.sorted(found, reader: reader) }
        let rows = plan.window(found).map { Row(shared: $0) }
        if let control = plan.control {
            if control.wantsCount { control.expect(rows.count) }
            control.add(rows.count)
        }
        return rows
    }

    func count() throws -> Int { plan.window(try matching()).count }

    private func matching() throws -> [RowBuffer] {
        let numbers = Set(plan.entityNumbers)
        // A filter is fast, but does not check the time limit.
        let filter = plan.timeLimit == nil ? plan.predicate.flatMap { RowFilter($0, layout: plan.layout) } : nil
        var evaluator = plan.predicate.map { ResolvedEvaluator($0, reader: reader) }
        var result: [RowBuffer] = []
        let control = plan.control
        try plan.evaluating {
            try reader.contents.rows[plan.layout.rootNumber]?.forEach { _, row in
                guard plan.coversHierarchy || numbers.contains(row.layout.number) else { return }
                try control?.cancellation.check()
                if let filter {
                    if filter.matches(row.unsafe) { result.append(row.buffer) }
                } else if try evaluator?.evaluate(row.buffer) ?? true {
                    result.append(row.buffer)
                }
            }
        }
        return result
    }
}

/// Reads the rows of an in-memory store for resolved predicates.
///
/// The contents do not change any more.
final class RowReader: RowFinder {
    let contents: InMemoryContents
    let storeNumber: Int

    init(_ contents: InMemoryContents, _ storeNumber: Int) {
        self.contents = contents
        self.storeNumber = storeNumber
    }

    func row(_ identity: PredicateIdentity, in layout: EntityLayout) -> Row? {
        contents.rows[layout.rootNumber]?[identity.key]
    }

    func subject(of relationship: PredicateRelationship, in subject: AnyObject) -> AnyObject? {
        row(subject).reference(of: relationship).flatMap { find($0, relationship) }
    }

    func subjects(of relationship: PredicateRelationship, in subject: AnyObject) -> [AnyObject] {
        let row = row(subject)
        return contents.members(of: row.layout.toMany[relationship.slot], ownedBy: row.key)
            .compactMap { find($0, relationship) }
    }

    func count(of relationship: PredicateRelationship, in subject: AnyObject) -> Int {
        let row = row(subject)
        return contents.members(of: row.layout.toMany[relationship.slot], ownedBy: row.key).count
    }

    private func find(_ reference: ObjectReference, _ relationship: PredicateRelationship) -> AnyObject? {
        contents.rows[relationship.rootNumber]?[reference.key]?.buffer
    }
}
