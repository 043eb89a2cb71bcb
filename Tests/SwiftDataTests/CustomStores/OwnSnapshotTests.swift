import Expectations
import Foundation
import SwiftData
import Testing

/// A snapshot of one class, as an app would write it.
struct PageSnapshot: DataStoreSnapshot {
    let persistentIdentifier: PersistentIdentifier
    var number: Int

    init(persistentIdentifier: PersistentIdentifier, number: Int) {
        self.persistentIdentifier = persistentIdentifier
        self.number = number
    }

    init(from: any BackingData, relatedBackingDatas: inout [PersistentIdentifier: any BackingData]) {
        guard let page = from as? any BackingData<Page>, let identifier = page.persistentModelID else {
            fatalError("only pages are stored")
        }
        self.init(persistentIdentifier: identifier, number: page.getValue(forKey: \.number))
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: DataStoreSnapshotCodingKey.self)
        persistentIdentifier = try container.decode(PersistentIdentifier.self, forKey: .persistentIdentifier)
        number = try container.decode(Int.self, forKey: .modeledProperty("number"))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: DataStoreSnapshotCodingKey.self)
        try container.encode(persistentIdentifier, forKey: .persistentIdentifier)
        try container.encode(number, forKey: .modeledProperty("number"))
    }

    func copy(
        persistentIdentifier: PersistentIdentifier,
        remappedIdentifiers: [PersistentIdentifier: PersistentIdentifier]?
    ) -> PageSnapshot { PageSnapshot(persistentIdentifier: persistentIdentifier, number: number) }
}

struct PageConfiguration: DataStoreConfiguration {
    typealias Store = PageStore
    var name = "pages"
    var schema: Schema?
    let probe = StoreProbe()

    static func == (left: PageConfiguration, right: PageConfiguration) -> Bool { left.probe === right.probe }

    func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A save of pages, as the store's history has it.
struct PageTransaction: HistoryTransaction {
    struct Insert: HistoryInsert {
        typealias Model = Page
        let changeIdentifier: Int
        let transactionIdentifier: Int
        let changedPersistentIdentifier: PersistentIdentifier
    }

    struct Token: HistoryToken {
        let tokenValue: Int?
        var id: Int { tokenValue ?? 0 }
        static func < (left: Token, right: Token) -> Bool { left.id < right.id }
    }

    let id: Int
    let timestamp: Date
    let changes: [HistoryChange]
    let storeIdentifier: String
    let author: String?
    var token: Token { Token(tokenValue: id) }
    var transactionIdentifier: Int { id }

    static func == (left: PageTransaction, right: PageTransaction) -> Bool { left.id == right.id }

    func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// A store in memory of one class, which sorts and cuts itself, filters by the number alone, and keeps a history.
final class PageStore: DataStore, DataStoreBatching, HistoryProviding {
    typealias Configuration = PageConfiguration
    typealias Snapshot = PageSnapshot

    let configuration: PageConfiguration
    let schema: Schema
    let identifier = "pages/1 ä"
    private var rows: [PersistentIdentifier: PageSnapshot] = [:]
    private var transactions: [PageTransaction] = []
    private var lastKey = 0
    private var lastTransaction = 0

    init(_ configuration: PageConfiguration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
        self.configuration = configuration
        schema = configuration.schema ?? Schema()
    }

    func fetch<T>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, PageSnapshot> {
        guard let descriptor = request.descriptor as? FetchDescriptor<Page> else {
            throw DataStoreError.unsupportedFeature
        }
        guard descriptor.predicate == nil else { throw DataStoreError.preferInMemoryFilter }
        var found = rows.values.sorted { $0.persistentIdentifier < $1.persistentIdentifier }
        if let order = descriptor.sortBy.first?.order {
            found.sort { order == .forward ? $0.number < $1.number : $0.number > $1.number }
        }
        found = Array(found.dropFirst(descriptor.fetchOffset ?? 0).prefix(descriptor.fetchLimit ?? found.count))
        return DataStoreFetchResult(descriptor: request.descriptor, fetchedSnapshots: found)
    }

    func fetchCount<T>(_ request: DataStoreFetchRequest<T>) throws -> Int {
        guard request.descriptor.predicate == nil else { throw DataStoreError.preferInMemoryFilter }
        configuration.probe.change { $0.calls.append("count") }
        return rows.count
    }

