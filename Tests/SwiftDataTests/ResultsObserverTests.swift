import Expectations
import Foundation
import Observation
import StrataLocks
import SwiftData
import Testing

/// The number of times that something has changed.
private final class Changes: Sendable {
    private let count = Locked(0)
    var value: Int { count.withLock { $0 } }

    /// Observes what a block reads, until it changes for the first time.
    func observe(_ read: () -> Void) {
        withObservationTracking(read) { self.count.withLock { $0 += 1 } }
    }
}

@Suite("SwiftData: observers of results")
struct ResultsObserverTests {
    private func context(_ place: Place) throws -> ModelContext {
        let context = ModelContext(try place.container())
        for (badge, name) in ["Cid", "Ada", "Bea"].enumerated() {
            context.insert(Sailor(name, badge: badge))
        }
        try context.save()
        return context
    }

    @Test(arguments: Place.allCases)
    func `results follow the saves of the context and of others`(_ place: Place) throws {
        let context = try context(place)
        let observer = try ResultsObserver<Sailor, Never>(sortBy: [SortDescriptor(\.name)], modelContext: context)
        expectEqual(observer.results.map(\.name), ["Ada", "Bea", "Cid"])
        expect(observer.sections == nil && observer.sectionBy == nil && observer.modelContext === context)
        let changes = Changes()
        changes.observe { _ = observer.results }
        context.insert(Sailor("Abe", badge: 7))
        try context.save()
        expectEqual(changes.value, 1)
        expectEqual(observer.results.map(\.name), ["Abe", "Ada", "Bea", "Cid"])
        changes.observe { _ = observer.results }
        let other = ModelContext(context.container)
        let bea = try require(
            try other.fetch(FetchDescriptor<Sailor>(predicate: #Predicate { $0.name == "Bea" })).first
        )
        other.delete(bea)
        try other.save()
        expectEqual(observer.results.map(\.name), ["Abe", "Ada", "Cid"])
        expectEqual(changes.value, 2)
        // A change that leaves the list as it is concerns the object alone.
        changes.observe { _ = observer.results }
        observer.results[0].badge = 8
        try context.save()
        expectEqual(changes.value, 2)
        expect("\(observer.debugDescription)".contains("3 results"))
    }

    @Test(arguments: Place.allCases)
    func `a new condition or order is fetched, and one that stores lack is refused`(_ place: Place) throws {
        let observer = try ResultsObserver<Sailor, Never>(
            fetchDescriptor: FetchDescriptor(sortBy: [SortDescriptor(\.name)]),
            modelContext: context(place)
        )
        let changes = Changes()
        changes.observe { _ = observer.fetchDescriptor }
        observer.filterBy = #Predicate { $0.name < "C" }
        expectEqual(observer.results.map(\.name), ["Ada", "Bea"])
        observer.sortBy = [SortDescriptor(\.name, order: .reverse)]
        expectEqual(observer.results.map(\.name), ["Bea", "Ada"])
        expectEqual(changes.value, 1)
        observer.sortBy = [SortDescriptor(\.shout)]
        expectEqual(observer.refusal as? SwiftDataError, .unsupportedSortDescriptor)
        expectEqual(observer.results.map(\.name), ["Bea", "Ada"])
        observer.sortBy = []
        expect(observer.refusal == nil && observer.fetchDescriptor.sortBy.isEmpty)
        do {
            _ = try ResultsObserver<Sailor, Never>(
                sortBy: [SortDescriptor(\.shout)],
                modelContext: observer.modelContext
            )
            Issue.record("nothing was thrown")
        } catch SwiftDataError.unsupportedSortDescriptor {}
    }

    @Test(arguments: Place.allCases)
    func `sections have the titles of their results, in the order of the results`(_ place: Place) throws {
        let context = try context(place)
        let observer = try ResultsObserver<Sailor, String>(
            sortBy: [SortDescriptor(\.name)],
            sectionBy: \.crew?.name,
            modelContext: context
        )
        expectEqual(observer.sections?.sectionTitles, [""])
        let crew = Crew(name: "Night")
        let ada = try require(observer.element(at: IndexPath(indexes: [0, 0])))
        let changes = Changes()
        changes.observe { _ = observer.sections }
        ada.crew = crew
        try context.save()
        expect(changes.value > 0)
        let sections = try require(observer.sections)
        expectEqual(sections.map { $0.map(\.name) }, [["Ada"], ["Bea", "Cid"]])
        expectEqual(sections.map(\.id), ["Night", ""])
        expectEqual(sections[sectionTitle: "Night"]?.count, 1)
        expectEqual(sections.index(ofSectionTitled: ""), 1)
        expect(sections.contains(sectionTitle: "Night") && !sections.contains(sectionTitle: "Day"))
        let path = IndexPath(indexes: [1, 1])
        let cid = try require(observer.element(at: path))
        expectEqual(observer.indexPath(for: cid), path)
        expect(observer.element(at: IndexPath(indexes: [2, 0])) == nil)
        expect(observer.sections == sections)
        let short = try ResultsObserver<Sailor, String>(
            fetchDescriptor: FetchDescriptor(),
            sectionBy: \.name,
            modelContainer: context.container
        )
        expectEqual(Set(short.sections?.sectionTitles ?? []), ["Ada", "Bea", "Cid"])
    }

    @Test(arguments: Place.allCases)
    @MainActor func `in the main actor the main context is followed`(_ place: Place) throws {
        let container = try place.container()
        let observer = try ResultsObserver<Sailor, Never>(modelContainer: container)
        expect(observer.modelContext === container.mainContext)
        expect(observer.results.isEmpty)
    }

    @Test(arguments: Place.ownCases)
    func `a history observer counts what its authors change in its classes`(_ place: Place) async throws {
        let context = try context(place)
        let container = context.container
        let observer = try HistoryObserver(
            observedModels: [Sailor.self],
            authors: ["import"],
            modelContainer: container
        )
        let all = try HistoryObserver(
            historyTokens: [
                try require(container.storeIdentifier(forConfigurationNamed: "default")): try DefaultToken.none
            ],
            modelContainer: container
        )
        expectEqual([observer.eventCounter, all.eventCounter], [0, 1])
        let changes = Changes()
        changes.observe { _ = observer.eventCounter }
        context.insert(Sailor("Dan", badge: 9))
        try context.save()
        context.author = "import"
        context.insert(Knot(number: 1))
        try context.save()
        context.insert(Sailor("Eve", badge: 10))
        try context.save()
        for _ in 0..<200 where all.eventCounter < 4 || observer.eventCounter < 1 {
            try await Task.sleep(for: .milliseconds(20))
        }
        expectEqual([observer.eventCounter, all.eventCounter, changes.value], [1, 4, 1])
        expect(observer.modelContainer == container && observer.authors == ["import"])
        expectEqual(observer.observedModels.count, 1)
    }

    @Test func `results and counters follow what other containers of a store save, as another process would`()
        async throws
    {
        let configuration = (Place.hasDatabase ? Place.database : .file).configuration
        func container() throws -> ModelContainer {
            try ModelContainer(for: Sailor.self, configurations: configuration)
        }
        let (here, there) = (ModelContext(try container()), ModelContext(try container()))
        let sailor = Sailor("Ada", badge: 1)
        here.insert(sailor)
        try here.save()
        let observer = try ResultsObserver<Sailor, Never>(sortBy: [SortDescriptor(\.name)], modelContext: here)
        let counter = try HistoryObserver(observedModels: [Sailor.self], modelContainer: here.container)
        let changes = Changes()
        changes.observe { _ = sailor.years }
        try require(try there.fetch(FetchDescriptor<Sailor>()).first).age(by: 4)
        there.insert(Sailor("Bea", badge: 2))
        try there.save()
        for _ in 0..<500 where observer.results.count < 2 || counter.eventCounter < 1 {
            try await Task.sleep(for: .milliseconds(20))
        }
        expectEqual(observer.results.map(\.name), ["Ada", "Bea"])
        expectEqual([counter.eventCounter, changes.value, sailor.years], [1, 1, 7])
    }

    /// Tokens of the default kind.
    private enum DefaultToken {
        /// The place before the first transaction.
        static var none: DefaultHistoryToken {
            get throws { try JSONDecoder().decode(DefaultHistoryToken.self, from: Data("{}".utf8)) }
        }
    }

    @Test func `identifiers are fetched in batches, and a context has an editor`() throws {
        let context = try context(.memory)
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])
        descriptor.includePendingChanges = false
        let identifiers = try context.fetchIdentifiers(descriptor, batchSize: 2)
        expectEqual(Array(identifiers), try context.fetch(descriptor).map(\.persistentModelID))
        context.author = "a"
        expect(context.editingState.author == "a" && context.editingState.id == context.editingState.id)
        let other = ModelContext(context.container)
        expect(other.editingState.id != context.editingState.id && other != context && context == context)
    }
}
