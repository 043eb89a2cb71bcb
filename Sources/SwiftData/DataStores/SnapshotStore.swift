import CoreData
import Foundation
import StrataLocks

/// The store by which Core Data uses a store of the program.
///
/// Contexts see rows, faults and saves as in any other store. This one asks the ``DataStore`` for snapshots and gives it
/// some. All calls of the store happen while the caller has the turn of this store.
final class SnapshotStore: NSIncrementalStore, @unchecked Sendable {
    // @unchecked Sendable: as its superclass; what changes is used by the holder of the turn, or locked.

    static let storeType = "SwiftData.DataStore"
    static let connectionOption = "SwiftData.StoreConnection"
    static let isRegistered: Void = NSPersistentStoreCoordinator.registerStoreClass(
        SnapshotStore.self,
        type: NSPersistentStore.StoreType(rawValue: storeType)
    )

    private let identifiers = StoreIdentifiers()
    /// The snapshots of the latest fetch of each entity, by the entity's name.
    ///
    /// Faults take their values from here, so that a store that can only be read as a whole is not read for each object.
    private var latest: [String: [PersistentIdentifier: DefaultSnapshot]] = [:]
    /// The hash and the version of the values that were last read of an object.
    private var readVersions: [NSManagedObjectID: (hash: Int, version: UInt64)] = [:]
    private var editors: Set<UUID> = []
    private let endedEditors = Locked<[EditingState]>([])
    /// The last editor that has asked: a fetch that is evaluated here reads more objects for the same one.
    private var lastEditor = EditingState(id: UUID(), author: nil)
    /// The identifier of the program's store.
    let dataStoreIdentifier: String

    private var connection: any StoreConnection {
        guard let connection = options?[Self.connectionOption] as? any StoreConnection else {
            fatalError("SwiftData: a SnapshotStore was made without a store of the program.")
        }
        return connection
    }

    required init(
        persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
        configurationName name: String?,
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) {
        dataStoreIdentifier = (options?[Self.connectionOption] as? any StoreConnection)?.store.identifier ?? ""
        super.init(persistentStoreCoordinator: root, configurationName: name, at: url, options: options)
    }

    override var type: String { Self.storeType }

    override func loadMetadata() throws {
        // The identifier of the program's store may be any text, and that of this store may not.
        metadata = [NSStoreTypeKey: type, NSStoreUUIDKey: UUID().uuidString]
    }

