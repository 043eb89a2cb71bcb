/// The arithmetic of predicates.
///
/// It agrees with SQLite, so that a store gives the same answers as evaluation in memory.
///
/// - Two integers give an integer; the division truncates towards zero. A result too large for 64 bits becomes a
///   double.
/// - Division and modulus by zero are nil, and so is every result that is not a number (`sqrt(-1)`).
/// - If an operand is nil, or is not a number, the result is nil.
/// - A date plus or minus a number of seconds is a date, and the difference of two dates is a number of seconds.
package enum Arithmetic {
    package static func add(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        switch (lhs, rhs) {
        case (.int(let left), .int(let right)):
            let (result, overflow) = left.addingReportingOverflow(right)
            return overflow ? .double(Double(left) + Double(right)) : .int(result)
        case (.date(let date), _): return rhs.doubleValue.map { .date(date + $0) } ?? .null
        case (_, .date(let date)): return lhs.doubleValue.map { .date(date + $0) } ?? .null
        default: return doubles(lhs, rhs, by: +)
        }
    }

    package static func subtract(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        switch (lhs, rhs) {
        case (.int(let left), .int(let right)):
            let (result, overflow) = left.subtractingReportingOverflow(right)
            return overflow ? .double(Double(left) - Double(right)) : .int(result)
        case (.date(let left), .date(let right)): return .number(left - right)
        case (.date(let date), _): return rhs.doubleValue.map { .date(date - $0) } ?? .null
        default: return doubles(lhs, rhs, by: -)
        }
    }

    package static func multiply(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        guard case .int(let left) = lhs, case .int(let right) = rhs else { return doubles(lhs, rhs, by: *) }
        let (result, overflow) = left.multipliedReportingOverflow(by: right)
        return overflow ? .double(Double(left) * Double(right)) : .int(result)
    }

    package static func divide(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        guard let divisor = rhs.doubleValue, divisor != 0 else { return .null }
        guard case .int(let left) = lhs, case .int(let right) = rhs else { return doubles(lhs, rhs, by: /) }
        let (result, overflow) = left.dividedReportingOverflow(by: right)
        return overflow ? .double(Double(left) / Double(right)) : .int(result)
    }

    /// The remainder of two numbers truncated to integers, with the sign of the first.
    package static func modulus(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        integers(lhs, rhs) { left, right in
            if right == 0 { return nil }
            return right == -1 ? 0 : left % right
        }
    }

    package static func power(_ lhs: PredicateValue, _ rhs: PredicateValue) -> PredicateValue {
        doubles(lhs, rhs, by: pow)
    }

    package static func bitwise(
        _ lhs: PredicateValue,
        _ rhs: PredicateValue,
        by operation: (Int64, Int64) -> Int64
    ) -> PredicateValue {
        integers(lhs, rhs, by: operation)
    }

    private static func doubles(
        _ lhs: PredicateValue,
        _ rhs: PredicateValue,
        by operation: (Double, Double) -> Double
    ) -> PredicateValue {
        guard let left = lhs.doubleValue, let right = rhs.doubleValue else { return .null }
        return .number(operation(left, right))
    }

    private static func integers(
        _ lhs: PredicateValue,
        _ rhs: PredicateValue,
        by operation: (Int64, Int64) -> Int64?
    ) -> PredicateValue {
        guard let left = lhs.integerValue, let right = rhs.integerValue else { return .null }
        return operation(left, right).map { .int($0) } ?? .null
    }
}
