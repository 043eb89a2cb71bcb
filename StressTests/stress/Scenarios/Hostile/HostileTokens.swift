import CoreData

/// History tokens and archives from outside: mutated ones, tokens of other stores, and archives of other classes.
struct HostileTokens {
    private let run: Run
    private let context: NSManagedObjectContext
    private let store: String
    private static let archives: [(name: String, data: Data?)] = [
        ("a token", archive(NSPersistentHistoryToken(transactionNumbers: ["a": 1]))),
        ("a URL", archive(NSURL(fileURLWithPath: "/"))),
        ("nested arrays", archive((0..<9).reduce(NSArray()) { inner, _ in NSArray(array: [inner]) })),
        (
            "a dictionary",
            archive(["a": 1, "b": Date(timeIntervalSince1970: 1), "c": [UUID(), Data([1])]] as NSDictionary)
        ),
        ("a set", archive(NSSet(array: ["a", 2, NSNull()]))), ("a locale", archive(NSLocale(localeIdentifier: "de"))),
    ]

    /// Prepares inputs for a store that keeps a history.
    init(_ run: Run, _ stack: NSPersistentStoreCoordinator) {
        self.run = run
        context = stack.context()
        store = stack.persistentStores.first?.identifier ?? ""
    }

    private static func archive(_ object: NSObject) -> Data? {
        try? NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
    }

    /// Reads the history from a place that the framework has not returned.
    func follow(_ number: Int, _ stream: inout SeededStream) {
        let other = stream.chance(0.3) ? UUID().uuidString : ""
        let place = stream.pick([
            "0", "1", "2", "99", "-1", "9223372036854775807", "9223372036854775808", "1e3", "null",
        ])
        var text = "{\"\(store)\":\(place)\(other.isEmpty ? "" : ",\"\(other)\":3")}"
        if stream.chance(0.4) { text = Hostile.mutated(text, &stream) }
        follow(number, text)
    }

    /// Reads the history from the place in a token.
    func follow(_ number: Int, _ text: String) {
        guard let token = try? JSONDecoder().decode(NSPersistentHistoryToken.self, from: Data(text.utf8)) else {
            return run.count("tokens-refused")
        }
        let expected = expectation(token)
        context.performAndWait {
            do {
                _ = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
                run.count("tokens-followed")
                if expected != 0 {
                    run.find("input \(number): the token \(text) was taken, not refused with \(expected)")
                }
            } catch let error as CocoaError where error.code.rawValue == expected {
                run.count("tokens-refused")
            } catch { run.find("input \(number): the token \(text) gave \(describe(error)), expected was \(expected)") }
        }
    }

    /// The code with which a token must be refused, or 0.
    ///
    /// The store has one transaction.
    private func expectation(_ token: NSPersistentHistoryToken) -> Int {
        guard let place = token.transactionNumbers[store] else {
            return token.transactionNumbers.isEmpty ? 0 : 134501
        }
        return place > 1 ? NSPersistentHistoryTokenExpiredError : 0
    }

    /// Reads an archive of a class that is not allowed, or a damaged one, as an attribute does.
    ///
    /// It does not use the system's own reader, which stops the program at an unexpected class.
    func unarchive(_ number: Int, _ stream: inout SeededStream) {
        let (name, made) = stream.pick(Self.archives)
        guard var data = made else { return run.find("input \(number): \(name) cannot be archived") }
        if stream.chance(0.7) {
            for _ in 0...stream.below(8) { data[stream.below(data.count)] = UInt8(stream.below(256)) }
            if stream.chance(0.2) { data = data.prefix(stream.below(data.count)) }
        }
        let value = NSSecureUnarchiveFromDataTransformer().transformedValue(data)
        run.count(value == nil ? "archives-refused" : "archives-read")
        if value is NSPersistentHistoryToken || value is NSLocale || value is Locale {
            run.find("input \(number): \(name) came out of an archive though its class is not allowed")
        }
    }
}
