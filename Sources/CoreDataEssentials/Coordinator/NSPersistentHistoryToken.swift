import StrataPredicates
import StrataRows

/// A place in the histories of one or more stores: the number of a transaction for each store, by its UUID.
///
/// Keep it, archived or encoded, to continue from there the next time
/// (``NSPersistentHistoryChangeRequest/fetchHistory(after:)-(NSPersistentHistoryToken?)``). Two tokens are equal if
/// they name the same transactions. Immutable; any thread may use it.
///
/// See <doc:History>.
///
/// ```swift
/// let token = coordinator.currentPersistentHistoryToken(fromStores: nil)
/// let data = try JSONEncoder().encode(token)  // to continue from here after a restart
/// ```
public final class NSPersistentHistoryToken: NSObject, NSCopying, NSSecureCoding, Codable, Sendable {
    /// The number of the last transaction that the token covers, by the UUID text of the store.
    ///
    /// An addition to Apple's API. 0 stands for the place before the first transaction.
    public var transactionNumbers: [String: Int64] { places.mapValues(\.number) }

    /// The places in the histories, by the UUID texts of the stores.
    package let places: [String: HistoryPlace]

    /// Makes a token from numbers.
    ///
    /// An addition to Apple's API, for tokens that are kept in another format.
    ///
    /// - Parameter transactionNumbers: The numbers of the last transactions that the token covers, by the UUID texts of
    ///   the stores.
    public init(transactionNumbers: [String: Int64]) {
        places = transactionNumbers.mapValues { HistoryPlace(number: $0) }
    }

    package init(_ places: [String: HistoryPlace]) { self.places = places }

    // MARK: - Comparing

    /// Whether this token is behind another one in at least one store, and ahead of it in none.
    ///
    /// An addition to Apple's API. If a token does not name a store, then it counts as the place before that store's
    /// first transaction. If both tokens name several stores, then it is possible that neither is behind the other.
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

    /// A token with the later place of this token and another one, for each store.
    ///
    /// An addition to Apple's API.
    ///
    /// - Parameter other: The token to combine with.
    /// - Returns: A token that names the stores of both.
    public func advanced(to other: NSPersistentHistoryToken) -> NSPersistentHistoryToken {
        NSPersistentHistoryToken(places.merging(other.places) { $1.number > $0.number ? $1 : $0 })
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

    /// A summary for logs.
    public override var description: String {
        let parts = transactionNumbers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return "<NSPersistentHistoryToken {\(parts.joined(separator: ", "))}>"
    }

    // MARK: - Archiving

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    private static let storesKey = "stores"
    private static let numbersKey = "numbers"
    private static let transactionsKey = "transactions"

    /// Reads an archived token; `nil` if the archive has none.
    ///
    /// - Parameter coder: The archive to read from.
    public init?(coder: NSCoder) {
        guard let stores = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: Self.storesKey) as? [String],
            let numbers = coder.decodeObject(of: [NSArray.self, NSNumber.self], forKey: Self.numbersKey) as? [NSNumber],
            stores.count == numbers.count, Set(stores).count == stores.count
        else { return nil }
        let values = numbers.map { Int64(truncating: $0) }
        guard values.allSatisfy({ $0 >= 0 }) else { return nil }
        // An empty text means that the transaction is not known. Older archives have no transactions.
        let found = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: Self.transactionsKey) as? [String]
        let transactions = found?.count == stores.count ? found : nil
        var places: [String: HistoryPlace] = [:]
        for (index, store) in stores.enumerated() {
            let transaction = transactions.flatMap { UUID(uuidString: $0[index]) }
            places[store] = HistoryPlace(number: values[index], transaction: transaction)
        }
        self.places = places
    }

    /// Archives the token.
    ///
    /// - Parameter coder: The archiver to write to.
    public func encode(with coder: NSCoder) {
        let sorted = places.sorted { $0.key < $1.key }
        coder.encode(sorted.map { $0.key as NSString } as NSArray, forKey: Self.storesKey)
        coder.encode(sorted.map { NSNumber(value: $0.value.number) } as NSArray, forKey: Self.numbersKey)
        let transactions = sorted.map { ($0.value.transaction?.uuidString ?? "") as NSString }
        coder.encode(transactions as NSArray, forKey: Self.transactionsKey)
    }

    /// The encoded form of a place: the number, or a dictionary if the transaction is known too.
    private struct EncodedPlace: Codable {
        let place: HistoryPlace

        private enum Key: CodingKey { case number, transaction }

        init(_ place: HistoryPlace) { self.place = place }

        init(from decoder: any Decoder) throws {
            if let keyed = try? decoder.container(keyedBy: Key.self) {
                place = HistoryPlace(
                    number: try keyed.decode(Int64.self, forKey: .number),
                    transaction: try keyed.decodeIfPresent(UUID.self, forKey: .transaction)
                )
            } else {
                place = HistoryPlace(number: try decoder.singleValueContainer().decode(Int64.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            guard let transaction = place.transaction else {
                var single = encoder.singleValueContainer()
                return try single.encode(place.number)
            }
            var keyed = encoder.container(keyedBy: Key.self)
            try keyed.encode(place.number, forKey: .number)
            try keyed.encode(transaction, forKey: .transaction)
        }
    }

    /// Reads an encoded token: a dictionary by store, of numbers or of dictionaries with a number and a transaction.
    ///
    /// - Parameter decoder: The decoder to read from.
    /// - Throws: `DecodingError` for any other value, including negative numbers.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let found = try container.decode([String: EncodedPlace].self)
        guard found.values.allSatisfy({ $0.place.number >= 0 }) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "A history token holds no negative numbers."
            )
        }
        places = found.mapValues(\.place)
    }

    /// Encodes the token as a dictionary by store.
    ///
    /// For a store on a server the value is a dictionary of the number and the transaction's UUID; otherwise it is the
    /// number.
    ///
    /// - Parameter encoder: The encoder to write to.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(places.mapValues { EncodedPlace($0) })
    }
}

/// Tokens have an order in predicates.
extension NSPersistentHistoryToken: PredicateOrdered {
    package func predicateHolds(_ type: NSComparisonPredicate.Operator, _ other: Any) -> Bool? {
        guard let other = other as? NSPersistentHistoryToken else { return nil }
        let (ownStores, otherStores) = (transactionNumbers.keys, other.transactionNumbers.keys)
        // A transaction's token names one store. Only in that store can it be ahead of another token or behind it.
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
