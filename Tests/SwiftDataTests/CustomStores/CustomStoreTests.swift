import CoreData
import Expectations
import Foundation
import SwiftData
import Testing

@Suite("SwiftData: custom stores")
struct CustomStoreTests {
    let probe = StoreProbe()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("swiftdata-\(UUID().uuidString).json")

    private var configuration: JSONConfiguration { JSONConfiguration(file: file, probe: probe) }

    private func container() throws -> ModelContainer {
        try ModelContainer(for: Binder.self, Memo.self, Page.self, configurations: configuration)
    }

    /// A container with a binder of two notes, one of which is a memo, and a label of both.
    private func filled() throws -> ModelContainer {
        let container = try container()
        let context = ModelContext(container)
        let binder = Binder(title: "Work")
        let note = Slip("first")
        note.rank = .high
        note.spot = Spot(city: "Rome", floor: 2, tags: ["a"])
        note.words = ["x", "y"]
        note.written = Date(timeIntervalSinceReferenceDate: 0.1)
        note.size = .infinity
        binder.notes = [note, Memo("second", at: "there")]
        let label = Sticker("both")
        label.color = "red"
        label.notes = binder.notes
        context.insert(binder)
        context.insert(label)
        note.size = 0.1
        try context.save()
        _ = probe.calls()
        return container
    }

    private func notes(_ context: ModelContext) throws -> [Slip] {
        try context.fetch(FetchDescriptor<Slip>(sortBy: [SortDescriptor(\.text)]))
    }

    // MARK: - Objects

    @Test func `objects of all kinds of values come back in another container`() throws {
        try withExtendedLifetime(filled()) { _ in }
        let context = ModelContext(try container())
        let binder = try require(try context.fetch(FetchDescriptor<Binder>()).first)
        expectEqual(binder.title, "Work")
        let notes = binder.notes.sorted { $0.text < $1.text }
        expectEqual(notes.map(\.text), ["first", "second"])
        expectEqual(notes[0].rank, .high)
        expectEqual(notes[0].spot, Spot(city: "Rome", floor: 2, tags: ["a"]))
        expectEqual(notes[0].words, ["x", "y"])
        expectEqual(notes[0].written, Date(timeIntervalSinceReferenceDate: 0.1))
        expectEqual(notes[0].size, 0.1)
        expectEqual(notes[1].spot, nil)
        expectEqual((notes[1] as? Memo)?.place, "there")
        expect(notes.allSatisfy { $0.binder === binder })
        expectEqual(notes.map { $0.labels.map(\.name) }, [["both"], ["both"]])
        expectEqual(notes[0].labels.first?.color, "red")
        expectEqual(Set(notes[0].labels.first?.notes.map(\.text) ?? []), ["first", "second"])
    }

    @Test func `a new object has a temporary identifier until the store gives it one`() throws {
        let context = ModelContext(try container())
        let page = Page(number: 1)
        let first = page.persistentModelID
        context.insert(page)
        expectEqual(page.persistentModelID, first)
        expect(first.isTemporary)
        probe.change { $0.failure = CocoaError(.fileWriteOutOfSpace) }
        #expect(throws: CocoaError.self) { try context.save() }
        expectEqual(page.persistentModelID, first)
        expect(context.registeredModel(for: first) as Page? === page)
        probe.change { $0.failure = nil }
        try context.save()
        let identifier = page.persistentModelID
        expect(!identifier.isTemporary)
        expectEqual(identifier.storeIdentifier, "the file " + file.lastPathComponent)
        expectEqual(context.container.storeIdentifier(forConfigurationNamed: "json"), identifier.storeIdentifier)
        expect(context.registeredModel(for: identifier) as Page? === page)
        expect(context.model(for: identifier) === page)

        let coded = try JSONDecoder().decode(PersistentIdentifier.self, from: JSONEncoder().encode(identifier))
        let other = ModelContext(try container())
        expectEqual((other.model(for: coded) as? Page)?.number, 1)
    }

