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
    /// The bound that the update must not exceed; `nil` for none.
    package internal(set) var quota: RowQuota?

    package init(end: Slot, seconds: TimeInterval, isNew: Bool, quota: RowQuota? = nil) {
        self.end = end
        self.seconds = seconds
        self.isNew = isNew
        self.quota = quota
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

/// A bound for the number of rows that satisfy a condition, which all updates with a quota of the same name keep.
///
/// An update with it makes rows satisfy the condition. Other changes only make rows cease to satisfy it.
package struct RowQuota {
    /// The rows that count, those of earlier updates.
    package internal(set) var rows: FetchPlan
    /// The most rows.
    package let most: Int
    /// The name.
    ///
    /// A store carries out one update with this name at a time.
    package let name: String

    package init(rows: FetchPlan, most: Int, name: String) {
        self.rows = rows
        self.most = most
        self.name = name
    }
}

extension BatchUpdate {
    /// The update of no more rows than its quota permits.
    ///
    /// - Parameter count: Counts the rows of the quota. No other update with this quota comes between that and the change.
    /// - Returns: The update without a quota; `nil` if it permits no row.
    package func withinQuota(_ count: (RowQuota) throws -> Int) rethrows -> BatchUpdate? {
        guard let quota = lease?.quota else { return self }
        let room = quota.most - (try count(quota))
        guard room > 0 else { return nil }
        var update = self
        update.lease?.quota = nil
        update.rows = rows.with(
            predicate: rows.predicate,
            sort: rows.sort,
            limit: rows.limit > 0 ? min(rows.limit, room) : room,
            offset: rows.offset
        )
        return update
    }

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
