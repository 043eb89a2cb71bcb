import StrataRows

/// Answers of stores, read outside of the context's queue, for a fetch that is completed inside its scope.
///
/// Each time an answer has come, the fetch is attempted again. It ends at the next read that it needs, until it needs
/// none. So the fetch sees everything that changes in the context meanwhile, especially pending changes,
/// just like a fetch that reads from the stores itself. Confined to the context's scope.
package final class PreparedReads {
    /// Identifies one read among those of the same fetch.
    struct Question: Hashable, Sendable {
        enum Kind { case rows, references, count, values, valueCount, keyedRows, memberships }

        let kind: Kind
        let store: Int
        let version: Int
        /// Identifies the plan of the read among those of the fetch.
        let plan: FetchPlan.Identity
        /// Identifies a prefetch, by the positions of the steps that lead to it; empty for other reads.
        let path: [Int]

        fileprivate init(kind: Kind, store: OpenStore, plan: FetchPlan.Identity, path: [Int] = []) {
            self.kind = kind
            self.store = store.index
            version = store.version
            self.plan = plan
            self.path = path
        }
    }

    /// The answer of a store.
    enum Answer: Sendable {
        case rows(ReadRows)
        case references(ReadReferences)
        case count(Int)
        case values(FetchedValues)
        case keyedRows(ReadRows, of: [Int64])
        case memberships(ReadMemberships, of: [ObjectReference])
        /// The fetch itself has to read from the store.
        case askInScope
    }

    /// A read that the fetch needs, and that was not made yet.
    ///
    /// It is thrown through the fetch, and ``attempt(_:)`` catches it.
    struct Unanswered: Error, @unchecked Sendable {
        // @unchecked Sendable: `read` captures constants only; the resolved predicate of a plan never changes.
        let question: Question
        private let store: OpenStore
        private let read: (FetchControl) throws -> Answer

        fileprivate init(
            _ question: Question,
            store: OpenStore,
            read: @escaping (FetchControl) throws -> Answer
        ) {
            self.question = question
            self.store = store
            self.read = read
        }

        fileprivate init(kind: Question.Kind, store: OpenStore, plan: DictionaryPlan) {
            self.init(Question(kind: kind, store: store, plan: plan.rows.identity), store: store) { control in
                var plan = plan.asked(ofStore: store.number)
                plan.rows.control = control
                return switch kind {
                case .rows: .rows(try ReadRows(store, plan.rows))
                case .references: .references(try ReadReferences(store, plan.rows))
                case .values: .values(try store.reader.values(for: plan))
                case .valueCount: .count(try store.reader.count(for: plan))
                case .count, .keyedRows, .memberships: .count(try store.reader.count(for: plan.rows))
                }
            }
        }

        /// Reads from the store; may be called on any thread.
        func ask(_ control: FetchControl) throws -> Answer {
            // A custom store works on behalf of a context, and may use it.
            guard !store.isNotifiedOfObjects else { return .askInScope }
            let answer = Result { try read(control) }
            // A store that was migrated meanwhile may be closed, so the fetch reads from its successor.
            if store.successor != nil { return .askInScope }
            return try answer.get()
        }
    }

    /// The end of an attempt to make the fetch with the answers so far.
    enum Attempt<Found> {
        case ended(Result<Found, any Error>)
        case needs(Unanswered)
    }

    private var answers: [Question: Answer] = [:]

    /// Runs a fetch, which asks these answers in place of the stores.
    func attempt<Found>(_ fetch: (PreparedReads) throws -> Found) -> Attempt<Found> {
        do {
            return .ended(.success(try fetch(self)))
        } catch let read as Unanswered {
            return .needs(read)
        } catch {
            return .ended(.failure(error))
        }
    }

    /// Takes in an answer.
    ///
    /// - Returns: Whether it replaces an answer that was no longer valid.
    func enter(_ answer: Answer, to question: Question) -> Bool {
        answers.updateValue(answer, forKey: question) != nil
    }

    var isEmpty: Bool { answers.isEmpty }

    /// Whether an earlier answer exists to a question about the results themselves, not about prefetched data.
    func answersPart(of question: Question) -> Bool {
        switch question.kind {
        case .rows, .references, .values: answers[question] != nil
        case .count, .valueCount, .keyedRows, .memberships: false
        }
    }

    /// Forgets all answers.
    func removeAll() { answers = [:] }

    // MARK: - Questions of the fetch

    // Each method returns `nil` if the fetch has to read from the store now.

    /// The rows of a plan, and the commit up to which they are the newest.
    func rows(_ store: OpenStore, _ plan: FetchPlan) throws -> (rows: [Row], commits: UInt64)? {
        let unanswered = Unanswered(kind: .rows, store: store, plan: DictionaryPlan(only: plan))
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .rows(let read):
            guard let rows = read.renewed() else { throw unanswered }
            return rows
        default: throw unanswered
        }
    }

    func references(_ store: OpenStore, _ plan: FetchPlan) throws -> [ObjectReference]? {
        let unanswered = Unanswered(kind: .references, store: store, plan: DictionaryPlan(only: plan))
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .references(let read):
            guard let references = read.renewed() else { throw unanswered }
            return references
        default: throw unanswered
        }
    }

    func count(_ store: OpenStore, _ plan: FetchPlan) throws -> Int? {
        try count(Unanswered(kind: .count, store: store, plan: DictionaryPlan(only: plan)))
    }

    func count(_ store: OpenStore, _ plan: DictionaryPlan) throws -> Int? {
        try count(Unanswered(kind: .valueCount, store: store, plan: plan))
    }

    private func count(_ unanswered: Unanswered) throws -> Int? {
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .count(let count): return count
        default: throw unanswered
        }
    }

    func values(_ store: OpenStore, _ plan: DictionaryPlan) throws -> FetchedValues? {
        let unanswered = Unanswered(kind: .values, store: store, plan: plan)
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .values(let values): return values
        default: throw unanswered
        }
    }

    /// The rows of some keys, and the commit up to which they are the newest.
    fileprivate func rows(_ store: OpenStore, forKeys keys: [Int64], in layout: EntityLayout, _ path: [Int]) throws
        -> (rows: [Row], commits: UInt64)?
    {
        let unanswered = Unanswered(Question(kind: .keyedRows, store: store, plan: .whole, path: path), store: store) {
            control in
            .keyedRows(try ReadRows(store, forKeys: keys, in: layout, control), of: keys)
        }
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .keyedRows(let read, keys):
            guard let rows = read.renewed() else { throw unanswered }
            return rows
        default: throw unanswered
        }
    }

    /// The memberships of some owners, and the commit up to which they are the newest.
    fileprivate func memberships(
        of slot: ToManySlot,
        ownedBy owners: [ObjectReference],
        memberRoot: Int,
        _ store: OpenStore,
        _ path: [Int]
    ) throws -> (found: Memberships, commits: UInt64)? {
        let unanswered = Unanswered(Question(kind: .memberships, store: store, plan: .whole, path: path), store: store)
        { control in
            let read = try ReadMemberships(
                from: store,
                slot: slot,
                owners: owners,
                memberRoot: memberRoot,
                control: control
            )
            return .memberships(read, of: owners)
        }
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .memberships(let read, owners):
            guard let found = read.renewed() else { throw unanswered }
            return found
        default: throw unanswered
        }
    }
}

