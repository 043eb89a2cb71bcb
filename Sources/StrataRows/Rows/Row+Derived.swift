import Foundation
import StrataPredicates

/// Values of attributes in the form in which engines compute derived ones.
extension Row {
    /// The value of an attribute, in the form that predicates compare.
    package func predicateValue(_ slot: Slot) -> PredicateValue {
        guard !isNull(slot.index) else { return .null }
        switch slot.kind {
        case .int: return .int(int(slot.word))
        case .double: return .number(double(slot.word))
        case .string: return .string(string(slot.word))
        case .data: return .data(data(slot.word))
        case .uuid: return .uuid(uuid(slot.word))
        case .decimal: return .number(decimal(slot.word).nearestDouble)
        case .reference: return .null
        }
    }

    package func predicateValue(named name: String) -> PredicateValue? {
        layout.slot(named: name).map { predicateValue($0) }
    }

    /// Sets a derived attribute; a value of another type sets it to nil.
    package func setDerived(_ value: PredicateValue, _ slot: Slot) {
        switch (slot.kind, value) {
        case (.string, .string(let text)): setString(text, slot)
        case (.data, .data(let data)): setData(data, slot)
        case (.uuid, .uuid(let uuid)): setUUID(uuid, slot)
        case (.int, .int(let number)): setInt(number, slot)
        case (.int, .double(let number)), (.int, .date(let number)):
            guard let whole = Int64(exactly: number.rounded(.towardZero)) else { return setNull(slot) }
            setInt(whole, slot)
        case (.double, .int(let number)): setDouble(Double(number), slot)
        case (.double, .double(let number)), (.double, .date(let number)): setDouble(number, slot)
        case (.decimal, .int(let number)): setDecimal(Decimal(number), slot)
        case (.decimal, .double(let number)):
            guard let decimal = Decimal(shortest: number) else { return setNull(slot) }
            setDecimal(decimal, slot)
        default: setNull(slot)
        }
    }
}
