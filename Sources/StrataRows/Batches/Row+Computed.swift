import Foundation
import StrataKeys
import StrataPredicates

extension Row {
    /// Sets an attribute to the value of an expression of a batch update.
    ///
    /// Only the thread that executes the batch may call it.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if a number does not fit.
    package func setComputed(_ value: PredicateValue, _ slot: Slot) throws {
        switch value {
        // NaN is not a value either.
        case _ where value.isNull: setNull(slot)
        case .null, .collection, .reference, .entity: setNull(slot)
        case .int(let number): try setNumber(number, number: Double(number), in: slot)
        case .double(let number), .date(let number):
            guard slot.kind == .int else { return try setNumber(0, number: number, in: slot) }
            guard let whole = Int64(exactly: number.rounded(.towardZero)) else {
                throw CocoaError.batchValueOutOfRange(layout)
            }
            // For a truth value, only the sign of a fraction counts.
            try setNumber(slot.type == .boolean && number != 0 ? 1 : whole, number: number, in: slot)
        case .string(let text): setString(text, slot)
        case .uuid(let uuid): setUUID(uuid, slot)
        case .data(let data): setData(data, slot)
        }
    }

    private func setNumber(_ whole: Int64, number: Double, in slot: Slot) throws {
        switch slot.kind {
        case .int:
            guard let fitting = try? slot.type.integer(whole) else { throw CocoaError.batchValueOutOfRange(layout) }
            setInt(fitting, slot)
        case .double: setDouble(number, slot)
        case .decimal:
            guard let decimal = Decimal(shortest: number) else { throw CocoaError.batchValueOutOfRange(layout) }
            setDecimal(decimal, slot)
        default: setNull(slot)
        }
    }
}
