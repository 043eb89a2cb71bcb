import CoreDataCustomStores
import CoreDataEssentials
import Foundation
import StrataArchives
import StrataRows

/// A store in one file, which is read completely when the store is added, and written completely by each save.
///
/// Between these times its objects are in memory. Only one process at a time may write such a file: a save replaces the
/// file, including changes that other processes have saved since it was read.
package final class BinaryStore: NSAtomicStore, @unchecked Sendable {
    // @unchecked Sendable: the coordinator makes one call at a time, and only such calls use `found` and `lastKey`.

    /// The file that `loadMetadata()` has found, for `load()`.
    private var found: BinaryStoreFile?
    /// The highest key that any object of the store has ever had, so that no key is used again.
    private var lastKey: Int64 = 0

    /// The keys of the metadata that belong to the framework.
    private static let ownKeys = [
        NSStoreTypeKey, NSStoreUUIDKey, NSStoreModelVersionHashesKey, NSStoreModelVersionIdentifiersKey,
    ]

    package override var type: String { NSBinaryStoreType }

    // MARK: - Metadata

    package override func loadMetadata() throws {
        guard let url, let file = try BinaryStoreFile(contentsOf: url) else { return }
        found = file
        metadata = file.metadata
        if let uuid = file.metadata[NSStoreUUIDKey] as? String { identifier = uuid }
    }

    package override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
        try existingFile(url).metadata
    }

    package override class func setMetadata(_ metadata: [String: Any]?, forPersistentStoreAt url: URL) throws {
        let file = try existingFile(url)
        let own = file.metadata.filter { ownKeys.contains($0.key) }
        try BinaryStoreFile(
            metadata: (metadata ?? [:]).merging(own) { $1 },
            lastKey: file.lastKey,
            objects: file.objects
        ).write(to: url)
    }

    private class func existingFile(_ url: URL) throws -> BinaryStoreFile {
        if let file = try BinaryStoreFile(contentsOf: url) { return file }
        throw BinaryStoreFile.failure(.fileReadNoSuchFile, at: url, because: "there is no such file")
    }

    // MARK: - Reading

    package override func load() throws {
        guard let url, let model = persistentStoreCoordinator?.managedObjectModel else { return }
        if found == nil { try makeFile(url, model) }
        guard let file = found else { return }
        found = nil
        // This comes before the contents of the file are compared with the model.
        try checkMetadata(model)
        lastKey = file.lastKey
        var nodes: [Int64: NSAtomicStoreCacheNode] = [:]
        for object in file.objects {
            guard let entity = model.entitiesByName[object.entity], object.key > 0, object.key <= file.lastKey,
                nodes[object.key] == nil
            else { throw BinaryStoreFile.failure(.fileReadCorruptFile, at: url, because: "it is damaged") }
            nodes[object.key] = NSAtomicStoreCacheNode(
                objectID: objectID(for: entity, withReferenceObject: object.key)
            )
        }
        for object in file.objects {
            guard let node = nodes[object.key] else { continue }
            try requireKnown(object, in: node.objectID.layout, at: url)
            for slot in node.objectID.layout.slots {
                guard slot.kind != .reference, let stored = object.values[slot.name] else { continue }
                guard let value = Self.value(stored, slot) else {
                    throw BinaryStoreFile.failure(
                        .fileReadCorruptFile,
                        at: url,
                        because: "the value of \"\(slot.name)\" of \(object.entity) \(object.key) cannot be read"
                    )
                }
                node.set(value, at: slot.name.split(separator: ".").map(String.init)[...])
            }
            for (name, relationship) in node.objectID.entity.relationshipsByName {
                guard let keys = object.links[name] else { continue }
                let others = keys.compactMap { nodes[$0] }
                guard others.count == keys.count else {
                    throw BinaryStoreFile.failure(.fileReadCorruptFile, at: url, because: "it is damaged")
                }
                if !relationship.isToMany {
                    node.setValue(others.first, forKey: name)
                } else if relationship.isOrdered {
                    node.setValue(others, forKey: name)
                } else {
                    node.setValue(Set(others), forKey: name)
                }
            }
        }
        addCacheNodes(Set(nodes.values))
    }

    /// Refuses values that have no attribute in the model, because the next save would omit them.
    ///
    /// The names of composite attributes are not part of version hashes, so they may differ in the model.
    private func requireKnown(_ object: BinaryStoreFile.Object, in layout: EntityLayout, at url: URL) throws {
        guard !StoreOption.flag(options?[NSIgnorePersistentStoreVersioningOption]),
            let path = object.values.keys.filter({ layout.slot(named: $0) == nil }).min()
        else { return }
        throw BinaryStoreFile.failure(
            .persistentStoreIncompatibleSchema,
            at: url,
            because:
                "it has values of \(object.entity).\(path), which the model does not have. If a composite attribute was renamed, give the entity another versionHashModifier, so that the store is migrated"
        )
    }

    /// Makes the file of a new store, so that it exists before its first save; a read-only store makes none.
    ///
    /// If another process makes the file first, then that file is used.
    private func makeFile(_ url: URL, _ model: NSManagedObjectModel) throws {
        guard !isReadOnly, url.path != "/dev/null" else { return }
        metadata = ownMetadata
        try checkMetadata(model)
        do {
            try BinaryStoreFile(metadata: ownMetadata, lastKey: 0, objects: []).write(to: url, replaces: false)
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            try loadMetadata()
        }
    }

    /// The metadata in the form for the file.
    private var ownMetadata: [String: Any] {
        var own: [String: Any] = metadata ?? [:]
        own[NSStoreTypeKey] = NSBinaryStoreType
        own[NSStoreUUIDKey] = identifier
        return own
    }

    /// The value of a node for a value in the file; `nil` if it does not fit the attribute.
    private static func value(_ stored: BinaryPropertyList.Node, _ slot: Slot) -> Any? {
        switch (slot.kind, stored) {
        case (.int, .integer(let value)): slot.type == .boolean ? value != 0 : value
        case (.double, .real(let value)): value
        case (.double, .date(let seconds)): Date(timeIntervalSinceReferenceDate: seconds)
        case (.string, .string(let text)): slot.type == .uri ? URL(string: text) : text
        case (.decimal, .string(let text)): Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
        case (.uuid, .string(let text)): UUID(uuidString: text)
        case (.data, .data(let data)): slot.type == .transformable ? slot.attribute?.unarchived(data) : data
        default: nil
        }
    }

    // MARK: - Writing

    package override func newReferenceObject(for managedObject: NSManagedObject) -> Any {
        lastKey += 1
        return lastKey
    }

    package override func save() throws {
        guard let url else { return }
        var objects: [BinaryStoreFile.Object] = []
        for node in cacheNodes() { objects.append(try object(of: node)) }
        objects.sort { $0.key < $1.key }
        try BinaryStoreFile(metadata: ownMetadata, lastKey: lastKey, objects: objects).write(to: url)
    }

    private func object(of node: NSAtomicStoreCacheNode) throws -> BinaryStoreFile.Object {
        let layout = node.objectID.layout
        // Values of any kind are converted to the types of their attributes.
        let row = try row(of: node, layout, key: 0, version: 0)
        var values: [String: BinaryPropertyList.Node] = [:]
        for slot in layout.slots where slot.kind != .reference && !row.isNull(slot.index) {
            values[slot.name] = Self.stored(row, slot)
        }
        var links: [String: [Int64]] = [:]
        for (name, relationship) in node.objectID.entity.relationshipsByName where !relationship.isTransient {
            let keys = Self.nodes(node.value(forKey: name)).map(key)
            if !keys.isEmpty { links[name] = relationship.isOrdered ? keys : keys.sorted() }
        }
        return BinaryStoreFile.Object(
            entity: node.objectID.entity.name ?? "",
            key: key(node),
            values: values,
            links: links
        )
    }

    private static func stored(_ row: Row, _ slot: Slot) -> BinaryPropertyList.Node? {
        switch slot.kind {
        case .int: .integer(row.int(slot.word))
        case .double: slot.type == .date ? .date(row.double(slot.word)) : .real(row.double(slot.word))
        case .string: .string(row.string(slot.word))
        case .decimal: .string(row.decimal(slot.word).description)
        case .uuid: .string(row.uuid(slot.word).uuidString)
        case .data: .data(row.data(slot.word))
        case .reference: nil
        }
    }

    private static func nodes(_ value: Any?) -> [NSAtomicStoreCacheNode] {
        switch value {
        case let one as NSAtomicStoreCacheNode: [one]
        case let set as Set<NSAtomicStoreCacheNode>: Array(set)
        case let array as [NSAtomicStoreCacheNode]: array
        default: []
        }
    }

    private func key(_ node: NSAtomicStoreCacheNode) -> Int64 {
        guard case .number(let key)? = StoreReference(referenceObject(for: node.objectID)) else { return 0 }
        return key
    }
}