/// The source of the reads of one prefetching step, if they were made in advance.
package struct PrefetchReads {
    private let prepared: PreparedReads?
    private var path: [Int] = []

    /// Makes the source for the first step; `nil` if the fetch reads from the stores now.
    init(_ prepared: PreparedReads?) { self.prepared = prepared }

    /// The source for one of the following steps.
    func step(_ index: Int) -> PrefetchReads {
        guard prepared != nil else { return self }
        var next = self
        next.path.append(index)
        return next
    }

    // Each method returns `nil` if the fetch has to read from the store now.

    func rows(forKeys keys: [Int64], in layout: EntityLayout, _ store: OpenStore) throws
        -> (rows: [Row], commits: UInt64)?
    { try prepared?.rows(store, forKeys: keys, in: layout, path) }

    func memberships(
        of slot: ToManySlot,
        ownedBy owners: [ObjectReference],
        memberRoot: Int,
        _ store: OpenStore
    ) throws -> (found: Memberships, commits: UInt64)? {
        try prepared?.memberships(of: slot, ownedBy: owners, memberRoot: memberRoot, store, path)
    }
}

extension DictionaryPlan {
    /// A plan that reads whole rows and computes no values.
    fileprivate init(only rows: FetchPlan) {
        self.init(rows: rows, columns: [], grouping: nil, variableCount: 0)
    }
}

