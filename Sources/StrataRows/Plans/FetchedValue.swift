import Foundation
import StrataPredicates

/// One value of a dictionary result as a store gives it.
package enum FetchedValue: Sendable {
    /// A value in the form that predicates compare.
    ///
    /// A transformable attribute is its archive.
    case plain(PredicateValue)
    /// A decimal with all of its digits.
    ///
    /// Comparisons use a double in its place.
    case decimal(Decimal)
    /// An object, with the numbers of its hierarchy's root and of the store.
    case object(ObjectReference, root: Int, store: Int)

    package static let null = FetchedValue.plain(.null)

    /// The value as comparing, grouping and sorting use it.
    package var comparable: PredicateValue {
        switch self {
        case .plain(let value): value
        case .decimal(let value): .number(value.nearestDouble)
        case .object(let reference, let root, let store):
            .reference(PredicateIdentity(store: store, entity: root, key: reference.key))
        }
    }
}

/// Takes the values of dictionary results, one result at a time, so that no one has to keep the values of all.
package protocol FetchedValueReceiver: AnyObject {
    /// Prepares for the first result, also if the store begins anew: results that were taken before do not count then.
    func begin()

    /// Takes one result.
    ///
    /// The store reads meanwhile, so this may run no code of the program.
    ///
    /// - Parameter values: The values, which may be moved out if others are left in their place.
    func take(_ values: UnsafeMutableBufferPointer<FetchedValue>)
}

/// The values of dictionary results, one result after the other.
package struct FetchedValues: Sendable {
    /// The number of values of each result, at least one.
    package let width: Int
    package private(set) var values: [FetchedValue] = []

    package init(width: Int) {
        self.width = width
    }

    /// The number of results.
    package var count: Int { values.count / width }

    /// One result's values.
    package subscript(row: Int) -> ArraySlice<FetchedValue> { values[(row * width)..<((row + 1) * width)] }

    /// Takes over values, which are whole results.
    package init(width: Int, values: consuming [FetchedValue]) {
        self.width = width
        self.values = values
    }

    /// Passes each result's values to `body`, which may move them out if it leaves others in their place.
    package mutating func withEach(
        _ body: (UnsafeMutableBufferPointer<FetchedValue>) throws -> Void
    ) rethrows {
        let width = width
        try values.withUnsafeMutableBufferPointer { values in
            for first in stride(from: 0, to: values.count, by: width) {
                try body(UnsafeMutableBufferPointer(rebasing: values[first..<(first + width)]))
            }
        }
    }

    /// Adds the next value.
    ///
    /// Every result takes `width` of them.
    package mutating func append(_ value: FetchedValue) { values.append(value) }

    /// Adds the values of a result, or some of them.
    package mutating func append(contentsOf values: some Sequence<FetchedValue>) {
        self.values.append(contentsOf: values)
    }
}
