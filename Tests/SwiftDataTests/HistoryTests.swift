import Dispatch
import Expectations
import Foundation
import Observation
import SwiftData
import Testing

@Suite("SwiftData: history")
struct ModelHistoryTests {
    @Test(arguments: Place.ownCases)
    func `saves are recorded with their author and their changes`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        context.author = "import"
        let sailor = Sailor("Ada", badge: 1)
        context.insert(sailor)
        try context.save()
        let identifier = sailor.persistentModelID
        context.author = nil
        sailor.name = "Bea"
        sailor.rank = .high
        try context.save()
        context.delete(sailor)
        try context.save()

        let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        expectEqual(all.map(\.author), ["import", nil, nil])
        expectEqual(all.map(\.changes.count), [1, 1, 1])
        expect(all.flatMap(\.changes).allSatisfy { $0.changedPersistentIdentifier == identifier })
        guard case .insert(let insert) = all[0].changes[0], case .update(let update) = all[1].changes[0],
            case .delete(let delete) = all[2].changes[0]
        else { return expect(false, "\(all.map(\.changes))") }
        expect(insert is DefaultHistoryInsert<Sailor> && delete is DefaultHistoryDelete<Sailor>)
        let changed = try require(update as? DefaultHistoryUpdate<Sailor>).updatedAttributes.map { $0 as AnyKeyPath }
        expectEqual(Set(changed), [\Sailor.name, \Sailor.rank])
        expect((delete as? DefaultHistoryDelete<Sailor>)?.tombstone[\.name] == nil)

