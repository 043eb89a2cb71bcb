import Foundation
import StrataKeys
import StrataPredicates

/// A time for which an update gives rows to one worker; the store's clock determines when it ends.
package struct RowLease {
    /// The attribute for the time when the lease ends.
    ///
    /// The update sets it, though it is not among the constants: only the store knows the time.
    package let end: Slot
    /// The length of the lease.
    package let seconds: TimeInterval
    /// Whether the update takes only rows whose lease has ended, and whether it passes by rows that others have locked.
    package let isNew: Bool

    package init(end: Slot, seconds: TimeInterval, isNew: Bool) {
        self.end = end
        self.seconds = seconds
        self.isNew = isNew
    }

    /// The condition that a row has no lease at a time.
    fileprivate func isFree(at time: TimeInterval, _ layout: EntityLayout) -> ResolvedCondition {
        guard case .attribute(let attribute)? = layout.predicateProperty(named: end.name) else {
            return .constant(false)
        }
        let value = ResolvedExpression.attribute(ResolvedPath(variable: 0), attribute)
        let hasEnded = ResolvedComparison(
            left: value,
            operator: .lessOrEqual,
            right: .constant(.date(time), .date),
            folding: []
        )
        return .or([.isNull(value), .comparison(hasEnded)])
    }
}

extension BatchUpdate {
    /// The update with the lease as plain conditions and values, for a store whose clock shows a time.
    ///
    /// - Parameter time: The time, in seconds since the reference date. The store reads its clock once no other writer
    ///   can come between, so that a wait for others does not shorten the lease.
    /// - Returns: An update without a lease.
    package func leased(at time: @autoclosure () throws -> TimeInterval) rethrows -> BatchUpdate {
        guard let lease else { return self }
        let time = try time()
        var update = self
        update.lease = nil
        update.constants = constants.copy()
        update.constants.setDouble(time + lease.seconds, lease.end)
        update.constantSlots.append(lease.end)
        guard lease.isNew else { return update }
        let layout = rows.layout
        let isFree = lease.isFree(at: time, layout)
        update.rows = rows.with(
            predicate: ResolvedPredicate(
                condition: rows.predicate.map { .and([$0.condition, isFree]) } ?? isFree,
                variableCount: rows.predicate?.variableCount ?? 1,
                schema: layout
            ),
            sort: rows.sort,
            limit: rows.limit,
            offset: rows.offset
        )
        return update
    }
}
