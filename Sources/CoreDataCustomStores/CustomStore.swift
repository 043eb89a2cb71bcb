import CoreDataEssentials
import Foundation
import StrataLocks
import StrataPredicates
import StrataRows

/// A custom store that knows the references of its objects.
package protocol ReferenceStore: CustomStore {
    var names: StoreNames { get }
    var turn: StoreTurn { get }
    /// Whether no object with the key was ever read or saved.
    func isNew(_ key: Int64, _ layout: EntityLayout) -> Bool
}

extension ReferenceStore {
    package var place: String { url?.placeName ?? "" }

    package var takesBatches: Bool { false }

    package func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        throw refused("takes no batches.", code: .persistentStoreUnsupportedRequestType)
    }

    /// Calls methods of the store's class, for the context in whose scope the caller is.
    ///
    /// If there is no such context, for example when a store is migrated, then one is made for the call.
    ///
    /// - Throws: `persistentStoreTimeout` (134090), `persistentStoreOperation` (134070) for a store that was removed,
    ///   and errors of the store.
    func ask<T>(_ body: (NSManagedObjectContext) throws -> T) throws -> T {
        guard let coordinator = persistentStoreCoordinator else { throw closed }
        return try turn.take {
            guard names.entry != nil else { throw closed }
            if let context = ConfinementScope.innermost as? NSManagedObjectContext, context.coordinator === coordinator
            {
                return try body(context)
            }
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return try context.performAndWait { try body(context) }
        }
    }

    private var closed: CocoaError {
        refused("is closed: it was removed from its coordinator, or never added to one.")
    }

    package func retire(_ body: () throws -> Void) throws {
        try turn.take {
            try body()
            // A call that has waited for the turn is refused.
            names.entry = nil
        }
    }

    package func lastKeys(_ roots: [Int]) throws -> [Int: Int64] {
        Dictionary(uniqueKeysWithValues: roots.map { ($0, names.table.lastKey($0)) })
    }

    /// The error if a store did not do what its class has to do.
    ///
    /// - Parameters:
    ///   - what: The problem: the rest of a sentence that begins with the name of the class.
    ///   - code: The code of the error.
    ///   - underlying: The cause.
    /// - Returns: The error.
    func refused(
        _ what: String,
        code: CocoaError.Code = .persistentStoreOperation,
        underlying: (any Error)? = nil
    ) -> CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: "\(Swift.type(of: self)) \(what)",
            NSAffectedStoresErrorKey: [self],
        ]
        userInfo[NSUnderlyingErrorKey] = underlying
        let error = CocoaError.described(code, userInfo: userInfo)
        return code == .persistentStoreOperation ? error.marked(.environment) : error
    }

    /// The ID under which contexts know the object of a key, and the layout of the object's own entity.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a key without a reference by the store.
    func id(ofKey key: Int64, in layout: EntityLayout) throws -> (id: NSManagedObjectID, layout: EntityLayout) {
        guard let entry = names.entry, let entity = names.table.entity(of: key, root: layout.rootNumber) else {
            throw refused("knows no object with the key \(key) of entity \(layout.entity.name ?? "").")
        }
        let own = layout.schema.entities[entity - 1]
        return (entry.ids.id(key: key, layout: own, store: entry), own)
    }

    /// The position of the store among those of its coordinator; negative while it is in none.
    var storeIndex: Int32 { Int32(names.entry?.index ?? -1) }

    /// Whether an ID names the object of a key.
    func isID(_ id: NSManagedObjectID, ofKey key: Int64, in layout: EntityLayout) -> Bool {
        let (known, store) = id.current
        return known == key && store != nil && store === names.entry && id.layout.rootNumber == layout.rootNumber
    }

    /// The reference of an ID that the store returned.
    ///
    /// - Parameters:
    ///   - value: The value that the store returned.
    ///   - entity: The required entity of the object.
    ///   - what: The place where the store returned it, for the error.
    /// - Returns: The reference.
    /// - Throws: `persistentStoreOperation` (134070) for any value except an ID of this store and of `entity` or its
    ///   sub-entities.
    func reference(
        givenAs value: Any,
        of entity: EntityLayout,
        _ what: @autoclosure () -> String
    ) throws -> ObjectReference {
        let id: NSManagedObjectID
        switch value {
        case let value as NSManagedObjectID: id = value
        case let object as NSManagedObject: id = object.objectID
        case let node as NSAtomicStoreCacheNode: id = node.objectID
        default:
            throw refused("gave \(Swift.type(of: value)) for \(what()), where the ID of an object belongs.")
        }
        let (key, store) = id.current
        guard let store, store === names.entry else {
            throw refused(
                "gave \(id) for \(what()), which is no ID of this store. Make IDs with newObjectID(for:referenceObject:), or objectID(for:withReferenceObject:) in an atomic store."
            )
        }
        let number = names.table.entity(of: key, root: id.layout.rootNumber) ?? id.layout.number
        // If a relationship has referred to the object by a super-entity before, then that number is recorded.
        guard entity.entity.frozen.subtree.contains(number) else {
            throw refused(
                "gave \(id) for \(what()), which is not of entity \(entity.entity.name ?? "") or one below it."
            )
        }
        return ObjectReference(key: key, entity: number)
    }

    // MARK: - Registrations

    package var isNotifiedOfRegistrations: Bool { false }

    package func noteRegistration(_ id: NSManagedObjectID, isRegistered: Bool) {}

    package func deliverRegistrations() {}

    // MARK: - Methods that only contexts use

    package func reserveKeys(_ counts: [Int: Int]) throws -> [Int: [Range<Int64>]] {
        throw refused("names its objects itself, and cannot set keys aside.")
    }

    package func save(
        _ changes: StoreChanges,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws -> [StoreConflict] {
        throw refused(
            "is saved by contexts only. Insert the objects into a context instead of migrating a store to it."
        )
    }

    // MARK: - URIs

    package func uriText(ofKey key: Int64, in layout: EntityLayout) -> String {
        names.table.reference(of: key, root: layout.rootNumber)?.uriText ?? "\(key)"
    }

    package func key(fromURIText text: Substring, of layout: EntityLayout) -> Int64? {
        StoreReference(uriText: text).map { names.table.key(of: $0, nil, in: layout) }
    }

    /// The result of ``key(fromURIText:of:)``, but `nil` for an object that was never requested.
    package func knownKey(fromURIText text: Substring, of layout: EntityLayout) -> Int64? {
        StoreReference(uriText: text).flatMap { names.table.knownKey(of: $0, in: layout) }
    }

    // MARK: - Metadata

    /// Checks the store's metadata, and adds the model's version hashes.
    ///
    /// - Throws: `persistentStoreOpen` (134080) without a type or a UUID that is allowed in a URI;
    ///   `persistentStoreIncompatibleVersionHash` (134100) for hashes that do not fit the model.
    package func checkMetadata(_ model: NSManagedObjectModel) throws {
        var known: [String: Any] = metadata ?? [:]
        guard let uuid = known[NSStoreUUIDKey] as? String, Self.isHost(uuid) else {
            throw refused(
                "gave no usable NSStoreUUIDKey in its metadata. Set it in loadMetadata(), to a text of letters, digits, \"-\", \".\" and \"_\".",
                code: .persistentStoreOpen
            )
        }
        guard let type = known[NSStoreTypeKey] as? String, !type.isEmpty else {
            throw refused(
                "gave no NSStoreTypeKey in its metadata. Set it in loadMetadata().",
                code: .persistentStoreOpen
            )
        }
        if identifier != uuid { identifier = uuid }
        guard known[NSStoreModelVersionHashesKey] == nil else { return try checkVersion(model, known) }
        known[NSStoreModelVersionHashesKey] = model.versionHashes(forConfigurationName: modelConfiguration)
        known[NSStoreModelVersionIdentifiersKey] = model.versionIdentifiers.compactMap { $0 as? String }.sorted()
        metadata = known
    }

    /// Checks that the store was made with this version of the model, if its metadata contain a version.
    ///
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100) for hashes that do not fit, with the metadata.
    package func checkVersion(_ model: NSManagedObjectModel, _ found: [String: Any]) throws {
        guard found[NSStoreModelVersionHashesKey] != nil,
            !StoreOption.flag(options?[NSIgnorePersistentStoreVersioningOption]),
            !model.isConfiguration(withName: modelConfiguration, compatibleWithStoreMetadata: found)
        else { return }
        let differing = model.entitiesThatDiffer(fromStoreMetadata: found, configuration: modelConfiguration)
        let error = refused(
            "was made with another version of the model. Entities that differ: \(differing.joined(separator: ", ")).",
            code: .persistentStoreIncompatibleVersionHash
        )
        throw CocoaError.described(error.code, userInfo: error.userInfo.merging(["metadata": found]) { $1 })
    }

    private var modelConfiguration: String? {
        configurationName == defaultConfigurationName ? nil : configurationName
    }

    private static func isHost(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

/// The IDs of one custom store, and their references.
///
/// Any thread may call any member.
package final class StoreNames: Sendable {
    let table = ReferenceTable()

    private struct Entry {
        weak var entry: OpenStore?
    }

    private let place = Locked(Entry())

    /// The coordinator's entry for the store; `nil` before it is added and after it is removed.
    var entry: OpenStore? {
        get { place.withLock { $0.entry } }
        set { place.withLock { $0.entry = newValue } }
    }

    /// The ID of the object with the store's reference `object`.
    ///
    /// If the reference is neither a text nor an integer, or the store has not been added, then the ID refers to no
    /// object and is refused wherever it is used.
    func id(entity: NSEntityDescription, object: Any, coordinator: NSPersistentStoreCoordinator?)
        -> NSManagedObjectID
    {
        // An entity of another copy of the model stands for the entity with the same name.
        guard let known = coordinator?.frozenModel.entitiesByName[entity.name ?? ""] else {
            fatalError(
                "CoreData: an ID was asked for entity \"\(entity.name ?? "")\", which the model of the store's coordinator does not have. Make IDs once the store is added (in load() at the earliest), for entities of that model."
            )
        }
        guard let reference = StoreReference(object), let entry else {
            return NSManagedObjectID.leadingNowhere(known.layout)
        }
        let key = table.key(of: reference, object, in: known.layout)
        return entry.ids.id(key: key, layout: known.layout, store: entry)
    }

    /// The reference object of an ID.
    ///
    /// `nil` for an ID of another store, or a temporary one.
    func object(of id: NSManagedObjectID) -> Any? {
        let (key, store) = id.current
        guard let store, store === entry else { return nil }
        return table.object(of: key, root: id.layout.rootNumber)
    }
}
