import StrataRows

/// What stores have answered, off the context's queue, to a fetch that is put together inside its scope.
///
/// The fetch is simply made again each time an answer has come: it throws ``Unanswered`` for the next read that it
/// needs, until it needs none. So whatever changes in the context in the meantime, pending changes above all, is seen
/// by the fetch as by one that reads for itself. Confined to the context's scope.
final class PreparedReads {
    /// One read, told from the others of the same fetch by what distinguishes them.
    struct Question: Hashable, Sendable {
        enum Kind { case rows, references, count, values, valueCount, keyedRows, memberships }

        let kind: Kind
        let store: Int
        let version: Int
        let isFiltered: Bool
        let isSorted: Bool
        let limit: Int
        let offset: Int
        /// Of a prefetch: which one, by the positions of the steps that lead to it.
        let path: [Int]

        fileprivate init(_ kind: Kind, _ store: OpenStore, _ plan: FetchPlan) {
            self.kind = kind
            self.store = store.index
            version = store.version
            isFiltered = plan.predicate != nil
            isSorted = plan.sort != nil
            limit = plan.limit
            offset = plan.offset
            path = []
        }

        fileprivate init(_ kind: Kind, _ store: OpenStore, _ path: [Int]) {
            self.kind = kind
            self.store = store.index
            version = store.version
            isFiltered = false
            isSorted = false
            limit = 0
            offset = 0
            self.path = path
        }
    }

    /// What a store has said.
    enum Answer: Sendable {
        case rows(ReadRows)
        case references(ReadReferences)
        case count(Int)
        case values(FetchedValues)
        case keyedRows(ReadRows, of: [Int64])
        case memberships(ReadMemberships, of: [ObjectReference])
        /// The store is to be asked by the fetch itself.
        case askInScope
    }

    /// The fetch needs a read that was not made yet.
    struct Unanswered: Error, @unchecked Sendable {
        // @unchecked Sendable: `read` has constants only: of a plan nobody changes the resolved predicate.
        let question: Question
        private let store: OpenStore
        private let read: (FetchControl) throws -> Answer

        fileprivate init(
            _ question: Question,
            _ store: OpenStore,
            _ read: @escaping (FetchControl) throws -> Answer
        ) {
            self.question = question
            self.store = store
            self.read = read
        }

        fileprivate init(_ kind: Question.Kind, _ store: OpenStore, _ plan: DictionaryPlan) {
            self.init(Question(kind, store, plan.rows), store) { control in
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

        /// Asks the store; on any thread.
        func ask(_ control: FetchControl) throws -> Answer {
            // A store of one's own works on behalf of a context, and may look at it.
            guard !store.isToldOfObjects else { return .askInScope }
            let answer = Result { try read(control) }
            // One that was migrated meanwhile may have been closed: the fetch asks the one in its place.
            if store.successor != nil { return .askInScope }
            return try answer.get()
        }
    }

    private var answers: [Question: Answer] = [:]

    /// Takes an answer.
    ///
    /// - Returns: Whether it takes the place of one that did not hold.
    func enter(_ answer: Answer, to question: Question) -> Bool {
        answers.updateValue(answer, forKey: question) != nil
    }

    var isEmpty: Bool { answers.isEmpty }

    /// Whether a question about the results themselves, not about what is prefetched with them, was answered before.
    func answersPart(of question: Question) -> Bool {
        switch question.kind {
        case .rows, .references, .values: answers[question] != nil
        case .count, .valueCount, .keyedRows, .memberships: false
        }
    }

    /// Forgets what the stores have said.
    func removeAll() { answers = [:] }

    // MARK: - As the fetch asks

    // Each gives `nil` if the store is to be asked now.

    /// The rows that a plan gives, and the commit up to which they are the newest.
    func rows(_ store: OpenStore, _ plan: FetchPlan) throws -> (rows: [Row], commits: UInt64)? {
        let unanswered = Unanswered(.rows, store, DictionaryPlan(only: plan))
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .rows(let read):
            guard let rows = read.renewed() else { throw unanswered }
            return rows
        default: throw unanswered
        }
    }

    func references(_ store: OpenStore, _ plan: FetchPlan) throws -> [ObjectReference]? {
        let unanswered = Unanswered(.references, store, DictionaryPlan(only: plan))
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .references(let read):
            guard let references = read.renewed() else { throw unanswered }
            return references
        default: throw unanswered
        }
    }

    func count(_ store: OpenStore, _ plan: FetchPlan) throws -> Int? {
        try count(Unanswered(.count, store, DictionaryPlan(only: plan)))
    }

    func count(_ store: OpenStore, _ plan: DictionaryPlan) throws -> Int? {
        try count(Unanswered(.valueCount, store, plan))
    }

