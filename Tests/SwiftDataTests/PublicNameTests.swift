import Expectations
import Foundation
import Testing

@testable import SwiftData

/// An actor as it is written without the macro.
private actor Clerk: ModelActor {
    nonisolated let modelExecutor: any ModelExecutor
    nonisolated let modelContainer: ModelContainer

    init(_ container: ModelContainer) {
        modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
        modelContainer = container
    }

    func add(_ name: String) throws -> Int {
        modelContext.insert(Sailor(name, badge: 1))
        try modelContext.save()
        return try modelContext.fetchCount(FetchDescriptor<Sailor>())
    }
}

/// A class at the end of a line of three.
@Model final class Barge: Ship {
    var load = 1
    init(to place: String) { super.init(name: "Barge \(place)") }
}

/// A class whose accessors are asked for by hand.
@Model final class Label {
    @_PersistedProperty var text: String
    @Attribute(.transformable(by: "ShadeTransformer")) var shade: Shade

    init(_ text: String, red: Double) {
        self.text = text
        shade = Shade(red: red)
    }
}

/// Lets a test call a method that is deprecated.
private protocol DataDeleting { func deleteAllData() }
extension ModelContainer: DataDeleting {}

/// The public names of Apple's framework that no other suite uses.
@Suite("SwiftData: public names")
struct PublicNameTests {
    private func context(_ names: String...) throws -> ModelContext {
        let context = ModelContext(try Place.memory.container())
        for (badge, name) in names.enumerated() {
            let sailor = Sailor(name, badge: badge)
            sailor.knots = [Knot(number: badge)]
            context.insert(sailor)
        }
        try context.save()
        return context
    }

    @Test func `an actor without the macro has an executor of its own`() async throws {
        let clerk = Clerk(try Place.memory.container())
        expectEqual(try await clerk.add("Ada"), 1)
        let executor = try require(clerk.modelExecutor as? any SerialModelExecutor)
        _ = executor.asUnownedSerialExecutor()
        _ = clerk.unownedExecutor
        expect(executor is DefaultSerialModelExecutor && executor.modelContext.container == clerk.modelContainer)
    }

    @Test func `errors have their names`() {
        let names: [(SwiftDataError, String)] = [
            (.backwardMigration, "backwardMigration"), (.historyTokenExpired, "historyTokenExpired"),
            (.missingModelContext, "missingModelContext"),
            (.sortingPendingChangesWithIdentifiers, "sortingPendingChangesWithIdentifiers"),
            (.unknownDataStoreSchema, "unknownDataStoreSchema"), (.unsupportedKeyPath, "unsupportedKeyPath"),
        ]
        for (error, name) in names { expectEqual(error.description, "SwiftDataError.\(name)") }
        expectEqual(Set(names.map(\.0)).count, names.count)
        expect(DataStoreError.invalidPredicate != DataStoreError.unsupportedFeature)
    }