/// A read that stays registered with the row cache until this object is released.
///
/// Until then, the cache keeps the rows that saves write, and notes those that they remove.
private final class LastingRead: Sendable {
    let store: OpenStore
    let read: RowCache.Access
    /// The commit count before the store was read.
    let commits: UInt64
    /// The number of published commits at that time.
    let publishedCommits: UInt64

    init(_ store: OpenStore) {
        self.store = store
        store.forgetRowsOverwrittenByOthers()
        read = store.cache.beginAccess()
        publishedCommits = store.cache.publishedCommits
        commits = store.cache.commits
    }

    deinit { store.cache.endAccess(read) }
}

/// Rows that were read some time before objects are made from them.
struct ReadRows: Sendable {
    private let began: LastingRead
    private let root: Int
    private let rows: [Row]

    fileprivate init(_ store: OpenStore, _ plan: FetchPlan) throws {
        began = LastingRead(store)
        root = plan.layout.rootNumber
        rows = try store.rows(for: plan, by: began.read)
    }

    fileprivate init(_ store: OpenStore, forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl) throws
    {
        began = LastingRead(store)
        root = layout.rootNumber
        var rows = try store.reader.rows(forKeys: keys, in: layout, control: control)
        store.offer(&rows, root: root, read: began.read)
        self.rows = rows
    }

    /// The rows with their current values, and the commit up to which they are the newest.
    ///
    /// - Returns: `nil` if a row or the store was removed since; then the store has to be read again.
    fileprivate func renewed() -> (rows: [Row], commits: UInt64)? {
        let store = began.store
        guard store.isOpen else { return nil }
        let commits = store.cache.commits
        guard commits != began.commits else { return (rows, commits) }
        var rows = rows
        return store.cache.renew(&rows, root: root, read: began.read) ? (rows, commits) : nil
    }
}

/// References that were read some time before objects are made from them.
struct ReadReferences: Sendable {
    private let began: LastingRead
    private let root: Int
    private let references: [ObjectReference]

    fileprivate init(_ store: OpenStore, _ plan: FetchPlan) throws {
        began = LastingRead(store)
        root = plan.layout.rootNumber
        references = try store.reader.references(for: plan)
    }

    /// The references, if all of their rows still exist.
    ///
    /// - Returns: `nil` if not, or if the store was removed; then the store has to be read again.
    fileprivate func renewed() -> [ObjectReference]? {
        let store = began.store
        guard store.isOpen else { return nil }
        guard store.cache.commits != began.commits else { return references }
        return store.cache.hasKept(references, root: root, since: began.read) ? references : nil
    }
}

/// Memberships that were read some time before relationships are loaded from them.
struct ReadMemberships: Sendable {
    private let began: LastingRead
    private let found: Memberships

    fileprivate init(
        from store: OpenStore,
        slot: ToManySlot,
        owners: [ObjectReference],
        memberRoot: Int,
        control: FetchControl
    ) throws {
        began = LastingRead(store)
        var found = try store.reader.memberships(of: slot, ownedBy: owners, control: control)
        store.offer(&found.rows, root: memberRoot, read: began.read)
        self.found = found
    }

    /// The memberships, and the commit up to which they are the newest.
    ///
    /// - Returns: `nil` if anything was saved since, as it is not recorded which memberships that has changed.
    fileprivate func renewed() -> (found: Memberships, commits: UInt64)? {
        guard began.store.isOpen, began.store.cache.publishedCommits == began.publishedCommits else { return nil }
        return (found, began.commits)
    }
}
