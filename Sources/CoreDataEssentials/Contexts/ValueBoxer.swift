import Foundation
import StrataPredicates
import StrataRows

/// Turns fetched values into the values that key-value coding returns for a property of their type.
///
/// Numbers become `NSNumber`, decimals become `NSDecimalNumber`, and objects become their IDs.
struct ValueBoxer {
    private let context: NSManagedObjectContext
    private let stores: [Int: OpenStore]

    init(_ context: NSManagedObjectContext, _ stores: [OpenStore]) {
        self.context = context
        self.stores = Dictionary(stores.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// The value for a column; `nil` if it is nil or cannot be of the column's type.
    func box(_ value: FetchedValue, _ column: DictionaryColumn) -> Any? {
        switch value {
        case .object(let reference, _, let number):
            guard let store = stores[number] else { return nil }
            return store.ids.id(key: reference.key, layout: context.layout(of: reference), store: store)
        case .decimal(let decimal):
            guard column.type != .decimal else { return NSDecimalNumber(decimal: decimal) }
            return box(value.comparable, column)
        case .plain(let value): return box(value, column)
        }
    }

    private func box(_ value: PredicateValue, _ column: DictionaryColumn) -> Any? {
        guard !value.isNull else { return nil }
        let type = column.type
        switch type.slotKind {
        case .int where type == .boolean: return value.number.map { NSNumber(value: $0 != 0) }
        case .int: return value.integer { type.hasRoom(for: $0) ? type.object($0) : nil }
        case .double: return value.number.map { type.object($0) }
        case .decimal: return value.decimal.map { NSDecimalNumber(decimal: $0) }
        case .string: return (value.stringValue ?? value.anyValue.map { "\($0)" }).flatMap { type.object($0) }
        case .data where type == .transformable:
            guard case .data(let archive) = value else { return nil }
            guard let attribute = column.attribute else { return archive }
            return attribute.unarchived(archive)
        case .data, .uuid, .reference: return value.anyValue
        }
    }
}

extension DictionaryColumn {
    /// The attribute that decodes the value, if the column is an attribute.
    fileprivate var attribute: NSAttributeDescription? { description as? NSAttributeDescription }
}

extension PredicateValue {
    /// The value as a number; a date gives its seconds since the reference date.
    fileprivate var number: Double? {
        if case .date(let seconds) = self { return seconds }
        return doubleValue
    }

    /// The number without its fraction, made by `make` if it fits; a larger number, such as a sum, is returned as a
    /// number too.
    fileprivate func integer(_ make: (Int64) -> NSNumber?) -> NSNumber? {
        guard case .int(let whole) = self else {
            guard let number else { return nil }
            guard let whole = Int64(exactly: number.rounded(.towardZero)) else { return NSNumber(value: number) }
            return make(whole) ?? NSNumber(value: whole)
        }
        return make(whole) ?? NSNumber(value: whole)
    }

    /// The number with exactly the digits of its text.
    fileprivate var decimal: Decimal? {
        switch self {
        case .int(let value): Decimal(value)
        case .string(let text): Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
        default: number.flatMap { Decimal(shortest: $0) }
        }
    }
}
