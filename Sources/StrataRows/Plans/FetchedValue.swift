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

/// Takes the values of dictionary results one by one, so that no one has to keep the values of all.
///
///     begin → take the values of a result that are not null → end the result → take those of the next …
///
/// The store reads meanwhile, so none of the members may run code of the program. A result takes one value for a column at
/// most.
package protocol FetchedValueReceiver: AnyObject {
    /// Prepares for the first result, also if the store begins anew: what was taken before does not count then.
    func begin()

    /// Takes a value of any kind.
    func take(_ value: FetchedValue, at column: Int)
    /// Takes a text, whose bytes are valid until the method returns, with invalid ones to be repaired.
    func take(text: UnsafeBufferPointer<UInt8>, at column: Int)
    /// Takes an integer.
    func take(integer: Int64, at column: Int)
    /// Takes a floating-point number.
    func take(number: Double, at column: Int)

    /// Ends a result, which has the values that were taken since the last one.
    func endResult()
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

    /// Hands the values over.
    package func give(to receiver: some FetchedValueReceiver) {
        receiver.begin()
        var column = 0
        for value in values {
            receiver.take(value, at: column)
            column += 1
            guard column == width else { continue }
            receiver.endResult()
            column = 0
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
