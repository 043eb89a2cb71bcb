import StrataPredicates

/// A place in the histories of one or more stores: the number of a transaction for each, by the store's UUID.
///
/// Keep it, archived or encoded, to go on from there the next time
/// (``NSPersistentHistoryChangeRequest/fetchHistory(after:)-(NSPersistentHistoryToken?)``). Two tokens are equal if they name the
/// same transactions. Immutable; any thread may use it.
///
/// See <doc:History>.
///
/// ```swift
/// let token = coordinator.currentPersistentHistoryToken(fromStores: nil)
/// let data = try JSONEncoder().encode(token)  // to go on from here after a restart
/// ```
public final class NSPersistentHistoryToken: NSObject, NSCopying, NSSecureCoding, Codable, Sendable {
    /// The number of the last transaction that the token covers, by the UUID text of the store.
    ///
    /// An addition to Apple's API. 0 stands for the place before the first transaction.
    public let transactionNumbers: [String: Int64]

    /// Makes a token of numbers.
    ///
    /// An addition to Apple's API, for tokens that travel in a format of one's own.
    ///
    /// - Parameter transactionNumbers: The number of the last transaction that the token covers, by the UUID text of the store.
    public init(transactionNumbers: [String: Int64]) {
        self.transactionNumbers = transactionNumbers
    }

    // MARK: - Comparing

    /// Whether this token is nowhere ahead of another one, and somewhere behind.
    ///
    /// An addition to Apple's API. A store that a token does not name counts as one of which nothing was read yet. Of two
    /// tokens of several stores it may be that neither is behind the other.
    ///
    /// - Parameter other: The token to compare with.
    /// - Returns: False for equal tokens, and for tokens of different stores.
    public func isBehind(_ other: NSPersistentHistoryToken) -> Bool {
        var isBehind = false
        for store in Set(transactionNumbers.keys).union(other.transactionNumbers.keys) {
            let (own, others) = (transactionNumbers[store] ?? 0, other.transactionNumbers[store] ?? 0)
            if own > others { return false }
            if own < others { isBehind = true }
        }
        return isBehind
    }

    /// The token that is as far as this one or another, whichever is further, in each store.
    ///
    /// An addition to Apple's API.
    ///
    /// - Parameter other: The token to combine with.
    /// - Returns: A token that names the stores of both.
    public func advanced(to other: NSPersistentHistoryToken) -> NSPersistentHistoryToken {
        NSPersistentHistoryToken(
            transactionNumbers: transactionNumbers.merging(other.transactionNumbers, uniquingKeysWith: max)
        )
    }

    /// Whether `object` is a token that names the same transactions.
    public override func isEqual(_ object: Any?) -> Bool {
        (object as? NSPersistentHistoryToken)?.transactionNumbers == transactionNumbers
    }

    /// Equal for equal tokens.
    public override var hash: Int { transactionNumbers.hashValue }

    /// The token itself, which is immutable.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The token itself.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// The numbers, for logs.
    public override var description: String {
        let parts = transactionNumbers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return "<NSPersistentHistoryToken {\(parts.joined(separator: ", "))}>"
    }

    // MARK: - Archiving

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    private static let storesKey = "stores"
    private static let numbersKey = "numbers"

    /// Reads an archived token; `nil` if the archive holds none.
    ///
    /// - Parameter coder: The archive to read from.
    public init?(coder: NSCoder) {
        guard let stores = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: Self.storesKey) as? [String],
            let numbers = coder.decodeObject(of: [NSArray.self, NSNumber.self], forKey: Self.numbersKey) as? [NSNumber],
            stores.count == numbers.count, Set(stores).count == stores.count
        else { return nil }
        let values = numbers.map { Int64(truncating: $0) }
        guard values.allSatisfy({ $0 >= 0 }) else { return nil }
        transactionNumbers = Dictionary(uniqueKeysWithValues: zip(stores, values))
    }

    /// Archives the token.
    ///
    /// - Parameter coder: The archiver to write to.
    public func encode(with coder: NSCoder) {
        let stores = transactionNumbers.keys.sorted()
        coder.encode(stores.map { $0 as NSString } as NSArray, forKey: Self.storesKey)
        let numbers = stores.map { NSNumber(value: transactionNumbers[$0] ?? 0) }
        coder.encode(numbers as NSArray, forKey: Self.numbersKey)
    }

    /// Reads an encoded token: a dictionary of numbers by store.
    ///
    /// - Parameter decoder: The decoder to read from.
    /// - Throws: `DecodingError` for anything else, negative numbers included.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let numbers = try container.decode([String: Int64].self)
        guard numbers.values.allSatisfy({ $0 >= 0 }) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "A history token holds no negative numbers."
            )
        }
        transactionNumbers = numbers
    }

    /// Encodes the token as a dictionary of numbers by store.
    ///
    /// - Parameter encoder: The encoder to write to.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(transactionNumbers)
    }
}

/// Tokens have an order in predicates.
extension NSPersistentHistoryToken: PredicateOrdered {
    package func predicateHolds(_ type: NSComparisonPredicate.Operator, _ other: Any) -> Bool? {
        guard let other = other as? NSPersistentHistoryToken else { return nil }
        let (ownStores, otherStores) = (transactionNumbers.keys, other.transactionNumbers.keys)
        // A transaction's token names one store, and only there it can be ahead of another token or behind.
        let stores =
            ownStores.count == 1
            ? Set(ownStores) : otherStores.count == 1 ? Set(otherStores) : Set(ownStores).union(otherStores)
        let pairs = stores.map { (transactionNumbers[$0] ?? 0, other.transactionNumbers[$0] ?? 0) }
        let isNowhereAhead = pairs.allSatisfy { $0 <= $1 }
        let isNowhereBehind = pairs.allSatisfy { $0 >= $1 }
        return switch type {
        case .lessThan: isNowhereAhead && !isNowhereBehind
        case .lessThanOrEqualTo: isNowhereAhead
        case .greaterThan: isNowhereBehind && !isNowhereAhead
        case .greaterThanOrEqualTo: isNowhereBehind
        default: nil
        }
    }
}
