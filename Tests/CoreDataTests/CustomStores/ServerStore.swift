import CoreData
import StrataLocks
import TestSupport

/// A "server": a dictionary of records by text, which can also give every wrong answer that tests ask for.
final class Server: Sendable {
    struct Record: @unchecked Sendable {
        // @unchecked Sendable: the values are property-list values, which no code mutates.
        var entity: String
        var values: [String: Any] = [:]
        /// For each relationship, the texts of the destinations.
        var links: [String: [String]] = [:]
        var version: UInt64 = 1
    }

    /// The requests that the store can get.
    enum Method: String, CaseIterable, Sendable {
        case metadata, fetch, count, save, values, toOne, toMany, ids
    }

    /// The mistakes that the store may make, besides throwing errors.
    enum Lie: CaseIterable, Sendable {
        case otherEntity, otherStore, temporaryID, noID, noArray, twoCounts, otherNode, wrongType, wrongDestination
        case noCollection, fewIDs, oneIDForAll, knownID, unusableReference
    }

    struct State: Sendable {
        var records: [String: Record] = [:]
        var lastNumber = 0
        var calls: [Method] = []
        var fails: Set<Method> = []
        var lie: Lie?
        var omitsToOne = false
        /// The version of every node, for servers that do not count versions.
        var fixedVersion: UInt64?
        var registered: [String: Int] = [:]
        var requests: [String] = []
        /// The threads inside the store, each with its depth: a store may call itself.
        var inside: [UInt: Int] = [:]
        var mostInside = 0
        var metadata: [String: String] = [:]
        var metadataSaves = 0
    }

    private let state = Locked(State())
    let url = URL(fileURLWithPath: "/servers/\(UUID().uuidString)")
    /// A block that runs inside each call of the store, on the same thread.
    let whenAsked = Locked<(@Sendable (Method) -> Void)?>(nil)

    private static let servers = Locked<[URL: Server]>([:])

    init() { Self.servers.withLock { [url] in $0[url] = self } }

    static func at(_ url: URL?) -> Server? { servers.withLock { servers in url.flatMap { servers[$0] } } }

    @discardableResult
    func change<T: Sendable>(_ body: (inout sending State) -> T) -> T { state.withLock { body(&$0) } }
    var current: State { state.withLock { $0 } }
    subscript(text: String) -> Record? { state.withLock { $0.records[text] } }

    /// The calls since the last time that this was called.
    func calls() -> [Method] {
        change { state in
            defer { state.calls = [] }
            return state.calls
        }
    }
}

/// The error that a server throws while it is down.
struct ServerDown: Error, Equatable {
    let method: Server.Method
}

/// An incremental store for a ``Server``, as users would write one.
final class ServerStore: NSIncrementalStore, @unchecked Sendable {
    // @unchecked Sendable: the coordinator uses the store from one thread at a time.

    static let storeType = NSPersistentStore.StoreType(rawValue: "Server")
    static let isRegistered: Bool = {
        NSPersistentStoreCoordinator.registerStoreClass(ServerStore.self, type: storeType)
        return true
    }()

    private var server: Server { Server.at(url) ?? Server() }
    /// The versions of the records that the store has given out.
    private var seen: [String: UInt64] = [:]

    override class func identifierForNewStore(at storeURL: URL) -> Any { storeURL.lastPathComponent }

    override var type: String { Self.storeType.rawValue }

    private func asked<T>(_ method: Server.Method, _ body: () throws -> T) throws -> T {
        let thread = UInt(pthread_self())
        let fails = server.change { state in
            state.calls.append(method)
            state.inside[thread, default: 0] += 1
            state.mostInside = max(state.mostInside, state.inside.count)
            return state.fails.contains(method)
        }
        defer {
            server.change { state in
                state.inside[thread, default: 1] -= 1
                if state.inside[thread] == 0 { state.inside[thread] = nil }
            }
        }
        server.whenAsked.withLock { $0 }?(method)
        if fails { throw ServerDown(method: method) }
        return try body()
    }

    override func loadMetadata() throws {
        try asked(.metadata) {
            var metadata: [String: Any] = [NSStoreTypeKey: type, NSStoreUUIDKey: identifier ?? ""]
            for (key, value) in server.current.metadata { metadata[key] = value }
            self.metadata = metadata
        }
    }