    @Test func `a fetch loads some properties, and relationships beside them`() throws {
        let context = try context("Ada", "Bea")
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])
        descriptor.propertiesToFetch = [\.name]
        descriptor.relationshipKeyPathsForPrefetching = [\.knots, \.crew]
        let read = try ModelContext(context.container).fetch(descriptor)
        expectEqual(read.map { "\($0.name) \($0.badge) \($0.knots.map(\.number))" }, ["Ada 0 [0]", "Bea 1 [1]"])
    }

    @Test func `a fetch in batches is a collection`() throws {
        let context = try context("Ada", "Bea")
        var descriptor = FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)])
        descriptor.includePendingChanges = false
        let found: FetchResultsCollection<Sailor> = try context.fetch(descriptor, batchSize: 1)
        expectEqual([found.startIndex, found.endIndex], [0, 2])
        expectEqual(found[1].name, "Bea")
    }

    @Test func `each way to make an observer of results has the same results`() throws {
        typealias Plain = ResultsObserver<Sailor, Never>
        typealias Sectioned = ResultsObserver<Sailor, String>
        let context = try context("Ada", "Bea", "Cid")
        let container = context.container
        let filter = #Predicate<Sailor> { $0.badge < 2 }
        let order = [SortDescriptor(\Sailor.name, order: .reverse)]
        let fetch = FetchDescriptor(predicate: filter, sortBy: order)
        for observer in [
            try Plain(fetchDescriptor: fetch, modelContext: context),
            try Plain(filterBy: filter, sortBy: order, modelContext: context),
            try Plain(fetchDescriptor: fetch, modelContainer: container),
            try Plain(filterBy: filter, sortBy: order, modelContainer: container),
        ] {
            expectEqual(observer.results.map(\.name), ["Bea", "Ada"])
            expect(observer.sections == nil)
        }
        let (name, crew) = (\Sailor.name, \Sailor.crew?.name)
        for observer in [
            try Sectioned(fetchDescriptor: fetch, sectionBy: name, modelContext: context),
            try Sectioned(filterBy: filter, sortBy: order, sectionBy: name, modelContext: context),
            try Sectioned(fetchDescriptor: fetch, sectionBy: name, modelContainer: container),
            try Sectioned(filterBy: filter, sortBy: order, sectionBy: name, modelContainer: container),
            try Sectioned(fetchDescriptor: fetch, sectionBy: crew, modelContext: context),
            try Sectioned(filterBy: filter, sortBy: order, sectionBy: crew, modelContext: context),
            try Sectioned(fetchDescriptor: fetch, sectionBy: crew, modelContainer: container),
            try Sectioned(filterBy: filter, sortBy: order, sectionBy: crew, modelContainer: container),
        ] {
            let sections: SectionedResults<Sailor, String> = try require(observer.sections)
            let titles = observer.sectionBy == (name as PartialKeyPath<Sailor>) ? ["Bea", "Ada"] : [""]
            expectEqual(sections.sectionTitles, titles)
            expectEqual([sections.startIndex, sections.endIndex], [0, titles.count])
            let last: ResultsSection<Sailor, String> = sections[titles.count - 1]
            expectEqual([last.startIndex, last.endIndex], [0, 3 - titles.count])
            expectEqual(last[last.endIndex - 1].name, "Ada")
            expect(last == last && sections == sections)
        }
    }

    @Test func `transactions and changes are values`() throws {
        let context = try context("Ada")
        let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        expectEqual(Set(all + all), Set(all))
        expect(!all[0].processIdentifier.isEmpty && all[0].bundleIdentifier == all[0].bundleIdentifier)
        let sailor = try require(try context.fetch(FetchDescriptor<Sailor>()).first)
        sailor.name = "Bea"
        try context.save()
        context.delete(sailor)
        try context.save()
        let identifier = sailor.persistentModelID
        let changes = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).flatMap(\.changes)
            .filter { $0.changedPersistentIdentifier == identifier }
        for change in changes {
            switch change {
            case .insert(let insert as DefaultHistoryInsert<Sailor>): expectEqual(Set([insert, insert]).count, 1)
            case .update(let update as DefaultHistoryUpdate<Sailor>):
                expectEqual(Set([update, update]).count, 1)
                let keyPath: any DefaultHistoryUpdate<Sailor>.PropertyUpdate = \Sailor.name
                expectEqual(update.updatedAttributes.map { $0 as AnyKeyPath }, [keyPath])
                let general: any HistoryUpdate<Sailor> = update
                expectEqual(general.updatedAttributes.count, 1)
            case .delete(let delete as DefaultHistoryDelete<Sailor>): expectEqual(Set([delete, delete]).count, 1)
            default: Issue.record("\(change)")
            }
        }
        expectEqual(changes.count, 3)
        expect(DefaultHistoryTransaction.TokenType.self == DefaultHistoryToken.self)
        expect(DefaultHistoryTransaction.TransactionIdentifier.self == Int64.self)
        expect(DefaultHistoryToken.TokenType.self == [String: Int64].self)
        expect(DefaultStore.HistoryType.self == DefaultHistoryTransaction.self)
    }

    @Test func `identifiers have identifiers, and models have roots`() throws {
        let sailor = Sailor("Ada", badge: 1)
        let identifier: PersistentIdentifier.ID = sailor.persistentModelID.id
        expectEqual(identifier, sailor.persistentModelID.id)
        expectEqual(identifier.hashValue, sailor.persistentModelID.id.hashValue)
        expect(identifier != Sailor("Bea", badge: 2).persistentModelID.id)
        expect(Sailor.Root.self == Sailor.self)
        func element<Members: RelationshipCollection>(_: Members.Type) -> Any.Type { Members.PersistentElement.self }
        expect(element([Knot].self) == Knot.self && element([Knot]?.self) == Knot.self)
        let value: any DataStoreSnapshotValue = sailor.badge
        expectEqual(value as? Int, 1)
    }

    @Test func `an object is made of a backing`() throws {
        let data: any BackingData<Label> = Label.createBackingData()
        data.setValue(forKey: \.text, to: "a")
        data.setTransformableValue(forKey: \.shade, to: Shade(red: 0.5))
        expectEqual(data.getTransformableValue(forKey: \.shade).red, 0.5)
        let label = Label(backingData: data)
        expect(label.text == "a" && label.shade.red == 0.5)
        label.setTransformableValue(forKey: \.shade, to: Shade(red: 1))
        expectEqual(label.getTransformableValue(forKey: \.shade).red, 1)
        let empty = type(of: data).init(for: Label.self)
        empty.setValue(forKey: \.text, to: "b")
        expectEqual(empty.getValue(forKey: \.text), "b")
        let same: any BackingData<Label> = data._generateCurrentClassBackingData()
        expectEqual(same.getValue(forKey: \.text), "a")
        let ferry = Ferry(line: "c")
        let above: any BackingData<Craft> = ferry.persistentBackingData._superClassBackingData(of: Ferry.self)
        expectEqual(above.getValue(forKey: \.name), "FERRY C")
    }

    @Test func `a schema is made of metadata`() throws {
        let metadata: [Schema.PropertyMetadata] = Label.schemaMetadata
        expectEqual(metadata.map(\.name), ["text", "shade"])
        let made = Schema.PropertyMetadata(
            name: "text",
            keypath: \Label.text,
            defaultValue: "x",
            metadata: Schema.Attribute(.unique, originalName: "old", hashModifier: "2")
        )
        let attribute = try require(made.metadata as? Schema.Attribute)
        expect(made.name == "text" && made.keypath == \Label.text && made.defaultValue as? String == "x")
        expect(attribute.isUnique && attribute.originalName == "old" && attribute.hashModifier == "2")
        let hand = Schema.Attribute(
            name: "a",
            originalName: "b",
            options: [.externalStorage],
            valueType: Data.self,
            defaultValue: Data(),
            hashModifier: "3"
        )
        expect(hand.name == "a" && hand.originalName == "b" && hand.hashModifier == "3" && hand.defaultValue is Data)
        let composite = Schema.CompositeAttribute(
            name: "spot",
            originalName: "place",
            options: [],
            valueType: Spot.self,
            defaultValue: nil,
            hashModifier: nil
        )
        expect(composite.name == "spot" && composite.originalName == "place" && !composite.isTransient)
        let relation = Schema.Relationship(
            deleteRule: .cascade,
            minimumModelCount: 1,
            maximumModelCount: 3,
            originalName: "old",
            inverse: \Sailor.crew,
            hashModifier: "2"
        )
        expect(relation.deleteRule == .cascade && relation.minimumModelCount == 1 && relation.maximumModelCount == 3)
        expect(relation.inverseKeyPath == \Sailor.crew && relation.originalName == "old" && !relation.isTransient)
        let rules: [Schema.Relationship.DeleteRule] = [.cascade, .deny, .noAction, .nullify]
        expectEqual(rules.map { Schema.Relationship.DeleteRule(rawValue: $0.rawValue) }, rules)
        let unique = Schema.Unique<Sailor>([\.badge])
        expectEqual(unique.constraints, [[\Sailor.badge]])
        let binary: Schema.Index<Sailor>.Types<Sailor> = .binary([\.name])
        expectEqual(Schema.Index<Sailor>(binary).indices, [binary])
        expectEqual(Schema.Unique<Sailor>.CodingKeys.constraints.stringValue, "constraints")
        expectEqual(Schema.Index<Sailor>.CodingKeys.indices.stringValue, "indices")
    }

    @Test func `configurations name groups and clouds, and keys have raw values`() {
        let groups: [ModelConfiguration.GroupContainer] = [.automatic, .none, .identifier("a")]
        let clouds: [ModelConfiguration.CloudKitDatabase] = [.automatic, .none, .private("a")]
        expectEqual(groups.count, clouds.count)
        for key: ModelContext.NotificationKey in [
            .queryGeneration, .invalidatedAllIdentifiers, .historyTokens, .insertedIdentifiers, .updatedIdentifiers,
            .deletedIdentifiers,
        ] {
            expectEqual(ModelContext.NotificationKey(rawValue: key.rawValue), key)
        }
    }

    @Test func `the recorder of changes comes with the module`() throws {
        let context = try context("Ada")
        context.undoManager = UndoManager()
        let sailor = try require(try context.fetch(FetchDescriptor<Sailor>()).first)
        sailor.name = "Bea"
        context.processPendingChanges()
        context.undoManager?.undo()
        expectEqual(sailor.name, "Ada")
    }

    @Test func `the former name of a removal of all data`() throws {
        let context = try context("Ada")
        (context.container as any DataDeleting).deleteAllData()
        expectEqual(try ModelContext(context.container).fetchCount(FetchDescriptor<Sailor>()), 0)
    }

    @Test func `a version has three numbers, an order and a coded form`() throws {
        let versions = [(1, 10, 0), (1, 2, 3), (2, 0, 0), (1, 2, 4)].map { Schema.Version($0, $1, $2) }
        let numbers = versions.sorted().map { [$0.major, $0.minor, $0.patch] }
        expectEqual(numbers, [[1, 2, 3], [1, 2, 4], [1, 10, 0], [2, 0, 0]])
        let coded = try JSONDecoder().decode([Schema.Version].self, from: JSONEncoder().encode(versions))
        expect(coded == versions && Set(coded).count == 4 && versions[1] != versions[3])
    }

    @Test func `parts of schemas and configurations are compared`() {
        func configuration(_ name: String, allowsSave: Bool = true) -> ModelConfiguration {
            ModelConfiguration(
                name,
                allowsSave: allowsSave,
                groupContainer: .identifier("g"),
                cloudKitDatabase: .private("p")
            )
        }
        let made = configuration("a")
        expect(made.groupContainer == .identifier("g") && made.groupContainer != .none)
        expect(made.cloudKitDatabase == .private("p") && made.cloudKitDatabase != .automatic)
        expect(made == configuration("a") && made != configuration("b"))
        expect(made != configuration("a", allowsSave: false))
        expectEqual(Set([made, configuration("a"), configuration("b")]).count, 2)
        func relationship(_ rule: Schema.Relationship.DeleteRule) -> Schema.Relationship {
            Schema.Relationship(.unique, deleteRule: rule)
        }
        expect(relationship(.cascade) == relationship(.cascade) && relationship(.cascade) != relationship(.deny))
        expect(Schema.Relationship.Option.unique == .unique)
        expect(Schema.Attribute.Option.unique == .unique && Schema.Attribute.Option.unique != .ephemeral)
        expect(Schema.Index<Sailor>([\.name]) == Schema.Index<Sailor>([\.name]))
        expect(Schema.Index<Sailor>([\.name]) != Schema.Index<Sailor>([\.badge]))
        expect(Schema.Unique<Sailor>([\.name]) != Schema.Unique<Sailor>([\.name], [\.badge]))
        func composite(_ name: String) -> Schema.CompositeAttribute {
            Schema.CompositeAttribute(name: name, valueType: Spot.self)
        }
        expect(composite("a") == composite("a") && composite("a") != composite("b"))
        expect(SwiftDataError.unknownSchema == .unknownSchema && SwiftDataError.unknownSchema != .backwardMigration)
    }

    @Test func `each change of a history has an identifier`() throws {
        let context = try context("Ada", "Bea")
        let sailors = try context.fetch(FetchDescriptor<Sailor>(sortBy: [SortDescriptor(\.name)]))
        sailors[0].name = "Cid"
        context.delete(sailors[1])
        try context.save()
        let history = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        var identifiers: [Int64] = []
        for change in history.flatMap(\.changes) {
            switch change {
            case .insert(let insert as DefaultHistoryInsert<Sailor>): identifiers.append(insert.changeIdentifier)
            case .update(let update as DefaultHistoryUpdate<Sailor>): identifiers.append(update.changeIdentifier)
            case .delete(let delete as DefaultHistoryDelete<Sailor>): identifiers.append(delete.changeIdentifier)
            default: continue
            }
        }
        expectEqual(Set(identifiers).count, 4)
        expectEqual(identifiers.count, 4)
        let tokens = history.map(\.token)
        expect(tokens[0] == tokens[0] && tokens[0] != tokens[1] && tokens[0] < tokens[1])
        expectEqual(Set(tokens + tokens).count, tokens.count)
    }

    @Test func `a store of the library answers the requests of custom stores`() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "swiftdata-\(UUID().uuidString)/a.store"
        )
        let schema = Schema([Craft.self, Ship.self, Barge.self])
        let store = try DefaultStore(ModelConfiguration(schema: schema, url: file))
        expect(DefaultStore.historyType == DefaultHistoryTransaction.self)
        let editor = EditingState(id: UUID(), author: "Ada")
        store.initializeState(for: editor)
        var related: [PersistentIdentifier: any BackingData] = [:]
        let crafts: [Craft] = [Craft(name: "Raft"), Ship(name: "Ship"), Barge(to: "Porto")]
        let new = crafts.map { DefaultSnapshot(from: $0.persistentBackingData, relatedBackingDatas: &related) }
        let saved: DataStoreSaveChangesResult<DefaultSnapshot> = try store.save(
            DataStoreSaveChangesRequest(inserted: new, updated: [], deleted: [], editingState: editor)
        )
        expectEqual(saved.storeIdentifier, store.identifier)
        expectEqual(Set(saved.remappedIdentifiers.keys), Set(crafts.map(\.persistentModelID)))
        expect(saved.remappedIdentifiers.values.allSatisfy { !$0.isTemporary } && saved.snapshotsToReregister.isEmpty)
        expect((saved.historyToken as? DefaultHistoryToken)?.tokenValue?[store.identifier] != nil)

        func request(_ predicate: Predicate<Craft>? = nil) -> DataStoreFetchRequest<Craft> {
            DataStoreFetchRequest(
                editingState: editor,
                descriptor: FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)])
            )
        }
        let found: DataStoreFetchResult<Craft, DefaultSnapshot> = try store.fetch(request())
        let order = [crafts[2], crafts[0], crafts[1]].map { saved.remappedIdentifiers[$0.persistentModelID] }
        expectEqual(found.fetchedSnapshots.map(\.persistentIdentifier), order)
        expect(found.relatedSnapshots.isEmpty && found.descriptor == request().descriptor)
        expectEqual(try store.fetchIdentifiers(request()), order)
        expectEqual(try store.fetchCount(request(#Predicate { $0.name == "SHIP" })), 1)
        let ids = order.compactMap(\.self)
        expectEqual(Set(try store.cachedSnapshots(for: ids, editingState: editor).keys), Set(ids))

        func delete(_ type: any PersistentModel.Type, subclasses: Bool) throws {
            func delete<Model: PersistentModel>(_: Model.Type) throws {
                let request = DataStoreBatchDeleteRequest<Model>(
                    editingState: editor,
                    predicate: nil,
                    includeSubclasses: subclasses
                )
                expectEqual(request.includeSubclasses, subclasses)
                try store.delete(request)
            }
            try delete(type)
        }
        try delete(Ship.self, subclasses: false)
        expectEqual(try store.fetchIdentifiers(request()), [order[0], order[1]])
        try delete(Craft.self, subclasses: true)
        expect(try store.fetch(request()).fetchedSnapshots.isEmpty)
        expectEqual(
            try store.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).map(\.author),
            ["Ada", "Ada", "Ada"]
        )
        expect(DataStoreSnapshotCodingKey.modeledProperty("a").intValue == nil)
        store.invalidateState(for: editor)
    }
}