    private func count(_ unanswered: Unanswered) throws -> Int? {
        switch answers[unanswered.question] {
        case .askInScope: return nil
        case .count(let count): return count
        default: throw unanswered
        }
    }

    func values(_ store: OpenStore, _ plan: DictionaryPlan) throws -> FetchedValues? {
        let unanswered = Unanswered(.values, store, plan)
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
        let unanswered = Unanswered(Question(.keyedRows, store, path), store) { control in
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
        let unanswered = Unanswered(Question(.memberships, store, path), store) { control in
            .memberships(try ReadMemberships(store, slot, owners, memberRoot, control), of: owners)
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

/// Where the reads of one step of prefetching come from, if they were made beforehand.
struct PrefetchReads {
    private let prepared: PreparedReads?
    private var path: [Int] = []

    /// For the first step; `nil` if the stores are asked now.
    init(_ prepared: PreparedReads?) { self.prepared = prepared }

    /// For one of the steps that follow.
    func step(_ index: Int) -> PrefetchReads {
        guard prepared != nil else { return self }
        var next = self
        next.path.append(index)
        return next
    }

    // Each gives `nil` if the store is to be asked now.

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
    /// A plan of whole rows, which nobody asks for values.
    fileprivate init(only rows: FetchPlan) {
        self.init(rows: rows, columns: [], grouping: nil, variableCount: 0)
    }
}

/// A read that goes on, for the row cache, until nobody holds this: so the cache keeps what saves in the meantime have
/// written or removed.
private final class LastingRead: Sendable {
    let store: OpenStore
    let read: RowCache.Read
    /// The commit count before the store was asked.
    let commits: UInt64

    init(_ store: OpenStore) {
        self.store = store
        store.forgetRowsOverwrittenByOthers()
        read = store.cache.beginRead()
        commits = store.cache.commits
    }

    deinit { store.cache.endRead(read) }
}

/// Rows that were read some time before objects are made of them.
struct ReadRows: Sendable {
    private let began: LastingRead
    private let root: Int
    private let rows: [Row]

    fileprivate init(_ store: OpenStore, _ plan: FetchPlan) throws {
        began = LastingRead(store)
        root = plan.layout.rootNumber
        var rows = try store.reader.rows(for: plan)
        store.offer(&rows, root: root, read: began.read)
        self.rows = rows
    }

    fileprivate init(_ store: OpenStore, forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl) throws
    {
        began = LastingRead(store)
        root = layout.rootNumber
        var rows = try store.reader.rows(forKeys: keys, in: layout, control)
        store.offer(&rows, root: root, read: began.read)
        self.rows = rows
    }

    /// The rows with the values of now, and the commit up to which they are the newest.
    ///
    /// - Returns: `nil` if a row has gone since, or the store has: then it has to be asked again.
    fileprivate func renewed() -> (rows: [Row], commits: UInt64)? {
        let store = began.store
        guard store.isOpen else { return nil }
        let commits = store.cache.commits
        guard commits != began.commits else { return (rows, commits) }
        var rows = rows
        return store.cache.renew(&rows, root: root, read: began.read) ? (rows, commits) : nil
    }
}

/// References that were read some time before objects are made of them.
struct ReadReferences: Sendable {
    private let began: LastingRead
    private let root: Int
    private let references: [ObjectReference]

    fileprivate init(_ store: OpenStore, _ plan: FetchPlan) throws {
        began = LastingRead(store)
        root = plan.layout.rootNumber
        references = try store.reader.references(for: plan)
    }

    /// The references, if all of their rows are there.
    ///
    /// - Returns: `nil` as ``ReadRows/renewed()``.
    fileprivate func renewed() -> [ObjectReference]? {
        let store = began.store
        guard store.isOpen else { return nil }
        guard store.cache.commits != began.commits else { return references }
        return store.cache.hasKept(references, root: root, since: began.read) ? references : nil
    }
}

/// Memberships that were read some time before relationships are loaded with them.
struct ReadMemberships: Sendable {
    private let began: LastingRead
    private let found: Memberships

    fileprivate init(
        _ store: OpenStore,
        _ slot: ToManySlot,
        _ owners: [ObjectReference],
        _ memberRoot: Int,
        _ control: FetchControl
    ) throws {
        began = LastingRead(store)
        var found = try store.reader.memberships(of: slot, ownedBy: owners, control)
        store.offer(&found.rows, root: memberRoot, read: began.read)
        self.found = found
    }

    /// The memberships, and the commit up to which they are the newest.
    ///
    /// - Returns: `nil` if anything was saved since: nobody has noted which memberships that has changed.
    fileprivate func renewed() -> (found: Memberships, commits: UInt64)? {
        guard began.store.isOpen, began.store.cache.commits == began.commits else { return nil }
        return (found, began.commits)
    }
}