extension NSAtomicStoreCacheNode {
    /// Sets an attribute, or an element of a composite attribute.
    fileprivate func set(_ value: Any, at path: ArraySlice<String>) {
        guard let first = path.first else { return }
        guard path.count > 1 else { return setValue(value, forKey: first) }
        var elements = self.value(forKey: first) as? [String: Any] ?? [:]
        Self.insert(value, at: path.dropFirst(), into: &elements)
        setValue(elements, forKey: first)
    }

    private static func insert(_ value: Any, at path: ArraySlice<String>, into elements: inout [String: Any]) {
        guard let first = path.first else { return }
        guard path.count > 1 else { return elements[first] = value }
        var inner = elements[first] as? [String: Any] ?? [:]
        insert(value, at: path.dropFirst(), into: &inner)
        elements[first] = inner
    }
}

// MARK: - Whole files

extension BinaryStore: WholeStore {
    /// Removes the file of a store that is not open.
    ///
    /// - Throws: The errors of opening it, unless the option forces it; and errors of removing. A missing file is no
    ///   error.
    package static func destroyStore(at url: URL, options: [AnyHashable: Any]?) throws {
        guard url.path != "/dev/null", FileManager.default.fileExists(atPath: url.path) else { return }
        if !StoreOption.flag(options?[NSPersistentStoreForceDestroyOption]) {
            _ = try BinaryStoreFile(contentsOf: url)
        }
        try FileManager.default.removeItem(at: url)
    }

