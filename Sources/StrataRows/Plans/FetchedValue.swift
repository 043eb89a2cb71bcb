import Foundation
import StrataPredicates

/// One value of a dictionary result as a store gives it.
package enum FetchedValue: Sendable {
    /// A value as predicates compare it; a transformable attribute as its archive.
    case plain(PredicateValue)
    /// A decimal with all of its digits, of which comparisons see a double.
    case decimal(Decimal)
    /// An object, by the number of its hierarchy's root and that of the store.
    case object(ObjectReference, root: Int, store: Int)

    package static let null = FetchedValue.plain(.null)

    /// The value as it is compared, grouped and sorted by.
    package var comparable: PredicateValue {
        switch self {
        case .plain(let value): value
        case .decimal(let value): .number(value.nearestDouble)
        case .object(let reference, let root, let store):
            .reference(PredicateIdentity(store: store, entity: root, key: reference.key))
        }
    }
}

/// The values of dictionary results, one result after the other.
package struct FetchedValues: Sendable {
    /// How many values each result has, at least one.
    package let width: Int
    package private(set) var values: [FetchedValue] = []

    package init(width: Int) {
        self.width = width
    }

    /// The number of results.
    package var count: Int { values.count / width }

    /// One result's values.
    package subscript(row: Int) -> ArraySlice<FetchedValue> { values[(row * width)..<((row + 1) * width)] }

    /// Adds the next value.
    ///
    /// Every result takes `width` of them.
    package mutating func append(_ value: FetchedValue) { values.append(value) }

    /// Adds the values of a result, or some of them.
    package mutating func append(contentsOf values: some Sequence<FetchedValue>) {
        self.values.append(contentsOf: values)
    }
}
