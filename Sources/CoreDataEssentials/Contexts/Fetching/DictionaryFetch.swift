import Foundation
import StrataPredicates
import StrataRows

/// One fetch of dictionaries: it asks the stores, combines their answers, and makes dictionaries from them.
///
/// It reads what is stored; unsaved changes of the context do not count. It lives for one call.
struct DictionaryFetch {
    private let context: NSManagedObjectContext
    private let plan: DictionaryPlan
    private let stores: [OpenStore]
    /// The answers that stores have already given; `nil` to ask them now.
    private let prepared: PreparedReads?
    /// The predicate, for those who watch the reads.
    private let predicate: NSPredicate?

    init(
        context: NSManagedObjectContext,
        specification: FetchSpecification,
        affected: [NSPersistentStore]?,
        prepared: PreparedReads? = nil
    ) throws {
        context.assertCurrent("fetch(_:)")
        context.endEvent(isMerge: false)
        self.context = context
        self.prepared = prepared
        predicate = specification.predicate
        plan = try context.fetchPlanner().dictionaryPlan(specification)
        stores = try context.storesToAsk(plan.rows, affected)
    }

    /// Whether a request counts dictionaries, whose number may differ from that of the matching objects.
    static func decidesCount(of specification: FetchSpecification) -> Bool {
        switch specification.resultType {
        case .dictionaryResultType: true
        case .countResultType:
            specification.returnsDistinctResults && !(specification.propertiesToFetch ?? []).isEmpty
        default: false
        }
    }

    func count() throws -> Int {
        if stores.count == 1 {
            if let count = try prepared?.count(stores[0], plan) { return count }
            try context.willRead(announced)
            return try stores[0].reader.count(for: plan.asked(ofStore: stores[0].number))
        }
        guard plan.grouping == nil else { return try values().count }
        let plan = plan.rows
        return plan.windowed(
            try stores.reduce(0) { sum, store in
                if let count = try prepared?.count(store, plan.unordered) { return sum + count }
                try context.willRead(announced)
                return try sum + store.reader.count(for: plan.unordered.asked(ofStore: store.number))
            }
        )
    }

    private var announced: StoreRead { StoreRead(.fetch, plan.rows.layout, predicate: predicate) }

    /// The results as Swift dictionaries.
    func dictionaries() throws -> [[String: Any]] {
        let maker = DictionaryMaker(plan.columns, ValueBoxer(context, stores))
        guard stores.count == 1, prepared == nil, !maker.runsCode else {
            try values().give(to: maker)
            return maker.results
        }
        try context.willRead(announced)
        try stores[0].reader.values(for: plan.asked(ofStore: stores[0].number), to: maker)
        return maker.results
    }

    /// The results as Foundation dictionaries.
    func objects() throws -> [NSDictionary] {
        // An element of a composite attribute lies in a nested dictionary.
        guard plan.columns.allSatisfy({ $0.keys.count == 1 }) else {
            return try dictionaries().map { NSDictionary(dictionary: $0) }
        }
        let values = try values()
        let boxer = ValueBoxer(context, stores)
        // All results share their keys.
        let names = plan.columns.map { NSString(string: $0.keys[0]) }
        return (0..<values.count).map { row in
            var (keys, objects): ([NSObject], [Any]) = ([], [])
            for (index, value) in values[row].enumerated() {
                guard let value = boxer.box(value, plan.columns[index]) else { continue }
                keys.append(names[index])
                objects.append(value)
            }
            return NSDictionary(objects: objects, forKeys: keys)
        }
    }

    // MARK: - Stores

    private func values() throws -> FetchedValues {
        if stores.count == 1 { return try values(in: stores[0], plan) }
        guard let grouping = plan.grouping else { return try merged() }
        // The rows of a group may lie in several stores, so the groups are made here.
        var groups = try RowGroups(plan, grouping)
        let rows = plan.values(of: groups.leaves)
        for store in stores {
            let values = try values(in: store, rows)
            for row in 0..<values.count { groups.add(values[row]) }
        }
        return try plan.rows.evaluating { try groups.results() }
    }

    private func values(in store: OpenStore, _ plan: DictionaryPlan) throws -> FetchedValues {
        if let values = try prepared?.values(store, plan) { return values }
        try context.willRead(announced)
        return try store.reader.values(for: plan.asked(ofStore: store.number))
    }

    /// The results of several stores in one order; each store has returned no more than may be needed.
    private func merged() throws -> FetchedValues {
        let part = plan.firstPart
        var all: [(values: ArraySlice<FetchedValue>, keys: [PredicateValue])] = []
        for store in stores {
            let values = try values(in: store, part)
            for row in 0..<values.count {
                let result = values[row]
                all.append(
                    (result.prefix(plan.columns.count), result.dropFirst(plan.columns.count).map(\.comparable))
                )
            }
        }
        if let sort = plan.rows.sort {
            // Swift's sort is stable: equal results keep the order of their stores.
            all.sort { sort.compare($0.keys, $1.keys) == .orderedAscending }
        }
        var results = FetchedValues(width: plan.columns.count)
        for row in plan.window(all) { results.append(contentsOf: row.values) }
        return results
    }
}

extension NSManagedObjectContext {
    /// Fetches dictionaries in Swift's or in Foundation's type.
    final func dictionaries<T>(
        _ specification: FetchSpecification,
        from stores: [NSPersistentStore]?,
        prepared: PreparedReads?
    ) throws -> [T] {
        let fetch = try DictionaryFetch(
            context: self,
            specification: specification,
            affected: stores,
            prepared: prepared
        )
        guard T.self == [String: Any].self else {
            return try castEach(try fetch.objects(), specification)
        }
        // The types are the same, as the guard above has checked.
        return unsafeBitCast(try fetch.dictionaries(), to: [T].self)
    }

    /// Resolves fetches against the context's model.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the context has no coordinator.
    package final func fetchPlanner() throws -> FetchPlanner {
        guard coordinator != nil else {
            throw FetchPlanner.refused("\(describedName) has no persistentStoreCoordinator to fetch from.")
        }
        return FetchPlanner(model: model, control: fetchControl)
    }

    /// The open stores that may hold the requested objects, as the context sees them.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the coordinator has no store for the entity.
    final func storesToAsk(_ plan: FetchPlan, _ affected: [NSPersistentStore]?) throws -> [OpenStore] {
        guard let coordinator else { return [] }
        if isOneTooMany { throw coordinator.tooManyContexts(self) }
        if let pinned = try pinnedStoresForReading() { return try pinned.stores(for: plan, affected) }
        return try coordinator.openStores(for: plan, affected)
    }
}