    package static func discardStore(at url: URL) { try? FileManager.default.removeItem(at: url) }

    /// Copies the file of one store to the place of another, which need not exist.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if the destination is read-only; the errors of opening the source;
    ///   and errors of writing.
    package static func replaceStore(
        at destination: URL,
        _ destinationOptions: [AnyHashable: Any]?,
        withStoreAt source: URL,
        _ sourceOptions: [AnyHashable: Any]?
    ) throws {
        guard !StoreOption.flag(destinationOptions?[NSReadOnlyPersistentStoreOption]) else {
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [NSLocalizedDescriptionKey: "The store \(destination.path) is read-only."]
            )
        }
        _ = try existingFile(source)
        try WholeFile.write(try Data(contentsOf: source), to: destination)
    }

    /// Copies the file of a store, which is always complete, because each save replaces it at once.
    ///
    /// - Throws: `fileWriteFileExists` (516) if a file exists there; the errors of opening the source; and errors of
    ///   writing.
    package static func backUpStore(at url: URL, _ options: [AnyHashable: Any]?, to destination: URL) throws {
        guard !FileManager.default.fileExists(atPath: destination.path) else {
            throw CocoaError.described(
                .fileWriteFileExists,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(url.path) is not copied to \(destination.path): there is a file already.",
                    NSFilePathErrorKey: destination.path,
                ]
            )
        }
        _ = try existingFile(url)
        try WholeFile.write(try Data(contentsOf: url), to: destination)
    }
}
