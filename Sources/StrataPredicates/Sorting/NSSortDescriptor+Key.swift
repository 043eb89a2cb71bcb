/// Gives `NSSortDescriptor` its string-keyed initialisers, which may return a subclass of it.
///
/// ```swift
/// request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: false)]
/// ```
public protocol KeyedSortDescriptorFactory {}

extension NSSortDescriptor: KeyedSortDescriptorFactory {}

extension KeyedSortDescriptorFactory where Self: NSSortDescriptor {
    /// Sorts by the values at a key path, in their natural order: numbers and dates by value, strings by their bytes.
    ///
    /// - Parameters:
    ///   - key: A key path such as `name` or `owner.name`; `nil` sorts the objects themselves.
    ///   - ascending: Whether small values come first. `nil` is smaller than everything.
    public init(key: String?, ascending: Bool) {
        self.init(keyed: KeyedSortDescriptor(key: key, ascending: ascending, order: .selector(.compare)))
    }

    /// Sorts by the values at a key path, compared by a named method.
    ///
    /// - Parameters:
    ///   - key: A key path such as `name` or `owner.name`; `nil` sorts the objects themselves.
    ///   - ascending: Whether small values come first. `nil` is smaller than everything.
    ///   - selector: `compare:`, `caseInsensitiveCompare:`, `localizedCompare:`, `localizedCaseInsensitiveCompare:` or
    ///     `localizedStandardCompare:`; a fetch refuses any other, and in memory another compares as `compare:`.
    public init(key: String?, ascending: Bool, selector: Selector?) {
        self.init(keyed: KeyedSortDescriptor(key: key, ascending: ascending, order: .selector(selector ?? .compare)))
    }

    /// Sorts by the values at a key path, compared by code.
    ///
    /// It works in memory only: a store refuses it.
    ///
    /// - Parameters:
    ///   - key: A key path such as `name` or `owner.name`; `nil` sorts the objects themselves.
    ///   - ascending: Whether values that the code calls smaller come first.
    ///   - comparator: The code. It gets the two values, `NSNull` for nil.
    public init(key: String?, ascending: Bool, comparator: @escaping Comparator) {
        self.init(keyed: KeyedSortDescriptor(key: key, ascending: ascending, order: .comparator(comparator)))
    }

    private init(keyed descriptor: KeyedSortDescriptor) {
        // The initialisers are called on NSSortDescriptor itself: the class has no other subclasses with these initialisers.
        self = descriptor as! Self
    }
}

extension NSSortDescriptor {
    /// The key path to sort by.
    ///
    /// It is `nil` if the objects themselves are compared, or if the descriptor was made from a Swift key path whose
    /// name is not known.
    public var key: String? {
        keyed?.sortKey
    }

    /// The method that compares the values; `nil` for a descriptor with a comparator.
    public var selector: Selector? {
        guard let keyed, case .selector(let selector) = keyed.order else { return nil }
        return selector
    }

    /// The natural order of values, the one that `compare:` names.
    package static func naturalOrder(_ lhs: Any, _ rhs: Any) -> ComparisonResult {
        SortComparison.natural.compare(
            PredicateValue(any: flattenOptional(lhs)),
            PredicateValue(any: flattenOptional(rhs))
        )
    }

    /// The descriptor by its key.
    ///
    /// Foundation's own descriptors have one if their Swift key path has a name.
    private var keyed: KeyedSortDescriptor? {
        if let keyed = self as? KeyedSortDescriptor { return keyed }
        guard type(of: self) == NSSortDescriptor.self, let name = try? keyPath.predicateName() else { return nil }
        return KeyedSortDescriptor(key: name == "SELF" ? nil : name, ascending: ascending, order: .selector(.compare))
    }

    /// Does nothing: sort descriptors are never decoded here in a state that forbids evaluation.
    public func allowEvaluation() {}
}

/// A sort descriptor that reads its values through key-value coding.
package final class KeyedSortDescriptor: NSSortDescriptor {
    package enum Order {
        case selector(Selector)
        case comparator(Comparator)
    }

    package let sortKey: String?
    package let order: Order

    package init(key: String?, ascending: Bool, order: Order) {
        sortKey = key
        self.order = order
        // Foundation's class requires a Swift key path. Nothing reads it: `compare(_:to:)` is overridden.
        super.init(keyPath: \NSObject.self, ascending: ascending, comparator: { _, _ in .orderedSame })
    }

    package override var reversedSortDescriptor: Any {
        KeyedSortDescriptor(key: sortKey, ascending: !ascending, order: order)
    }

    package override func compare(_ object1: Any, to object2: Any) -> ComparisonResult {
        let result = ascendingOrder(value(of: object1), value(of: object2))
        return ascending ? result : result.reversed
    }

    private func value(of object: Any) -> Any? {
        guard let sortKey else { return object }
        return (try? KeyPathReader.value(of: object, path: sortKey)) ?? nil
    }

    private func ascendingOrder(_ lhs: Any?, _ rhs: Any?) -> ComparisonResult {
        switch order {
        case .selector(let selector):
            let comparison = SortComparison(selector) ?? .natural
            return comparison.compare(PredicateValue(any: lhs), PredicateValue(any: rhs))
        case .comparator(let comparator):
            return comparator(lhs ?? NSNull(), rhs ?? NSNull())
        }
    }

    package override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? KeyedSortDescriptor else { return false }
        guard sortKey == other.sortKey, ascending == other.ascending else { return false }
        switch (order, other.order) {
        case (.selector(let mine), .selector(let theirs)): return mine == theirs
        default: return self === other
        }
    }

    package override var hash: Int {
        var hasher = Hasher()
        hasher.combine(sortKey)
        hasher.combine(ascending)
        return hasher.finalize()
    }

    package override var description: String {
        let name =
            switch order {
            case .selector(let selector): selector.description
            case .comparator: "comparator"
            }
        return "(\(sortKey ?? "SELF"), \(ascending ? "ascending" : "descending"), \(name))"
    }
}

extension ComparisonResult {
    /// The result if the operands are exchanged.
    package var reversed: ComparisonResult {
        switch self {
        case .orderedAscending: .orderedDescending
        case .orderedSame: .orderedSame
        case .orderedDescending: .orderedAscending
        }
    }
}