    @Test func `changes and deletions are written with the delete rules`() throws {
        let context = ModelContext(try filled())
        let notes = try notes(context)
        notes[0].text = "changed"
        context.delete(notes[1])
        _ = probe.calls()
        try context.save()
        expectEqual(probe.calls().filter { $0.hasPrefix("save") }, ["save 0 new, 3 changed, 1 deleted"])
        var other = ModelContext(try container())
        expectEqual(try self.notes(other).map(\.text), ["changed"])
        expectEqual(try other.fetch(FetchDescriptor<Sticker>()).first?.notes.map(\.text), ["changed"])

        context.delete(try require(try context.fetch(FetchDescriptor<Binder>()).first))
        try context.save()
        other = ModelContext(try container())
        expectEqual(try other.fetchCount(FetchDescriptor<Slip>()), 0)
        expectEqual(try other.fetch(FetchDescriptor<Sticker>()).first?.notes.count, 0)
    }

    @Test func `a deletion by a condition comes with the save`() throws {
        let context = ModelContext(try filled())
        try context.delete(model: Slip.self, where: #Predicate { $0.text == "first" })
        expectEqual(try ModelContext(context.container).fetchCount(FetchDescriptor<Slip>()), 2)
        try context.save()
        expectEqual(try ModelContext(context.container).fetchCount(FetchDescriptor<Slip>()), 1)
    }

    // MARK: - Fetching

    @Test func `predicates and sorting that the store prefers in memory are evaluated here`() throws {
        let context = ModelContext(try filled())
        let work = "Work"
        var descriptor = FetchDescriptor<Slip>(
            predicate: #Predicate { $0.binder?.title == work && $0.text != "third" },
            sortBy: [SortDescriptor(\.text, order: .reverse)]
        )
        expectEqual(try context.fetch(descriptor).map(\.text), ["second", "first"])
        expect(probe.calls().starts(with: ["fetch Slip where", "fetch Slip"]))
        descriptor.fetchOffset = 1
        expectEqual(try context.fetch(descriptor).map(\.text), ["first"])
        descriptor.fetchOffset = nil
        descriptor.fetchLimit = 1
        expectEqual(try context.fetch(descriptor).map(\.text), ["second"])
        expectEqual(try context.fetchCount(FetchDescriptor<Slip>(predicate: #Predicate { $0.text == "first" })), 1)
        let high = Rank.high
        expectEqual(
            try context.fetch(FetchDescriptor(predicate: #Predicate<Slip> { $0.rank == high })).map(\.text),
            ["first"]
        )
        expectEqual(try context.fetch(FetchDescriptor<Memo>()).map(\.text), ["second"])
        expectEqual(
            try context.fetch(FetchDescriptor(predicate: #Predicate<Slip> { $0 is Memo })).map(\.text),
            ["second"]
        )

        // Unsaved changes count as they do in other stores.
        let note = try require(try context.fetch(descriptor).first)
        note.text = "third"
        context.insert(Slip("new"))
        descriptor.fetchLimit = nil
        expectEqual(try context.fetch(descriptor).map(\.text), ["first"])
        descriptor.includePendingChanges = false
        expectEqual(try context.fetch(descriptor).count, 2)
        expectEqual(try context.fetch(descriptor, batchSize: 1).map(\.text), ["third", "first"])
    }

    @Test func `an object is found by its identifier`() throws {
        let context = ModelContext(try filled())
        let identifier = try require(try notes(context).first).persistentModelID
        let found = try ModelContext(context.container).fetch(
            FetchDescriptor<Slip>(predicate: #Predicate { $0.persistentModelID == identifier })
        )
        expectEqual(found.map(\.text), ["first"])
        expectEqual(found.map(\.persistentModelID), [identifier])
        expectEqual(
            try context.fetchIdentifiers(FetchDescriptor<Slip>(sortBy: [SortDescriptor(\.text)])).first,
            identifier
        )
    }

    @Test func `what the store does not support is an error`() throws {
        let context = ModelContext(try filled())
        for lie in [StoreProbe.Lie.noPredicates, .noSorting] {
            probe.change { $0.lie = lie }
            #expect(throws: DataStoreError.unsupportedFeature) { try context.fetch(FetchDescriptor<Slip>()) }
            #expect(throws: DataStoreError.unsupportedFeature) { try context.fetchCount(FetchDescriptor<Slip>()) }
        }
    }

    @Test func `an object that was not fetched is read when it is used`() throws {
        try withExtendedLifetime(filled()) { _ in }
        for (hasCache, calls) in [(false, ["fetch Binder where", "fetch Binder"]), (true, ["cached 1"])] {
            probe.change { $0.hasCache = hasCache }
            let context = ModelContext(try container())
            let identifier = try require(try notes(context).first?.binder?.persistentModelID)
            _ = probe.calls()
            let binder = try require(context.model(for: identifier) as? Binder)
            expectEqual(binder.title, "Work")
            expectEqual(probe.calls(), calls)
        }
        // Objects that came with the fetch of others are there already.
        probe.change {
            $0.bringsRelated = true
            $0.hasCache = true
        }
        let context = ModelContext(try container())
        let note = try require(try notes(context).first)
        _ = probe.calls()
        expectEqual(note.binder?.title, "Work")
        expectEqual(note.labels.map(\.name), ["both"])
        expectEqual(probe.calls(), [])
    }

    @Test func `a fetch brings what another program has written`() throws {
        let context = ModelContext(try filled())
        let notes = try notes(context)
        expectEqual(notes.map(\.text), ["first", "second"])
        notes[1].size = 3
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let written = text.replacingOccurrences(of: "first", with: "1st").replacingOccurrences(
            of: "second",
            with: "2nd"
        )
        try Data(written.utf8).write(to: file)
        _ = try self.notes(context)
        expectEqual(notes[0].text, "1st")
        expectEqual(notes[1].size, 3)
        try context.save()
        expectEqual(try self.notes(ModelContext(try container())).map(\.text), ["1st", "2nd"])
    }

    // MARK: - Contexts

    @Test func `contexts follow each other's saves, and unsaved changes win property by property`() throws {
        let container = try filled()
        let (one, two) = (ModelContext(container), ModelContext(container))
        let (first, second) = (try notes(one)[0], try notes(two)[0])
        first.text = "one"
        second.size = 7
        try one.save()
        expectEqual(second.text, "one")
        expectEqual(second.size, 7)
        try two.save()
        expectEqual([first.text, "\(first.size)"], ["one", "7.0"])
        let read = try notes(ModelContext(try self.container()))[0]
        expectEqual([read.text, "\(read.size)"], ["one", "7.0"])
    }

    @Test func `members that two contexts have added are all kept`() throws {
        let container = try filled()
        let (one, two) = (ModelContext(container), ModelContext(container))
        let first = try require(try one.fetch(FetchDescriptor<Binder>()).first)
        let second = try require(try two.fetch(FetchDescriptor<Binder>()).first)
        expectEqual([first.notes.count, second.notes.count], [2, 2])
        let third = Slip("third")
        third.binder = first
        second.notes.append(Slip("fourth"))
        try one.save()
        try two.save()
        let read = try require(try ModelContext(try self.container()).fetch(FetchDescriptor<Binder>()).first)
        expectEqual(read.notes.map(\.text).sorted(), ["first", "fourth", "second", "third"])
        expectEqual(first.notes.count, 4)
    }

    @Test func `members that another context adds at the beginning of a save are kept`() throws {
        let container = try filled()
        let (one, two) = (ModelContext(container), ModelContext(container))
        let first = try require(try one.fetch(FetchDescriptor<Binder>()).first)
        let second = try require(try two.fetch(FetchDescriptor<Binder>()).first)
        expectEqual([first.notes.count, second.notes.count], [2, 2])
        nonisolated(unsafe) let (binder, context) = (first, one)
        let observer = NotificationCenter.default.addObserver(forName: ModelContext.willSave, object: two, queue: nil) {
            _ in
            Slip("third").binder = binder
            do { try context.save() } catch { expect(false, "\(error)") }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        second.notes.append(Slip("fourth"))
        try two.save()
        let read = try require(try ModelContext(try self.container()).fetch(FetchDescriptor<Binder>()).first)
        expectEqual(read.notes.map(\.text).sorted(), ["first", "fourth", "second", "third"])
    }

    @Test func `an object that another context has deleted is gone`() throws {
        let container = try filled()
        let (one, two) = (ModelContext(container), ModelContext(container))
        let (first, second) = (try notes(one)[0], try notes(two)[0])
        one.delete(first)
        try one.save()
        expectEqual(try notes(two).map(\.text), ["second"])
        expect(second.modelContext == nil || second.isDeleted || second.text == "first")
        expectEqual(first.text, "first")
    }

    @Test func `a roll-back gives up the changes`() throws {
        let context = ModelContext(try filled())
        let note = try notes(context)[0]
        note.text = "other"
        let new = Slip("new")
        context.insert(new)
        context.delete(try notes(context)[1])
        context.rollback()
        expectEqual(note.text, "first")
        expect(new.modelContext == nil && !context.hasChanges)
        expectEqual(new.text, "new")
        expectEqual(try notes(context).map(\.text), ["first", "second"])
    }

    @Test func `changes are undone and redone, also after a save`() throws {
        let context = ModelContext(try filled())
        let manager = CoreData.UndoManager()
        context.undoManager = manager
        let note = try notes(context)[0]
        note.text = "other"
        context.processPendingChanges()
        let binder = try require(note.binder)
        context.delete(binder)
        try context.save()
        manager.undo()
        expectEqual(try context.fetch(FetchDescriptor<Binder>()).map(\.title), ["Work"])
        manager.undo()
        try context.save()
        expectEqual(try notes(ModelContext(try container())).map(\.text), ["first", "second"])
        expectEqual(try ModelContext(try container()).fetch(FetchDescriptor<Binder>()).first?.notes.count, 2)
    }

    @Test func `a save that fails keeps the changes`() throws {
        let context = ModelContext(try filled())
        let note = try notes(context)[0]
        let before = try Data(contentsOf: file)
        note.text = "other"
        let page = Page(number: 5)
        context.insert(page)
        probe.change { $0.failure = CocoaError(.fileWriteOutOfSpace) }
        for _ in 0..<2 {
            do {
                try context.save()
                expect(false)
            } catch let error as CocoaError {
                expectEqual(error.code, .fileWriteOutOfSpace)
            }
            expect(context.hasChanges && note.hasChanges)
            expectEqual(try Data(contentsOf: file), before)
            expectEqual(context.insertedModelsArray.count, 1)
        }
        probe.change { $0.failure = nil }
        try context.save()
        expect(!context.hasChanges)
        let other = ModelContext(try container())
        expectEqual(try notes(other).map(\.text), ["other", "second"])
        expectEqual(try other.fetch(FetchDescriptor<Page>()).map(\.number), [5])
    }

    @Test func `an object that a failed save could not write leaves with a roll-back`() throws {
        let context = ModelContext(try filled())
        let page = Page(number: 5)
        context.insert(page)
        probe.change { $0.failure = CocoaError(.fileWriteOutOfSpace) }
        #expect(throws: CocoaError.self) { try context.save() }
        context.rollback()
        probe.change { $0.failure = nil }
        expect(page.persistentModelID.isTemporary && page.modelContext == nil)
        expectEqual(page.number, 5)
        // It was never in the store, so it joins the context of an object like a new one.
        let slip = Slip("late")
        context.insert(slip)
        probe.change { $0.failure = CocoaError(.fileWriteOutOfSpace) }
        #expect(throws: CocoaError.self) { try context.save() }
        context.rollback()
        probe.change { $0.failure = nil }
        slip.binder = try require(try context.fetch(FetchDescriptor<Binder>()).first)
        expect(slip.modelContext === context)
        context.insert(page)
        try context.save()
        expectEqual(try ModelContext(try container()).fetch(FetchDescriptor<Page>()).map(\.number), [5])
    }

    @Test func `the store may change what it saves`() throws {
        let container = try filled()
        let (context, other) = (ModelContext(container), ModelContext(container))
        let (note, seen) = (try notes(context)[0], try notes(other)[0])
        expectEqual(seen.text, "first")
        probe.change { $0.suffix = " (saved)" }
        note.text = "hello!"
        let page = Sticker("new!")
        context.insert(page)
        try context.save()
        expectEqual([note.text, page.name, seen.text], ["hello (saved)", "new (saved)", "hello (saved)"])
        expect(!context.hasChanges)
        note.size = 4
        try context.save()
        expectEqual(try notes(ModelContext(try self.container())).map(\.text).first, "hello (saved)")
    }

    @Test func `results that are observed follow saves`() throws {
        let container = try filled()
        let (context, other) = (ModelContext(container), ModelContext(container))
        let results = try ResultsObserver<Slip, Never>(
            filterBy: #Predicate { $0.text != "second" },
            sortBy: [SortDescriptor(\.text)],
            modelContext: context
        )
        expectEqual(results.results.map(\.text), ["first"])
        other.insert(Slip("a"))
        try other.save()
        expectEqual(results.results.map(\.text), ["a", "first"])
    }

    @Test func `notifications have the permanent identifiers`() throws {
        let context = ModelContext(try filled())
        let note = try notes(context)[0]
        note.text = "other"
        let page = Page(number: 1)
        context.insert(page)
        nonisolated(unsafe) var information: [AnyHashable: Any] = [:]
        let observer = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave,
            object: context,
            queue: nil
        ) {
            information = $0.userInfo ?? [:]
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try context.save()
        func identifiers(_ key: ModelContext.NotificationKey) -> Set<PersistentIdentifier>? {
            information[key.rawValue] as? Set<PersistentIdentifier>
        }
        expectEqual(identifiers(.insertedIdentifiers), [page.persistentModelID])
        expectEqual(identifiers(.updatedIdentifiers), [note.persistentModelID])
        expect(!page.persistentModelID.isTemporary)
    }

    // MARK: - Editors

    @Test func `the store knows the editors as long as their contexts live`() throws {
        let container = try filled()
        expectEqual(probe.current.editors.count, 0)
        do {
            let context = ModelContext(container)
            context.author = "Ada"
            expectEqual(probe.current.editors, [])
            _ = try notes(context)
            expectEqual(probe.current.editors, [context.editingState.id])
            expectEqual(probe.current.authors.last, "Ada")
            let other = ModelContext(container)
            _ = try notes(other)
            expectEqual(probe.current.editors.count, 2)
            expect(context.editingState.id != other.editingState.id)
        }
        expectEqual(probe.current.editors, [])
    }

    // MARK: - Wrong answers

    @Test(arguments: StoreProbe.Lie.allCases)
    func `a wrong answer is an error, and the context keeps its changes`(_ lie: StoreProbe.Lie) throws {
        let context = ModelContext(try filled())
        _ = try notes(context)
        probe.change { $0.lie = lie }
        let isFetch = "\(lie)".hasPrefix("found")
        if lie == .noPredicates || lie == .noSorting { return }
        func check(_ body: () throws -> Void) {
            do {
                try body()
                expect(false, "\(lie)")
            } catch let error as CocoaError {
                expectEqual(error.code, .persistentStoreOperation)
                expect(error.localizedDescription.contains("the file"), "\(error.localizedDescription)")
            } catch {
                expect(false, "\(error)")
            }
        }
        if isFetch {
            check { _ = try context.fetch(FetchDescriptor<Slip>()) }
        } else {
            context.insert(Slip("a"))
            context.insert(Slip("b"))
            check { try context.save() }
            expect(context.hasChanges)
            expectEqual(context.insertedModelsArray.count, 2)
        }
    }

    @Test func `a file that cannot be read is an error`() throws {
        try Data("{".utf8).write(to: file)
        do {
            _ = try container()
            expect(false)
        } catch let error as SwiftDataError {
            expectEqual(error, .loadIssueModelContainer)
        }
        var invalid = configuration
        invalid.isInvalid = true
        #expect(throws: CocoaError.self) { try ModelContainer(for: Page.self, configurations: invalid) }
        try Data("[]".utf8).write(to: file)
        #expect(throws: SwiftDataError.duplicateConfiguration) {
            try ModelContainer(for: Schema([Page.self]), configurations: [configuration, configuration])
        }
    }

    @Test func `a damaged value is an error, and nothing else is overwritten`() throws {
        let container = try filled()
        let context = ModelContext(container)
        let note = try notes(context)[0]
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        try Data(text.replacingOccurrences(of: "\"high\"", with: "\"none\"").utf8).write(to: file)
        let damaged = try Data(contentsOf: file)
        #expect(throws: (any Error).self) { try self.notes(context) }
        note.text = "other"
        #expect(throws: (any Error).self) { try context.save() }
        expectEqual(try Data(contentsOf: file), damaged)
        expect(context.hasChanges)
    }

    @Test func `an object with a value that cannot be read is not left out of a fetch`() throws {
        let container = try filled()
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        try Data(text.replacing(/"color":"[^"]*"/, with: "\"color\":\"AAAA\"").utf8).write(to: file)
        let context = ModelContext(container)
        let descriptor = FetchDescriptor<Sticker>(predicate: #Predicate { $0.name == "both" })
        for ask in [{ _ = try context.fetch(descriptor) }, { _ = try context.fetchCount(descriptor) }] {
            do {
                try ask()
                expect(false)
            } catch let error as CocoaError {
                expectEqual(error.code, .persistentStoreOperation)
                expect(error.localizedDescription.contains("color cannot be read"), "\(error.localizedDescription)")
            }
        }
    }

    // MARK: - Beside other stores

    @Test func `a custom store stands beside a file`() throws {
        var custom = configuration
        custom.schema = Schema([Page.self])
        let other = ModelConfiguration("notes", schema: Schema([Binder.self, Memo.self]), isStoredInMemoryOnly: true)
        let container = try ModelContainer(
            for: Schema([Binder.self, Memo.self, Page.self]),
            configurations: [custom, other]
        )
        expectEqual(container.configurations, [other])
        let context = ModelContext(container)
        let (page, note) = (Page(number: 3), Slip("x"))
        context.insert(page)
        context.insert(note)
        try context.save()
        expectEqual(page.persistentModelID.storeIdentifier, "the file " + file.lastPathComponent)
        expectEqual(
            container.configurationName(forStoreIdentifier: note.persistentModelID.storeIdentifier ?? ""),
            "notes"
        )
        expectEqual(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count, 1)
        let second = ModelConfiguration("more", isStoredInMemoryOnly: true)
        let several = try ModelContainer(
            for: Page.self,
            configurations: ModelConfiguration(isStoredInMemoryOnly: true),
            second
        )
        try several.erase()
        expectEqual(try ModelContext(several).fetchCount(FetchDescriptor<Page>()), 0)
        try container.erase()
        expect(probe.calls().contains("erase"))
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Page>()), 0)
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Slip>()), 0)
        let again = ModelContext(container)
        again.insert(Page(number: 4))
        try again.save()
        expectEqual(try ModelContext(container).fetch(FetchDescriptor<Page>()).map(\.number), [4])
    }

    @Test func `a store without a history says so`() throws {
        let context = ModelContext(try filled())
        #expect(throws: DataStoreError.unsupportedFeature) {
            try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        }
        #expect(throws: DataStoreError.unsupportedFeature) {
            try context.deleteHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        }
    }
}