    override func execute(_ request: NSPersistentStoreRequest, with context: NSManagedObjectContext?) throws -> Any {
        if let save = request as? NSSaveChangesRequest { return try asked(.save) { try write(save) } }
        guard let fetch = request as? NSFetchRequest<NSFetchRequestResult>, let context else { return [] }
        let isCount = fetch.resultType == .countResultType
        return try asked(isCount ? .count : .fetch) { try find(fetch, context) }
    }

    private func find(_ request: NSFetchRequest<NSFetchRequestResult>, _ context: NSManagedObjectContext) throws -> Any
    {
        guard let entity = request.entity, let model = persistentStoreCoordinator?.managedObjectModel else { return [] }
        var names: Set<String> = [entity.name ?? ""]
        if request.includesSubentities {
            for other in model.entities where other.isKindOf(entity: entity) { names.insert(other.name ?? "") }
        }
        var found = server.current.records.filter { names.contains($0.value.entity) }
            .map { ($0.key, $0.value, $0.value.values.merging(["ref": $0.key]) { $1 }) }
            .sorted { ($0.0.count, $0.0) < ($1.0.count, $1.0) }
        if let predicate = request.predicate { found = found.filter { predicate.evaluate(with: $0.2) } }
        for descriptor in (request.sortDescriptors ?? []).reversed() {
            // The sort is stable, so that earlier sorting decides among equals.
            found = found.enumerated().sorted { left, right in
                switch descriptor.compare(left.element.2, to: right.element.2) {
                case .orderedAscending: true
                case .orderedDescending: false
                case .orderedSame: left.offset < right.offset
                }
            }.map(\.element)
        }
        found = Array(found.dropFirst(request.fetchOffset))
        if request.fetchLimit > 0 { found = Array(found.prefix(request.fetchLimit)) }
        server.change { $0.requests.append(request.predicate.map { "\($0)" } ?? "all") }
        if request.resultType == .countResultType {
            return server.current.lie == .twoCounts ? [1, 2] : [found.count]
        }
        let ids = try found.map { newObjectID(for: try named($0.1.entity), referenceObject: $0.0) }
        switch server.current.lie {
        case .otherEntity: return [newObjectID(for: try named("City"), referenceObject: "city-0")]
        case .otherStore:
            return persistentStoreCoordinator?.persistentStores.compactMap { $0 as? ServerStore }
                .filter { $0 !== self }.map { $0.newObjectID(for: entity, referenceObject: "x") } ?? []
        case .temporaryID: return [NSManagedObject(entity: entity, insertInto: context).objectID]
        case .noID: return ["venue-1"]
        case .noArray: return "venue-1"
        case .unusableReference: return [newObjectID(for: entity, referenceObject: 1.5)]
        default: break
        }
        if request.resultType == .managedObjectIDResultType { return ids }
        return ids.map { context.object(with: $0) }
    }

    private func named(_ entity: String) throws -> NSEntityDescription {
        guard let found = persistentStoreCoordinator?.managedObjectModel.entitiesByName[entity] else {
            throw ServerDown(method: .metadata)
        }
        return found
    }

    private func text(_ id: NSManagedObjectID) -> String { referenceObject(for: id) as? String ?? "?" }

    override func newValuesForObject(
        with objectID: NSManagedObjectID,
        with context: NSManagedObjectContext
    ) throws -> NSIncrementalStoreNode {
        try asked(.values) {
            guard let record = server[text(objectID)] else {
                throw CocoaError(.managedObjectReferentialIntegrity)
            }
            seen[text(objectID)] = record.version
            var values = record.values
            for (name, relationship) in objectID.entity.relationshipsByName where !relationship.isToMany {
                guard !server.current.omitsToOne else { continue }
                values[name] = try destination(record, relationship) ?? NSNull()
            }
            if server.current.lie == .wrongType { values["price"] = "cheap" }
            if server.current.lie == .wrongDestination { values["city"] = objectID }
            let id =
                server.current.lie == .otherNode
                ? newObjectID(for: objectID.entity, referenceObject: "another") : objectID
            return NSIncrementalStoreNode(
                objectID: id,
                withValues: values,
                version: server.current.fixedVersion ?? record.version
            )
        }
    }

    private func destination(_ record: Server.Record, _ relationship: NSRelationshipDescription) throws -> Any? {
        guard let text = record.links[relationship.name]?.first, let other = server[text] else { return nil }
        return newObjectID(for: try named(other.entity), referenceObject: text)
    }