    func fetchIdentifiers<T>(_ request: DataStoreFetchRequest<T>) throws -> [PersistentIdentifier] {
        guard request.descriptor.predicate == nil else { throw DataStoreError.preferInMemoryFilter }
        guard request.descriptor.sortBy.isEmpty else { throw DataStoreError.preferInMemorySort }
        configuration.probe.change { $0.calls.append("identifiers") }
        return rows.keys.sorted()
    }

    func save(_ request: DataStoreSaveChangesRequest<PageSnapshot>) throws -> DataStoreSaveChangesResult<PageSnapshot> {
        var remapped: [PersistentIdentifier: PersistentIdentifier] = [:]
        lastTransaction += 1
        for new in request.inserted {
            lastKey += 1
            let identifier = try PersistentIdentifier.identifier(
                for: identifier,
                entityName: "Page",
                primaryKey: lastKey
            )
            remapped[new.persistentIdentifier] = identifier
            rows[identifier] = new.copy(persistentIdentifier: identifier, remappedIdentifiers: nil)
        }
        for changed in request.updated { rows[changed.persistentIdentifier] = changed }
        for old in request.deleted { rows[old.persistentIdentifier] = nil }
        transactions.append(
            PageTransaction(
                id: lastTransaction,
                timestamp: Date(),
                changes: remapped.values.sorted().enumerated().map {
                    .insert(
                        PageTransaction.Insert(
                            changeIdentifier: $0.offset,
                            transactionIdentifier: lastTransaction,
                            changedPersistentIdentifier: $0.element
                        )
                    )
                },
                storeIdentifier: identifier,
                author: request.editingState.author
            )
        )
        return DataStoreSaveChangesResult(
            for: identifier,
            remappedIdentifiers: remapped,
            historyToken: PageTransaction.Token(tokenValue: lastTransaction)
        )
    }

    func delete<T: PersistentModel>(_ request: DataStoreBatchDeleteRequest<T>) throws {
        guard request.predicate == nil, T.self == Page.self else { throw DataStoreError.unsupportedFeature }
        rows = [:]
    }

    static var historyType: PageTransaction.Type { PageTransaction.self }

    func fetchHistory(_ descriptor: HistoryDescriptor<PageTransaction>) throws -> [PageTransaction] {
        try transactions.filter { try descriptor.predicate?.evaluate($0) ?? true }
    }

    func deleteHistory(_ descriptor: HistoryDescriptor<PageTransaction>) throws {
        try transactions.removeAll { try descriptor.predicate?.evaluate($0) ?? true }
    }
}

/// A store that passes all requests on to a file of this library.
final class PassingStore: DataStore {
    struct Configuration: DataStoreConfiguration {
        typealias Store = PassingStore
        var name = "passing"
        var schema: Schema?
        var url: URL
    }

    typealias Snapshot = DefaultSnapshot
    let configuration: Configuration
    private let base: DefaultStore
    var schema: Schema { base.schema }
    var identifier: String { base.identifier }

    init(_ configuration: Configuration, migrationPlan: (any SchemaMigrationPlan.Type)?) throws {
        self.configuration = configuration
        let model = ModelConfiguration("base", schema: configuration.schema, url: configuration.url)
        base = try DefaultStore(model, migrationPlan: migrationPlan)
    }

    func fetch<T>(_ request: DataStoreFetchRequest<T>) throws -> DataStoreFetchResult<T, DefaultSnapshot> {
        try base.fetch(request)
    }

    func fetchCount<T>(_ request: DataStoreFetchRequest<T>) throws -> Int { try base.fetchCount(request) }

    func save(_ request: DataStoreSaveChangesRequest<DefaultSnapshot>) throws
        -> DataStoreSaveChangesResult<DefaultSnapshot>
    {
        try base.save(request)
    }

    func cachedSnapshots(
        for persistentIdentifiers: [PersistentIdentifier],
        editingState: EditingState
    ) throws -> [PersistentIdentifier: DefaultSnapshot] {
        try base.cachedSnapshots(for: persistentIdentifiers, editingState: editingState)
    }

    func erase() throws { try base.erase() }
}

extension PassingStore: HistoryProviding {
    static var historyType: DefaultHistoryTransaction.Type { DefaultHistoryTransaction.self }

    func fetchHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws -> [DefaultHistoryTransaction]
    {
        try base.fetchHistory(descriptor)
    }

