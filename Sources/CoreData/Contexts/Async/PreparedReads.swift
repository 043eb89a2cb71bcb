/// What stores have answered, off the context's queue, to a fetch that is put together inside its scope.
///
/// The fetch is simply made again each time an answer has come: it throws ``Unanswered`` for the next read that it
/// needs, until it needs none. So whatever changes in the context in the meantime, pending changes above all, is seen by
/// the fetch as by one that reads for itself. Confined to the context's scope.
final class PreparedReads {
    /// One read, told from the others of the same fetch by what distinguishes them.
    struct Question: Hashable, Sendable {
        enum Kind { case rows, references, count }

        let kind: Kind
        let store: Int
        let isFiltered: Bool
        let isSorted: Bool
        let limit: Int
        let offset: Int

        fileprivate init(_ kind: Kind, _ store: OpenStore, _ plan: FetchPlan) {
            self.kind = kind
            self.store = store.slot
            isFiltered = plan.predicate != nil
            isSorted = plan.sort != nil
            limit = plan.limit
            offset = plan.offset
        }
    }

    /// What a store has said.
    enum Answer: Sendable {
        case rows(ReadRows)
        case references([ObjectReference])
        case count(Int)
    }

    /// The fetch needs a read that was not made yet.
    struct Unanswered: Error, @unchecked Sendable {
        // @unchecked Sendable: a plan is a constant, whose resolved predicate nobody changes.
        let question: Question
        private let store: OpenStore
        private let plan: FetchPlan

        fileprivate init(_ kind: Question.Kind, _ store: OpenStore, _ plan: FetchPlan) {
            question = Question(kind, store, plan)
            self.store = store
            self.plan = plan
        }

        /// Asks the store; on any thread.
        func ask(_ control: FetchControl) throws -> Answer {
            var plan = plan.asked(of: store)
            plan.control = control
            switch question.kind {
            case .rows: return .rows(try ReadRows(store, plan))
            case .references: return .references(try store.store.references(for: plan))
            case .count: return .count(try store.store.count(for: plan))
            }
        }
    }

    private var answers: [Question: Answer] = [:]

    func enter(_ answer: Answer, to question: Question) { answers[question] = answer }

    var isEmpty: Bool { answers.isEmpty }

    /// Forgets what the stores have said.
    func removeAll() { answers = [:] }

    // MARK: - As the fetch asks

    /// The rows that a plan gives, and the commit up to which they are the newest.
    func rows(_ store: OpenStore, _ plan: FetchPlan) throws -> (rows: [Row], commits: UInt64) {
        let unanswered = Unanswered(.rows, store, plan)
        guard case .rows(let read) = answers[unanswered.question], let rows = read.renewed() else { throw unanswered }
        return rows
    }

    func references(_ store: OpenStore, _ plan: FetchPlan) throws -> [ObjectReference] {
        let unanswered = Unanswered(.references, store, plan)
        guard case .references(let references) = answers[unanswered.question] else { throw unanswered }
        return references
    }

    func count(_ store: OpenStore, _ plan: FetchPlan) throws -> Int {
        let unanswered = Unanswered(.count, store, plan)
        guard case .count(let count) = answers[unanswered.question] else { throw unanswered }
        return count
    }
}

/// Rows that were read some time before objects are made of them.
///
/// For the row cache the read goes on until then, so that the cache keeps what saves in the meantime have written or removed.
final class ReadRows: Sendable {
    private let store: OpenStore
    private let root: Int
    private let rows: [Row]
    private let commits: UInt64
    private let read: RowCache.Read

    fileprivate init(_ store: OpenStore, _ plan: FetchPlan) throws {
        self.store = store
        root = plan.layout.rootNumber
        read = store.cache.beginRead()
        commits = store.cache.commits
        do {
            var rows = try store.store.rows(for: plan)
            store.cache.offer(&rows, root: root, read: read)
            self.rows = rows
        } catch {
            store.cache.endRead(read)
            throw error
        }
    }

    deinit { store.cache.endRead(read) }

    /// The rows with the values of now, and the commit up to which they are the newest.
    ///
    /// Gives: `nil` if a row has gone since, or the store has: then it has to be asked again.
    fileprivate func renewed() -> (rows: [Row], commits: UInt64)? {
        guard store.isOpen else { return nil }
        let commits = store.cache.commits
        guard commits != self.commits else { return (rows, commits) }
        var rows = rows
        return store.cache.renew(&rows, root: root, read: read) ? (rows, commits) : nil
    }
}
