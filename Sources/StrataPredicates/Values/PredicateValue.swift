/// A value that predicates compare, shared by the in-memory evaluators and the functions that a store registers.
///
/// These rules define the meaning of values for every back end:
///
/// - **Booleans are integers**, `TRUE` is 1.
/// - **Numbers compare by value** across integers and doubles, exactly: large integers are not rounded.
/// - **Decimals are doubles**: stores keep them in this form, so they are compared and computed as doubles.
/// - **NaN is nil**: a store cannot distinguish the two, so no back end does.
/// - **URLs are strings**, their absolute text.
/// - **Dates** are seconds since the reference date, but a separate kind: a date never equals a number.
package enum PredicateValue: Sendable {
    case null
    case int(Int64)
    case double(Double)
    case string(String)
    /// Seconds since the reference date.
    case date(Double)
    case uuid(UUID)
    case data(Data)
    /// A stored object, by its identity.
    case reference(PredicateIdentity)
    /// An entity, by its number in the model.
    case entity(Int)
    case collection([PredicateValue])

    /// A number, or nil for NaN.
    package static func number(_ value: Double) -> PredicateValue {
        value.isNaN ? .null : .double(value)
    }

    package static func bool(_ value: Bool) -> PredicateValue {
        .int(value ? 1 : 0)
    }

    package var isNull: Bool {
        switch self {
        case .null: true
        case .double(let value), .date(let value): value.isNaN
        default: false
        }
    }

    /// The value as a double, for integers and doubles.
    package var doubleValue: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value.isNaN ? nil : value
        default: nil
        }
    }

    /// The value as an integer: an integer, or a double truncated towards zero if it fits.
    package var integerValue: Int64? {
        switch self {
        case .int(let value): value
        case .double(let value): Int64(exactly: value.rounded(.towardZero))
        default: nil
        }
    }

    package var stringValue: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }
}

/// The place of a stored object: enough to distinguish two objects without reading either.
package struct PredicateIdentity: Hashable, Sendable {
    /// A number of the store within the process; 0 for an object that no store has yet.
    package var store: Int
    /// The number of the root entity.
    package var entity: Int
    /// The primary key; negative for an object that is not saved yet.
    package var key: Int64

    package init(store: Int, entity: Int, key: Int64) {
        self.store = store
        self.entity = entity
        self.key = key
    }
}

/// A live object, or the ID of one, that is used for the object itself in a predicate.
package protocol PredicateObjectReference {
    var predicateIdentity: PredicateIdentity { get }
}

// MARK: - Equality and hashing

/// Equality by value, as for `==` without options: strings by their bytes, numbers across types.
extension PredicateValue: Hashable {
    package static func == (lhs: PredicateValue, rhs: PredicateValue) -> Bool {
        lhs.isEqual(to: rhs, folding: [])
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null:
            hasher.combine(0)
        case .int(let value):
            let double = Double(value)
            if Int64(exactly: double) == value {
                hasher.combine(double)
            } else {
                hasher.combine(value)
            }
        case .double(let value):
            if value.isNaN { hasher.combine(0) } else { hasher.combine(value) }
        case .string(let value):
            ByteString(value).hash(into: &hasher)
        case .date(let value):
            if value.isNaN { hasher.combine(0) } else { hasher.combine(value) }
        case .uuid(let value):
            hasher.combine(value)
        case .data(let value):
            hasher.combine(value)
        case .reference(let value):
            hasher.combine(value)
        case .entity(let value):
            hasher.combine(value)
        case .collection(let values):
            hasher.combine(values)
        }
    }
}

/// A string that equals another only if their bytes are the same.
///
/// Swift's own equality is by canonical equivalence.
package struct ByteString: Hashable, Sendable {
    package let string: String

    package init(_ string: String) {
        self.string = string
    }

    package static func == (lhs: ByteString, rhs: ByteString) -> Bool {
        equalBytes(lhs.string, rhs.string)
    }

    package func hash(into hasher: inout Hasher) {
        withBytes(of: string) { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