    func deleteHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws {
        try base.deleteHistory(descriptor)
    }
}

@Suite("SwiftData: custom stores with snapshots and histories of their own")
struct OwnSnapshotTests {
    private func pages(_ numbers: [Int]) throws -> ModelContext {
        let context = ModelContext(try ModelContainer(for: Page.self, configurations: PageConfiguration()))
        context.author = "import"
        for number in numbers { context.insert(Page(number: number)) }
        try context.save()
        return context
    }

    @Test func `snapshots of a type of the program are used by their coded form`() throws {
        let context = try pages([3, 1, 2])
        let other = ModelContext(context.container)
        var descriptor = FetchDescriptor<Page>(sortBy: [SortDescriptor(\.number, order: .reverse)])
        expectEqual(try other.fetch(descriptor).map(\.number), [3, 2, 1])
        descriptor.fetchLimit = 2
        descriptor.fetchOffset = 1
        expectEqual(try other.fetch(descriptor).map(\.number), [2, 1])
        descriptor.predicate = #Predicate { $0.number != 2 }
        expectEqual(try other.fetch(descriptor).map(\.number), [1])
        expectEqual(try other.fetchCount(FetchDescriptor<Page>()), 3)
        let page = try require(try other.fetch(FetchDescriptor<Page>(predicate: #Predicate { $0.number == 3 })).first)
        page.number = 30
        try other.save()
        expectEqual(try context.fetch(FetchDescriptor<Page>()).map(\.number).sorted(), [1, 2, 30])
        context.delete(try require(context.model(for: page.persistentModelID) as? Page))
        try context.save()
        expectEqual(try other.fetch(FetchDescriptor<Page>()).map(\.number).sorted(), [1, 2])
    }

    @Test func `the store counts and finds identifiers itself where it can`() throws {
        let configuration = PageConfiguration()
        let context = ModelContext(try ModelContainer(for: Page.self, configurations: configuration))
        let pages = [3, 1, 2].map { Page(number: $0) }
        for page in pages { context.insert(page) }
        // New objects are no objects of the store.
        expectEqual(try context.fetchCount(FetchDescriptor<Page>()), 3)
        expectEqual(Set(try context.fetchIdentifiers(FetchDescriptor<Page>())), Set(pages.map(\.persistentModelID)))
        try context.save()
        _ = configuration.probe.calls()
        expectEqual(try context.fetchCount(FetchDescriptor<Page>()), 3)
        expectEqual(Set(try context.fetchIdentifiers(FetchDescriptor<Page>())), Set(pages.map(\.persistentModelID)))
        expectEqual(configuration.probe.calls(), ["count", "identifiers"])
        let large = #Predicate<Page> { $0.number > 1 }
        expectEqual(try context.fetchCount(FetchDescriptor(predicate: large)), 2)
        let sorted = FetchDescriptor(predicate: large, sortBy: [SortDescriptor(\.number)])
        expectEqual(try context.fetchIdentifiers(sorted), [pages[2], pages[0]].map(\.persistentModelID))
        expectEqual(configuration.probe.calls(), [])
        pages[1].number = 5
        expectEqual(try context.fetchCount(FetchDescriptor(predicate: large)), 3)
    }

    @Test func `a history of the store's own type is fetched and deleted`() throws {
        let context = try pages([1, 2])
        nonisolated(unsafe) var tokens: [String: any HistoryToken] = [:]
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave,
            object: context,
            queue: nil
        ) {
            let key = ModelContext.NotificationKey.historyTokens.rawValue
            tokens = $0.userInfo?[key] as? [String: any HistoryToken] ?? [:]
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        context.author = nil
        context.insert(Page(number: 3))
        try context.save()
        expectEqual((tokens["pages/1 ä"] as? PageTransaction.Token)?.tokenValue, 2)

        let all = try context.fetchHistory(HistoryDescriptor<PageTransaction>())
        expectEqual(all.map(\.author), ["import", nil])
        expectEqual(all.map(\.changes.count), [2, 1])
        let pages = try all.flatMap(\.changes).map { change in
            try require(context.model(for: change.changedPersistentIdentifier) as? Page).number
        }
        expectEqual(pages.sorted(), [1, 2, 3])
        let author = "import"
        var descriptor = HistoryDescriptor<PageTransaction>(predicate: #Predicate { $0.author == author })
        expectEqual(try context.fetchHistory(descriptor).map(\.id), [1])
        try context.deleteHistory(descriptor)
        descriptor = HistoryDescriptor(sortBy: [SortDescriptor(\.id, order: .reverse)])
        expectEqual(try context.fetchHistory(descriptor).map(\.id), [2])
        #expect(throws: DataStoreError.unsupportedFeature) {
            try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        }
    }

    @Test func `erasing is refused by a store that cannot do it`() throws {
        let context = try pages([1])
        #expect(throws: DataStoreError.unsupportedFeature) { try context.container.erase() }
        expectEqual(try context.fetchCount(FetchDescriptor<Page>()), 1)
    }

    @Test func `a store can pass requests on to a file`() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "swiftdata-\(UUID().uuidString)/a.store"
        )
        let schema = Schema([Binder.self, Memo.self, Page.self])
        do {
            let container = try ModelContainer(for: schema, configurations: [PassingStore.Configuration(url: url)])
            let context = ModelContext(container)
            context.author = "phone"
            let binder = Binder(title: "Work")
            let memo = Memo("m", at: "there")
            memo.words = ["a"]
            memo.rank = .high
            let label = Sticker("l")
            label.color = "red"
            memo.labels = [label]
            binder.notes = [Slip("n"), memo]
            context.insert(binder)
            try context.save()
            memo.text = "changed"
            context.delete(binder.notes.first { $0.text == "n" }!)
            try context.save()
            let found = try context.fetch(
                FetchDescriptor<Slip>(
                    predicate: #Predicate { $0.binder?.title == "Work" },
                    sortBy: [SortDescriptor(\.text)]
                )
            )
            expectEqual(found.map(\.text), ["changed"])
            expectEqual(try context.fetchCount(FetchDescriptor<Slip>()), 1)
            let history = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            expectEqual(history.map(\.author), ["phone", "phone"])
        }
        let container = try ModelContainer(for: schema, configurations: [ModelConfiguration(url: url)])
        let context = ModelContext(container)
        let memo = try require(try context.fetch(FetchDescriptor<Memo>()).first)
        expectEqual([memo.text, memo.place, memo.binder?.title], ["changed", "there", "Work"])
        expectEqual(memo.words, ["a"])
        expectEqual(memo.rank, .high)
        expectEqual(memo.labels.map(\.color), ["red"])
        expectEqual(memo.binder?.notes.count, 1)
    }

    @Test func `a default snapshot is coded by the names of the properties`() throws {
        let memo = Memo("m", at: "there")
        memo.words = ["a"]
        memo.spot = Spot(city: "Rome", floor: nil, tags: [])
        var related: [PersistentIdentifier: any BackingData] = [:]
        let snapshot = DefaultSnapshot(from: memo.persistentBackingData, relatedBackingDatas: &related)
        expectEqual(snapshot.persistentIdentifier, memo.persistentModelID)
        let data = try JSONEncoder().encode(snapshot)
        let object = try require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        expectEqual(
            Set(object.keys),
            ["persistentIdentifier", "text", "rank", "words", "spot", "size", "place", "labels"]
        )
        expectEqual(object["text"] as? String, "m")
        _ = Schema([Memo.self])
        let read = try JSONDecoder().decode(DefaultSnapshot.self, from: data)
        expectEqual(try JSONEncoder.sorted.encode(read), try JSONEncoder.sorted.encode(snapshot))

        // A property that is missing gets the initial value of the class, if it has one.
        func decode(without name: String) throws -> DefaultSnapshot {
            var partial = object
            partial[name] = nil
            return try JSONDecoder().decode(DefaultSnapshot.self, from: JSONSerialization.data(withJSONObject: partial))
        }
        let data2 = try JSONEncoder().encode(decode(without: "size"))
        expectEqual((try JSONSerialization.jsonObject(with: data2) as? [String: Any])?["size"] as? Double, 1.5)
        #expect(throws: DecodingError.self) { try decode(without: "text") }
        #expect(throws: DecodingError.self) { try decode(without: "persistentIdentifier") }
        expectEqual(DataStoreSnapshotCodingKey(stringValue: "text")?.stringValue, "text")
        expect(DataStoreSnapshotCodingKey(intValue: 1) == nil)
    }
}

extension JSONEncoder {
    fileprivate static var sorted: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }
}