        let (first, author) = (all[0].token, "import")
        let later = HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > first })
        expectEqual(try context.fetchHistory(later).map(\.id), all.dropFirst().map(\.id))
        let byAuthor = HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.author == author })
        expectEqual(try context.fetchHistory(byAuthor), [all[0]])
        var newest = HistoryDescriptor<DefaultHistoryTransaction>(sortBy: [
            SortDescriptor(\.transactionIdentifier, order: .reverse)
        ])
        newest.fetchLimit = 1
        expectEqual(try context.fetchHistory(newest).map(\.id), [all[2].id])
    }

    @Test(arguments: Place.ownCases)
    func `a transaction tells its store, its time and its process, and is found by them`(_ place: Place) throws {
        let container = try place.container()
        let context = ModelContext(container)
        let begin = Date.now
        for badge in 0..<3 {
            context.author = badge == 1 ? "import" : nil
            context.insert(Sailor("Ada", badge: badge))
            try context.save()
        }
        typealias Descriptor = HistoryDescriptor<DefaultHistoryTransaction>
        let all = try context.fetchHistory(Descriptor())
        let store = try require(container.storeIdentifier(forConfigurationNamed: "default"))
        expectEqual(Set(all.map(\.storeIdentifier)), [store])
        expect(all.allSatisfy { $0.timestamp >= begin.addingTimeInterval(-1) && $0.timestamp <= Date.now })
        expect(all.allSatisfy { !$0.processIdentifier.isEmpty })
        expectEqual(all.map(\.transactionIdentifier).sorted(), all.map(\.transactionIdentifier))
        expectEqual(all.map { $0.token.tokenValue }, all.map { [store: $0.transactionIdentifier] })
        let (time, first, last, author) = (all[1].timestamp, all[0].token, all[2].token, "import")
        expectEqual(
            try context.fetchHistory(Descriptor(predicate: #Predicate { $0.timestamp >= time })).map(\.id),
            all.filter { $0.timestamp >= time }.map(\.id)
        )
        let between = Descriptor(predicate: #Predicate { $0.token > first && $0.token < last && $0.author == author })
        expectEqual(try context.fetchHistory(between), [all[1]])
        let never = Date.distantFuture
        expect(try context.fetchHistory(Descriptor(predicate: #Predicate { $0.timestamp > never })).isEmpty)
    }

    @Test func `only the oldest transactions can be removed`() throws {
        let context = ModelContext(try Place.file.container())
        for badge in 0..<3 {
            context.insert(Sailor("Ada", badge: badge))
            try context.save()
        }
        let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        let (first, last) = (all[0].token, all[2].token)
        let error = expectThrows(SwiftDataError.self) {
            try context.deleteHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token == last })
            )
        }
        expectEqual(error, SwiftDataError.invalidTransactionFetchRequest)
        expectEqual(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count, 3)
        try context.deleteHistory(
            HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token == first })
        )
        expectEqual(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()), Array(all.dropFirst()))
        try context.deleteHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).isEmpty)
    }

    @Test func `a token is kept as text and compared`() throws {
        let context = ModelContext(try Place.file.container())
        for badge in 0..<2 {
            context.insert(Sailor("Ada", badge: badge))
            try context.save()
        }
        let tokens = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).map(\.token)
        let copy = try JSONDecoder().decode(DefaultHistoryToken.self, from: JSONEncoder().encode(tokens[0]))
        expect(copy == tokens[0] && copy < tokens[1] && !(tokens[1] < copy) && copy.id == tokens[0].id)
    }

    @Test(arguments: Place.ownCases)
    func `a token after which transactions were removed is refused, and one at the rest is not`(_ place: Place) throws {
        struct Progress: Codable, Sendable { var token: DefaultHistoryToken }
        let context = ModelContext(try place.container())
        for badge in 0..<4 {
            context.insert(Sailor("Ada", badge: badge))
            try context.save()
        }
        typealias Descriptor = HistoryDescriptor<DefaultHistoryTransaction>
        let all = try context.fetchHistory(Descriptor())
        let (first, second) = (Progress(token: all[0].token), all[1].token)
        try context.deleteHistory(Descriptor(predicate: #Predicate { $0.token <= second }))
        let rest = try context.fetchHistory(Descriptor(predicate: #Predicate { $0.token > second && $0.author == nil }))
        expectEqual(rest.map(\.id), all.suffix(2).map(\.id))
        let error = expectThrows(SwiftDataError.self) {
            _ = try context.fetchHistory(
                Descriptor(predicate: #Predicate { $0.author == nil && $0.token > first.token })
            )
        }
        expectEqual(error, .historyTokenExpired)
        let observed = expectThrows(SwiftDataError.self) {
            _ = try HistoryObserver(
                historyTokens: [first.token.storeIdentifier: first.token],
                modelContainer: context.container
            )
        }
        expectEqual(observed, .historyTokenExpired)
    }

    @Test(arguments: Place.ownCases)
    func `an observer counts on after transactions were removed before it had counted them`(_ place: Place) async throws
    {
        let context = ModelContext(try place.container())
        let observer = try HistoryObserver(modelContainer: context.container)
        let (reached, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        withObservationTracking {
            _ = observer.eventCounter
        } onChange: {
            // The observer's queue counts nothing more until the removal.
            reached.signal()
            goOn.wait()
        }
        func save(_ badge: Int) throws {
            context.insert(Sailor("Ada", badge: badge))
            try context.save()
        }
        try save(1)
        expect(await Task.detached { Self.wait(for: reached) }.value)
        try save(2)
        try context.deleteHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        goOn.signal()
        for _ in 0..<500 where observer.eventCounter < 2 { try await Task.sleep(for: .milliseconds(20)) }
        expectEqual(observer.eventCounter, 2)
        try save(3)
        for _ in 0..<500 where observer.eventCounter < 3 { try await Task.sleep(for: .milliseconds(20)) }
        expectEqual(observer.eventCounter, 3)
    }

    @Test(arguments: Place.ownCases)
    func `an observer counts on after the container was erased`(_ place: Place) async throws {
        let container = try place.container()
        let observer = try HistoryObserver(modelContainer: container)
        let imports = try HistoryObserver(authors: ["import"], modelContainer: container)
        func save(_ badge: Int, _ count: Int) async throws {
            let context = ModelContext(container)
            context.author = badge == 2 ? "import" : nil
            context.insert(Sailor("Ada", badge: badge))
            try context.save()
            for _ in 0..<500 where observer.eventCounter < count { try await Task.sleep(for: .milliseconds(20)) }
            expectEqual(observer.eventCounter, count)
        }
        try await save(1, 1)
        for round in 0..<2 {
            try container.erase()
            try await save(1, 2 + 2 * round)
            try await save(2, 3 + 2 * round)
        }
        for _ in 0..<500 where imports.eventCounter < 2 { try await Task.sleep(for: .milliseconds(20)) }
        expectEqual(imports.eventCounter, 2)
        let context = ModelContext(container)
        expectEqual(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count, 2)
        expectEqual(try context.fetchCount(FetchDescriptor<Sailor>()), 2)
    }

    @Test func `observers follow other containers of a store on after it was erased`() async throws {
        let configuration = (Place.hasDatabase ? Place.database : .file).configuration
        func container() throws -> ModelContainer {
            try ModelContainer(for: Sailor.self, configurations: configuration)
        }
        let here = ModelContext(try container())
        let results = try ResultsObserver<Sailor, Never>(sortBy: [SortDescriptor(\.name)], modelContext: here)
        let counter = try HistoryObserver(modelContainer: here.container)
        try here.container.erase()
        let there = ModelContext(try container())
        there.insert(Sailor("Bea", badge: 2))
        try there.save()
        for _ in 0..<500 where results.results.isEmpty || counter.eventCounter < 1 {
            try await Task.sleep(for: .milliseconds(20))
        }
        expectEqual(results.results.map(\.name), ["Bea"])
        expectEqual(counter.eventCounter, 1)
    }

    @Test(arguments: Place.ownCases)
    func `the history of one store is removed, and other stores keep theirs`(_ place: Place) throws {
        typealias Descriptor = HistoryDescriptor<DefaultHistoryTransaction>
        var (knots, parcels) = (place.configuration, place.configuration)
        (knots.schema, parcels.schema) = (Schema([Knot.self]), Schema([Parcel.self]))
        let container = try ModelContainer(for: Knot.self, Parcel.self, configurations: knots, parcels)
        let context = ModelContext(container)
        func save(_ model: any PersistentModel, _ author: String?) throws -> String {
            context.author = author
            context.insert(model)
            try context.save()
            return try require(model.persistentModelID.storeIdentifier)
        }
        let first = try save(Knot(number: 1), "import")
        let second = try save(Parcel("a", code: 1), nil)
        _ = try save(Knot(number: 2), "import")
        let before = try context.fetchHistory(Descriptor())
        expect(first != second && before.count == 3)

        let author = "import"
        try context.deleteHistory(Descriptor(predicate: #Predicate { $0.author == author }))

        let rest = before.filter { $0.storeIdentifier == second }
        expectEqual(try context.fetchHistory(Descriptor()), rest)
        // A reader of the other store has missed nothing.
        let token = try require(rest.first?.token)
        _ = try save(Parcel("b", code: 2), nil)
        _ = try save(Knot(number: 3), nil)
        let later = try context.fetchHistory(Descriptor(predicate: #Predicate { $0.token > token }))
        expectEqual(later.filter { $0.storeIdentifier == second }.count, 1)
        try context.deleteHistory(Descriptor(predicate: #Predicate { $0.storeIdentifier == first }))
        expectEqual(try context.fetchHistory(Descriptor()).map(\.storeIdentifier), [second, second])
        try context.deleteHistory(Descriptor())
        expectEqual(try context.fetchHistory(Descriptor()), [])
    }

    private static func wait(for semaphore: DispatchSemaphore) -> Bool {
        semaphore.wait(timeout: .now() + 30) == .success
    }
}