    override func newValue(
        forRelationship relationship: NSRelationshipDescription,
        forObjectWith objectID: NSManagedObjectID,
        with context: NSManagedObjectContext?
    ) throws -> Any {
        try asked(relationship.isToMany ? .toMany : .toOne) {
            guard let record = server[text(objectID)] else { return relationship.isToMany ? [] : NSNull() }
            guard relationship.isToMany else { return try destination(record, relationship) ?? NSNull() }
            if server.current.lie == .noCollection { return "none" }
            return try (record.links[relationship.name] ?? []).compactMap { text in
                try server[text].map { newObjectID(for: try named($0.entity), referenceObject: text) }
            }
        }
    }

    override func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
        try asked(.ids) {
            var ids = array.map { object in
                let number = server.change { state in
                    state.lastNumber += 1
                    return state.lastNumber
                }
                return newObjectID(for: object.entity, referenceObject: "\(object.entity.name ?? "")-\(number)")
            }
            switch server.current.lie {
            case .fewIDs: ids.removeLast()
            case .oneIDForAll: ids = ids.map { _ in ids[0] }
            case .knownID:
                ids = try server.current.records.prefix(1).map {
                    newObjectID(for: try named($0.value.entity), referenceObject: $0.key)
                }
            case .otherEntity: ids = try ids.map { _ in newObjectID(for: try named("City"), referenceObject: "city-1") }
            default: break
            }
            return ids
        }
    }

    private func write(_ request: NSSaveChangesRequest) throws -> Any {
        guard request.insertedObjects != nil else {
            server.change { $0.metadataSaves += 1 }
            return []
        }
        let present = (request.updatedObjects ?? []).union(request.deletedObjects ?? [])
        let stale = present.union(request.lockedObjects ?? []).filter { object in
            let text = text(object.objectID)
            return seen[text] != nil && server[text]?.version != seen[text]
        }
        guard stale.isEmpty else {
            let conflicts = stale.map { object in
                NSMergeConflict(
                    source: object,
                    newVersion: Int(server[text(object.objectID)]?.version ?? 0),
                    oldVersion: Int(seen[text(object.objectID)] ?? 0),
                    cachedSnapshot: nil,
                    persistedSnapshot: nil
                )
            }
            throw CocoaError(.managedObjectMerge, userInfo: [NSPersistentStoreSaveConflictsErrorKey: conflicts])
        }
        var records: [String: Server.Record] = [:]
        for object in (request.insertedObjects ?? []).union(request.updatedObjects ?? []) {
            let text = text(object.objectID)
            records[text] = record(of: object, server[text].map { $0.version + 1 } ?? 1)
        }
        let gone = (request.deletedObjects ?? []).map { text($0.objectID) }
        let written = records
        server.change { state in
            for (text, record) in written { state.records[text] = record }
            for text in gone { state.records[text] = nil }
        }
        for (text, record) in written { seen[text] = record.version }
        return []
    }

    private func record(of object: NSManagedObject, _ version: UInt64) -> Server.Record {
        var record = Server.Record(entity: object.entity.name ?? "", version: version)
        for (name, attribute) in object.entity.attributesByName where !attribute.isTransient {
            record.values[name] = object.value(forKey: name)
        }
        for (name, relationship) in object.entity.relationshipsByName {
            let value = object.value(forKey: name)
            let destinations: [Any]
            switch value {
            case let set as NSSet: destinations = set.allObjects
            case let ordered as NSOrderedSet: destinations = ordered.array
            case let one?: destinations = [one]
            case nil: destinations = []
            }
            let texts = destinations.compactMap { ($0 as? NSManagedObject).map { text($0.objectID) } }
            record.links[name] = relationship.isOrdered ? texts : texts.sorted()
        }
        return record
    }

    override func managedObjectContextDidRegisterObjects(with objectIDs: [NSManagedObjectID]) {
        let texts = objectIDs.map { text($0) }
        server.change { state in for text in texts { state.registered[text, default: 0] += 1 } }
    }

    override func managedObjectContextDidUnregisterObjects(with objectIDs: [NSManagedObjectID]) {
        let texts = objectIDs.map { text($0) }
        server.change { state in for text in texts { state.registered[text, default: 0] -= 1 } }
    }
}
