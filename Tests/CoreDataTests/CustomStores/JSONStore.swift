import CoreData
import StrataLocks
import TestSupport

/// An atomic store that keeps its objects in a JSON file, as users would write one.
final class JSONStore: NSAtomicStore, @unchecked Sendable {
    // @unchecked Sendable: the coordinator calls the overrides one at a time.

    static let storeType = NSPersistentStore.StoreType(rawValue: "JSON")
    static let isRegistered: Bool = {
        NSPersistentStoreCoordinator.registerStoreClass(JSONStore.self, forStoreType: storeType.rawValue)
        return true
    }()

    /// The mistakes that tests ask for, by the file's URL.
    enum Fault: Sendable {
        case loadThrows, saveThrows, otherNode, sameReference, unusableReference, noReference
        /// Nodes write names in capitals.
        case capitals
    }
    static let faults = Locked<[URL: Fault]>([:])
    private var fault: Fault? { Self.faults.withLock { faults in url.flatMap { faults[$0] } } }

    /// The error that `save()` throws.
    struct DiskFull: Error {}

    private struct File: Codable {
        var metadata: [String: String]
        var objects: [Object]
    }

    private struct Object: Codable {
        var entity: String
        var reference: String
        var texts: [String: String]
        var numbers: [String: Double]
        /// For each relationship, the entity and the reference of each destination.
        var links: [String: [[String]]]
    }

    override var type: String { Self.storeType.rawValue }
    private(set) var removedNodes = 0

    override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        try JSONDecoder().decode(File.self, from: Data(contentsOf: url)).metadata
    }

    override class func setMetadata(_ metadata: [String: Any]?, forPersistentStoreAt url: URL) throws {
        var file = try JSONDecoder().decode(File.self, from: Data(contentsOf: url))
        file.metadata = (metadata ?? [:]).compactMapValues { $0 as? String }
        try JSONEncoder().encode(file).write(to: url, options: .atomic)
    }

    override func load() throws {
        if fault == .loadThrows { throw DiskFull() }
        guard let url, FileManager.default.fileExists(atPath: url.path),
            let entities = persistentStoreCoordinator?.managedObjectModel.entitiesByName
        else { return }
        let file = try JSONDecoder().decode(File.self, from: Data(contentsOf: url))
        metadata = file.metadata
        var nodes: [NSManagedObjectID: NSAtomicStoreCacheNode] = [:]
        func node(_ entity: String, _ reference: String) throws -> NSAtomicStoreCacheNode {
            guard let description = entities[entity] else { throw CocoaError(.fileReadCorruptFile) }
            let id = objectID(for: description, withReferenceObject: reference)
            if let known = nodes[id] { return known }
            nodes[id] = NSAtomicStoreCacheNode(objectID: id)
            return try node(entity, reference)
        }
        var loaded: Set<NSAtomicStoreCacheNode> = []
        for object in file.objects {
            let own = try node(object.entity, object.reference)
            loaded.insert(own)
            for (name, text) in object.texts { own.setValue(text, forKey: name) }
            for (name, number) in object.numbers { own.setValue(number, forKey: name) }
            for (name, links) in object.links {
                let others = try links.map { try node($0[0], $0[1]) }
                let relationship = own.objectID.entity.relationshipsByName[name]
                if relationship?.isToMany != true {
                    own.setValue(others.first, forKey: name)
                } else if relationship?.isOrdered == true {
                    own.setValue(others, forKey: name)
                } else {
                    own.setValue(Set(others), forKey: name)
                }
            }
        }
        addCacheNodes(loaded)
    }

    override func save() throws {
        if fault == .saveThrows { throw DiskFull() }
        guard let url else { return }
        var file = File(metadata: (metadata ?? [:]).compactMapValues { $0 as? String }, objects: [])
        for node in cacheNodes() {
            var object = Object(
                entity: node.objectID.entity.name ?? "",
                reference: referenceObject(for: node.objectID) as? String ?? "?",
                texts: [:],
                numbers: [:],
                links: [:]
            )
            for name in node.objectID.entity.attributesByName.keys {
                switch node.value(forKey: name) {
                case let text as String: object.texts[name] = text
                case let number as NSNumber: object.numbers[name] = number.doubleValue
                default: break
                }
            }
            for name in node.objectID.entity.relationshipsByName.keys {
                let nodes: [NSAtomicStoreCacheNode]
                switch node.value(forKey: name) {
                case let one as NSAtomicStoreCacheNode: nodes = [one]
                case let set as Set<NSAtomicStoreCacheNode>: nodes = Array(set)
                case let array as [NSAtomicStoreCacheNode]: nodes = array
                default: nodes = []
                }
                guard !nodes.isEmpty else { continue }
                object.links[name] = nodes.map {
                    [$0.objectID.entity.name ?? "", referenceObject(for: $0.objectID) as? String ?? "?"]
                }
            }
            file.objects.append(object)
        }
        file.objects.sort { ($0.reference, $0.entity) < ($1.reference, $1.entity) }
        try JSONEncoder().encode(file).write(to: url, options: .atomic)
    }

    override func newReferenceObject(for managedObject: NSManagedObject) -> Any {
        switch fault {
        case .sameReference: "the same"
        case .unusableReference: [1, 2]
        default: UUID().uuidString
        }
    }

    override func newCacheNode(for managedObject: NSManagedObject) -> NSAtomicStoreCacheNode {
        if fault == .otherNode {
            return NSAtomicStoreCacheNode(objectID: objectID(for: managedObject.entity, withReferenceObject: "other"))
        }
        return super.newCacheNode(for: managedObject)
    }

    override func updateCacheNode(_ node: NSAtomicStoreCacheNode, from managedObject: NSManagedObject) {
        super.updateCacheNode(node, from: managedObject)
        guard fault == .capitals, let name = node.value(forKey: "name") as? String else { return }
        node.setValue(name.uppercased(), forKey: "name")
    }

    override func willRemoveCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) { removedNodes += cacheNodes.count }
}