    private func refused(_ problem: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey: "SwiftData: the store \(dataStoreIdentifier) \(problem).",
                NSAffectedStoresErrorKey: [self],
            ]
        )
    }

    // MARK: - Identifiers

    /// The identifier of an object; temporary until the object is saved.
    ///
    /// Any thread may call it.
    func identifier(of id: NSManagedObjectID) -> PersistentIdentifier {
        identifiers.identifier(id)
            ?? PersistentIdentifier(
                store: dataStoreIdentifier,
                entity: id.entity.name ?? "",
                key: referenceObject(for: id) as? String ?? ""
            )
    }

    /// The ID of an object of this store; `nil` if the model has no such entity.
    ///
    /// Any thread may call it.
    func id(of identifier: PersistentIdentifier) -> NSManagedObjectID? {
        if let id = identifiers.id(identifier) { return id }
        guard !identifier.isTemporary, identifier.storeIdentifier == dataStoreIdentifier,
            let entity = persistentStoreCoordinator?.managedObjectModel.entitiesByName[identifier.entityName]
        else { return nil }
        return newObjectID(for: entity, referenceObject: identifier.primaryKey)
    }

    private func required(_ identifier: PersistentIdentifier, _ place: String) throws -> NSManagedObjectID {
        guard let id = id(of: identifier) else {
            throw refused("gave \(identifier.uri) for \(place), which is not its own")
        }
        return id
    }

    override func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
        array.map { object in
            let id = newObjectID(for: object.entity, referenceObject: UUID().uuidString)
            let known = (object.managedObjectContext as? ManagedContext)?.model(of: object).backing.identifier
            identifiers.set(known ?? .temporary(entityName: object.entity.name ?? ""), id)
            return id
        }
    }

    // MARK: - Editors

    /// The editor of a context, for whom the store is prepared.
    private func editor(_ context: NSManagedObjectContext?) -> EditingState {
        deliverEndedEditors()
        guard let editor = (context as? ManagedContext)?.editingState else { return lastEditor }
        lastEditor = editor
        if editors.insert(editor.id).inserted { connection.store.initializeState(for: editor) }
        return editor
    }

    /// Notes the end of a context.
    ///
    /// Any thread may call it.
    func end(_ editor: EditingState) {
        endedEditors.withLock { $0.append(editor) }
        // If another thread uses the store, then its next call is followed by this.
        turn.takeIfFree { deliverEndedEditors() }
    }

    private func deliverEndedEditors() {
        let ended = endedEditors.withLock { ended in
            defer { ended = [] }
            return ended
        }
        for editor in ended where editors.remove(editor.id) != nil { connection.store.invalidateState(for: editor) }
    }

    // MARK: - Whole stores

    /// Removes all data.
    func eraseData() throws { try turn.take { try connection.store.erase() } }

    /// The transactions that a descriptor describes; `nil` if the store keeps none of that type.
    func history<Transaction: HistoryTransaction>(_ descriptor: HistoryDescriptor<Transaction>) throws -> [Transaction]?
    {
        func ask<Provider: HistoryProviding>(_ provider: Provider) throws -> [Transaction]? {
            guard let descriptor = descriptor as? HistoryDescriptor<Provider.HistoryType> else { return nil }
            return try provider.fetchHistory(descriptor) as? [Transaction]
        }
        return try turn.take { try (connection.store as? any HistoryProviding).flatMap { try ask($0) } }
    }

    /// Removes transactions.
    ///
    /// - Returns: Whether the store keeps transactions of that type.
    func deleteHistory<Transaction: HistoryTransaction>(_ descriptor: HistoryDescriptor<Transaction>) throws -> Bool {
        func ask<Provider: HistoryProviding>(_ provider: Provider) throws -> Bool {
            guard let descriptor = descriptor as? HistoryDescriptor<Provider.HistoryType> else { return false }
            try provider.deleteHistory(descriptor)
            return true
        }
        return try turn.take { try (connection.store as? any HistoryProviding).map { try ask($0) } ?? false }
    }

    // MARK: - Fetching

    override func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext?) throws -> Any {
        do {
            switch request {
            case let save as NSSaveChangesRequest: return try write(save, context)
            case let fetch as NSFetchRequest<NSFetchRequestResult>: return try answer(fetch, context)
            default: throw DataStoreError.unsupportedFeature
            }
        } catch let error as UnusableSnapshot {
            throw refused(error.description)
        }
    }

    private func record(_ entity: NSEntityDescription?) throws -> ModelRecord {
        guard let record = connection.schema.records[entity?.name ?? ""] else {
            throw refused("was asked for \(entity?.name ?? "an unknown entity"), which has no class")
        }
        return record
    }

    private func answer(
        _ request: NSFetchRequest<NSFetchRequestResult>,
        _ context: NSManagedObjectContext?
    ) throws -> Any {
        func find<T: PersistentModel>(_ type: T.Type) throws -> Any {
            let editor = editor(context)
            switch request.resultType {
            case .countResultType:
                if let count = try counted(request, type, editor) { return [count] }
                return [try ids(request, type, editor).count]
            case .managedObjectIDResultType:
                return try identified(request, type, editor) ?? ids(request, type, editor)
            default: return try ids(request, type, editor).compactMap { context?.object(with: $0) }
            }
        }
        return try find(record(request.entity).type)
    }

    /// The description of a request for the store alone; `nil` if the request was made for another purpose.
    private func described<T: PersistentModel>(
        _ request: NSFetchRequest<NSFetchRequestResult>,
        _ type: T.Type
    ) -> FetchDescriptor<T>? {
        guard var descriptor = DescribedFetch.descriptor(type, request.predicate) else { return nil }
        descriptor.includesSubclasses = request.includesSubentities
        descriptor.fetchLimit = request.fetchLimit == 0 ? nil : request.fetchLimit
        descriptor.fetchOffset = request.fetchOffset == 0 ? nil : request.fetchOffset
        return descriptor
    }

    /// The number that the store counts; `nil` if the objects have to be counted here.
    private func counted<T: PersistentModel>(
        _ request: NSFetchRequest<NSFetchRequestResult>,
        _ type: T.Type,
        _ editor: EditingState
    ) throws -> Int? {
        guard let descriptor = described(request, type) else { return nil }
        do {
            return try connection.count(DataStoreFetchRequest(editingState: editor, descriptor: descriptor))
        } catch DataStoreError.preferInMemoryFilter, DataStoreError.preferInMemorySort {
            return nil
        }
    }

    /// The IDs of the identifiers that the store finds; `nil` if the objects have to be found here.
    private func identified<T: PersistentModel>(
        _ request: NSFetchRequest<NSFetchRequestResult>,
        _ type: T.Type,
        _ editor: EditingState
    ) throws -> [NSManagedObjectID]? {
        guard let descriptor = described(request, type) else { return nil }
        do {
            let found = try connection.identifiers(DataStoreFetchRequest(editingState: editor, descriptor: descriptor))
            return try found.map { try required($0, "an identifier of \(T.self)") }
        } catch DataStoreError.preferInMemoryFilter, DataStoreError.preferInMemorySort {
            return nil
        }
    }

    /// The IDs of the objects that a request describes.
    private func ids<T: PersistentModel>(
        _ request: NSFetchRequest<NSFetchRequestResult>,
        _ type: T.Type,
        _ editor: EditingState
    ) throws -> [NSManagedObjectID] {
        let sort = request.sortDescriptors ?? []
        let described = DescribedFetch.descriptor(type, request.predicate)
        // Requests that the library makes for its own purposes have no description.
        var filtersHere = described == nil && request.predicate != nil
        var sortsHere = !sort.isEmpty && described?.sortBy.count != sort.count
        var descriptor = described ?? FetchDescriptor<T>()
        descriptor.includesSubclasses = request.includesSubentities
        while true {
            if filtersHere { descriptor.predicate = nil }
            if filtersHere || sortsHere || sort.isEmpty { descriptor.sortBy = [] }
            let isWhole = filtersHere || sortsHere
            descriptor.fetchLimit = isWhole || request.fetchLimit == 0 ? nil : request.fetchLimit
            descriptor.fetchOffset = isWhole || request.fetchOffset == 0 ? nil : request.fetchOffset
            do {
                let found = try ids(descriptor, editor)
                guard isWhole else {
                    return request.fetchLimit > 0 ? Array(found.prefix(request.fetchLimit)) : found
                }
                return try ids(found, filtersHere ? request.predicate : nil, sort, request)
            } catch DataStoreError.preferInMemoryFilter where !filtersHere && descriptor.predicate != nil {
                filtersHere = true
                sortsHere = !sort.isEmpty
            } catch DataStoreError.preferInMemorySort where !sortsHere && !descriptor.sortBy.isEmpty {
                sortsHere = true
            }
        }
    }

    /// The IDs of the objects that the store finds.
    private func ids<T: PersistentModel>(
        _ descriptor: FetchDescriptor<T>,
        _ editor: EditingState
    ) throws -> [NSManagedObjectID] {
        let answer = try connection.fetch(DataStoreFetchRequest(editingState: editor, descriptor: descriptor))
        let name = ModelRecord.of(T.self).entityName
        let entity = persistentStoreCoordinator?.managedObjectModel.entitiesByName[name]
        var seen: Set<PersistentIdentifier> = []
        let ids = try answer.fetched.map { snapshot in
            let identifier = snapshot.persistentIdentifier
            let id = try required(identifier, "an object of \(name)")
            guard let entity, descriptor.includesSubclasses ? id.entity.isKindOf(entity: entity) : id.entity === entity
            else { throw refused("answered a fetch of \(name) with \(identifier.uri)") }
            guard seen.insert(identifier).inserted else {
                throw refused("answered a fetch with \(identifier.uri) twice")
            }
            return id
        }
        let snapshots = answer.fetched + answer.related
        for other in latest.keys { for snapshot in snapshots { latest[other]?[snapshot.persistentIdentifier] = nil } }
        latest[name] = Dictionary(
            snapshots.map { ($0.persistentIdentifier, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        return ids
    }

    /// Filters, sorts and cuts what the store has found.
    private func ids(
        _ found: [NSManagedObjectID],
        _ predicate: NSPredicate?,
        _ sort: [NSSortDescriptor],
        _ request: NSFetchRequest<NSFetchRequestResult>
    ) throws -> [NSManagedObjectID] {
        // The context that asks has unsaved changes, which do not count here.
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = persistentStoreCoordinator
        context.stalenessInterval = 0
        return try context.performAndWait {
            // A value that cannot be read decides nothing.
            try context.failingWithReads { () throws(any Error) -> [NSManagedObjectID] in
                Self.objects(found.map { context.object(with: $0) }, predicate, sort, request).map(\.objectID)
            }
        }
    }

    private static func objects(
        _ found: [NSManagedObject],
        _ predicate: NSPredicate?,
        _ sort: [NSSortDescriptor],
        _ request: NSFetchRequest<NSFetchRequestResult>
    ) -> [NSManagedObject] {
        var objects = found
        if let predicate { objects = objects.filter { predicate.evaluate(with: $0) } }
        for descriptor in sort.reversed() {
            objects = objects.enumerated().sorted { left, right in
                switch descriptor.compare(left.element, to: right.element) {
                case .orderedAscending: true
                case .orderedDescending: false
                case .orderedSame: left.offset < right.offset
                }
            }.map(\.element)
        }
        objects = Array(objects.dropFirst(request.fetchOffset))
        return request.fetchLimit > 0 ? Array(objects.prefix(request.fetchLimit)) : objects
    }

    // MARK: - Values

    /// The snapshot of an object; `nil` if the store has none.
    private func snapshot(_ id: NSManagedObjectID, _ editor: EditingState) throws -> DefaultSnapshot? {
        let identifier = identifier(of: id)
        guard !identifier.isTemporary else { return nil }
        if let snapshot = known(identifier) { return snapshot }
        if let snapshot = try connection.cached(identifier, editor) { return snapshot }
        func find<T: PersistentModel>(_ type: T.Type) throws {
            var descriptor = FetchDescriptor<T>(predicate: #Predicate { $0.persistentModelID == identifier })
            do {
                _ = try ids(descriptor, editor)
            } catch DataStoreError.preferInMemoryFilter {
                descriptor.predicate = nil
                _ = try ids(descriptor, editor)
            }
        }
        try find(record(id.entity).type)
        return known(identifier)
    }

    private func known(_ identifier: PersistentIdentifier) -> DefaultSnapshot? {
        for snapshots in latest.values { if let snapshot = snapshots[identifier] { return snapshot } }
        return nil
    }

    override func newValuesForObject(
        with objectID: NSManagedObjectID,
        with context: NSManagedObjectContext
    ) throws -> NSIncrementalStoreNode {
        do {
            guard let snapshot = try snapshot(objectID, editor(context)) else {
                throw CocoaError(.managedObjectReferentialIntegrity)
            }
            let values = try values(snapshot, try record(objectID.entity))
            let version = version(of: objectID, Self.hash(values))
            return NSIncrementalStoreNode(objectID: objectID, withValues: values, version: version)
        } catch let error as UnusableSnapshot {
            throw refused(error.description)
        }
    }

    /// The values of attributes and to-one relationships.
    private func values(_ snapshot: DefaultSnapshot, _ record: ModelRecord) throws -> [String: Any] {
        var values: [String: Any] = [:]
        for property in record.properties {
            switch property.kind {
            case .attribute(let form):
                do {
                    values[property.name] = try snapshot.attributes[property.name].flatMap {
                        try form.stored(snapshotValue: $0)
                    }
                } catch {
                    throw UnusableSnapshot(
                        description:
                            "gave \(snapshot.persistentIdentifier.uri), whose \(property.name) cannot be read: \(error)"
                    )
                }
            case .toOne:
                values[property.name] =
                    try snapshot.toOne[property.name].map { try required($0, property.name) } ?? NSNull()
            case .toMany: break
            }
        }
        return values
    }

    override func newValue(
        forRelationship relationship: NSRelationshipDescription,
        forObjectWith objectID: NSManagedObjectID,
        with context: NSManagedObjectContext?
    ) throws -> Any {
        guard let snapshot = try snapshot(objectID, editor(context)) else {
            return relationship.isToMany ? [] : NSNull()
        }
        if relationship.isToMany {
            return try (snapshot.toMany[relationship.name] ?? []).map { try required($0, relationship.name) }
        }
        return try snapshot.toOne[relationship.name].map { try required($0, relationship.name) } ?? NSNull()
    }

    private func version(of id: NSManagedObjectID, _ hash: Int) -> UInt64 {
        let known = readVersions[id] ?? (hash, 1)
        let version = known.hash == hash ? known.version : known.version + 1
        readVersions[id] = (hash, version)
        return version
    }

    private static func hash(_ values: [String: Any]) -> Int {
        var hasher = Hasher()
        func combine(_ value: Any) {
            if let parts = value as? [String: Any] {
                for (name, part) in parts.sorted(by: { $0.key < $1.key }) {
                    hasher.combine(name)
                    combine(part)
                }
            } else if let value = value as? AnyHashable {
                hasher.combine(value)
            } else {
                hasher.combine("\(value)")
            }
        }
        combine(values)
        return hasher.finalize()
    }

    // MARK: - Saving

    private func write(_ request: NSSaveChangesRequest, _ context: NSManagedObjectContext?) throws -> Any {
        // Without objects only the metadata are to be written, and there are none.
        guard request.insertedObjects != nil else { return [] }
        guard let managed = context as? ManagedContext else { throw refused("is saved by model contexts only") }
        let editor = editor(managed)
        func sorted(_ objects: Set<NSManagedObject>?) -> [NSManagedObject] {
            (objects ?? []).map { (identifier(of: $0.objectID), $0) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        // New objects come in the order of their insertion, in which the store may make its keys.
        func ordered(_ objects: Set<NSManagedObject>?) -> [NSManagedObject] {
            (objects ?? []).map { ($0.objectID.key, $0.entity.name ?? "", $0) }
                .sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2)
        }
        let (inserted, updated, deleted) = (
            ordered(request.insertedObjects), sorted(request.updatedObjects), sorted(request.deletedObjects)
        )
        func change(_ object: NSManagedObject, _ members: [String: [PersistentIdentifier]] = [:]) -> StoreSave.Change {
            StoreSave.Change(backing: managed.model(of: object).anyBackingData, members: members)
        }
        let changes = StoreSave(
            inserted: inserted.map { change($0) },
            updated: try updated.map { change($0, try members(of: $0, editor)) },
            deleted: deleted.map { change($0) },
            editor: editor
        )
        let answer = try connection.save(changes)
        let changed = (inserted + updated + deleted).map { identifier(of: $0.objectID) }
        for name in latest.keys { for identifier in changed { latest[name]?[identifier] = nil } }
        try remap(inserted, answer)
        if let token = answer.token { managed.savedTokens[dataStoreIdentifier] = token }
        rereadAfterSave = try reregister(answer.reregistered)
        return []
    }

    /// The members of an object's to-many relationships: those that the store has, with the changes of the context.
    ///
    /// The context may not know yet what another one has saved.
    private func members(of object: NSManagedObject, _ editor: EditingState) throws -> [String: [PersistentIdentifier]]
    {
        let names = object.entity.relationshipsByName.values.filter(\.isToMany).map(\.name)
        guard !names.isEmpty, let stored = try snapshot(object.objectID, editor) else { return [:] }
        func identifiers(_ objects: Set<NSManagedObject>) -> Set<PersistentIdentifier> {
            Set(objects.map { identifier(of: $0.objectID) })
        }
        var members: [String: [PersistentIdentifier]] = [:]
        for name in names {
            let (added, removed) = object.unsavedMembers(of: name)
            members[name] = Set(stored.toMany[name] ?? []).union(identifiers(added)).subtracting(identifiers(removed))
                .sorted()
        }
        return members
    }

    /// Notes the permanent identifiers of new objects.
    private func remap(_ inserted: [NSManagedObject], _ answer: StoreSaveAnswer) throws {
        var taken: Set<PersistentIdentifier> = []
        var permanent: [(PersistentIdentifier, NSManagedObjectID)] = []
        for object in inserted {
            let temporary = identifier(of: object.objectID)
            guard let identifier = answer.remapped[temporary] else {
                throw refused("has saved a new \(temporary.entityName) without a permanent identifier")
            }
            guard !identifier.isTemporary, identifier.storeIdentifier == dataStoreIdentifier,
                identifier.entityName == temporary.entityName
            else { throw refused("gave \(identifier.uri) for a new \(temporary.entityName), which is not its own") }
            let known = id(of: identifier)
            guard taken.insert(identifier).inserted, identifiers.id(identifier) == nil,
                known.map({ readVersions[$0] == nil }) ?? false
            else {
                throw refused(
                    "gave \(identifier.uri) for a new \(temporary.entityName), though another object has it already"
                )
            }
            permanent.append((identifier, object.objectID))
        }
        for (identifier, id) in permanent { identifiers.set(identifier, id) }
    }

    /// Takes the snapshots of objects whose values the store has changed.
    private func reregister(_ snapshots: [DefaultSnapshot]) throws -> [NSManagedObjectID] {
        try snapshots.map { snapshot in
            let identifier = snapshot.persistentIdentifier
            latest[identifier.entityName, default: [:]][identifier] = snapshot
            return try required(identifier, "a saved object")
        }
    }
}

extension PersistentModel {
    /// The values of the object, whatever its class.
    fileprivate var anyBackingData: any BackingData { persistentBackingData }
}
