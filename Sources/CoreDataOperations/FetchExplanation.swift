import CoreDataEssentials
import StrataRows

/// The way in which stores answer a fetch: the statement, the plan of the database, and the indexes that it uses.
///
/// An addition to Apple's API.
///
/// See <doc:Instruments>.
///
/// ```swift
/// request.predicate = NSPredicate(format: "price < %d", 20)
/// print(try context.explain(request))
/// ```
public struct FetchExplanation: Sendable, CustomStringConvertible {
    /// The way in which one store answers.
    ///
    /// ```swift
    /// let scanned = try context.explain(request).answers.flatMap(\.scannedTables)
    /// ```
    public struct Answer: Sendable {
        /// The UUID of the store.
        public let storeIdentifier: String?
        /// The SQL, with `?`, or `$1` and so on, for every value; `nil` for a store without SQL.
        ///
        /// A store without SQL evaluates the predicate for one object after the other.
        public let statement: String?
        /// The plan of the database, one line for each step, indented by two spaces for each level.
        public let plan: [String]
        /// The names of the indexes that the plan uses, each once.
        public let indexes: [String]
        /// The tables that are read completely, because all rows are wanted or no index helps.
        public let scannedTables: [String]
    }

    /// The stores that answer, in their order.
    public let answers: [Answer]

    /// The complete explanation as lines of text.
    public var description: String {
        answers.map { answer in
            guard let statement = answer.statement else { return "No SQL: the store looks at its objects one by one." }
            let indexes = answer.indexes.isEmpty ? "none" : answer.indexes.joined(separator: ", ")
            var lines = [statement] + answer.plan.map { "  " + $0 } + ["Indexes: \(indexes)"]
            if !answer.scannedTables.isEmpty {
                lines.append("Scanned: \(answer.scannedTables.joined(separator: ", "))")
            }
            return lines.joined(separator: "\n")
        }.joined(separator: "\n")
    }
}

extension NSManagedObjectContext {
    /// Explains how the stores would answer a request, without executing it.
    ///
    /// It explains the request as it is; pending changes of the context can make the fetch read more. For a child it
    /// explains the reads of its root context. Must be called inside the context's scope. It compiles the statement and
    /// asks the database for its plan, which takes some tens of microseconds, or a round trip to a server.
    ///
    /// An addition to Apple's API.
    ///
    /// ```swift
    /// request.predicate = NSPredicate(format: "price < %d", 20)
    /// print(try context.explain(request))
    /// ```
    ///
    /// - Parameter request: A fetch request of any result type except dictionaries.
    /// - Returns: The answer of each store that the fetch would read.
    /// - Throws: `persistentStoreOperation` (134070) for a request that makes no sense, and for one with dictionaries;
    ///   `persistentStoreUnsupportedRequestType` (134091) for a predicate that SQL cannot express; errors of the store.
    public func explain<T>(_ request: NSFetchRequest<T>) throws -> FetchExplanation {
        assertCurrent(#function)
        let specification = request.specification
        let answer: ExplainedAnswer
        switch specification.resultType {
        case .managedObjectResultType where specification.includesPropertyValues: answer = .rows
        case .managedObjectResultType, .managedObjectIDResultType: answer = .references
        case .countResultType: answer = .count
        default: throw FetchPlanner.refused("Only fetches of objects, IDs and counts can be explained.")
        }
        let plan = try fetchPlanner().plan(specification)
        guard let coordinator else { return FetchExplanation(answers: []) }
        let stores = try coordinator.openStores(for: plan, request.affectedStores)
        return FetchExplanation(
            answers: try stores.map { store in
                let found = try store.rows.explanation(of: plan.asked(ofStore: store.number), answer)
                return FetchExplanation.Answer(
                    storeIdentifier: store.store.identifier,
                    statement: found?.sql,
                    plan: found?.plan ?? [],
                    indexes: found?.indexes ?? [],
                    scannedTables: found?.scannedTables ?? []
                )
            }
        )
    }
}
