import Foundation
import StrataRows

/// An object that a context wants to save, but that was saved or deleted elsewhere after the context read it.
///
/// Snapshots hold attributes and the IDs of to-one relationships, not to-many contents. Confined to the queue of the
/// source object's context.
///
/// See <doc:Saving>.
///
/// ```swift
/// let other = container.newBackgroundContext()
/// try await other.perform(retrying: 0) { (try other.existingObject(with: id) as? Venue)?.price = 1 }
/// venue.price = 2
/// do { try context.save() } catch let error as NSError {
///     for case let conflict as NSMergeConflict in error.userInfo["conflictList"] as? [Any] ?? [] {
///         print(conflict.objectSnapshot?["price"] ?? "", conflict.persistedSnapshot?["price"] ?? "")
///     }
/// }
/// ```
public final class NSMergeConflict: NSObject {
    /// The object in the context that saves.
    public let sourceObject: NSManagedObject
    /// The version that the context's changes are based on.
    public let oldVersionNumber: Int
    /// The version that is stored now; 0 if the object was deleted.
    public let newVersionNumber: Int
    /// The values that the context last read.
    public let objectSnapshot: [String: Any]?
    /// The values in the coordinator's row cache; the newer ones if the conflict is between the context and the cache.
    public let cachedSnapshot: [String: Any]?
    /// The values in the store, if the conflict is between the cache and the store.
    public let persistedSnapshot: [String: Any]?

    /// The stored row that conflicts with the changes; `nil` if it was deleted, or if a program made the conflict
    /// itself.
    let newerRow: Row?
    /// The row that the context's changes are based on; `nil` if a program made the conflict itself.
    let baseRow: Row?

    /// Describes a conflict.
    ///
    /// - Parameters:
    ///   - srcObject: The object that is being saved.
    ///   - newvers: The version stored now; 0 for a deleted object.
    ///   - oldvers: The version that the context's changes are based on.
    ///   - cachesnap: The values in the row cache.
    ///   - persnap: The values in the store.
    public init(
        source srcObject: NSManagedObject,
        newVersion newvers: Int,
        oldVersion oldvers: Int,
        cachedSnapshot cachesnap: [String: Any]?,
        persistedSnapshot persnap: [String: Any]?
    ) {
        sourceObject = srcObject
        newVersionNumber = newvers
        oldVersionNumber = oldvers
        objectSnapshot = srcObject.baseRow.map { srcObject.snapshot(of: $0) }
        cachedSnapshot = cachesnap
        persistedSnapshot = persnap
        newerRow = nil
        baseRow = nil
    }

    /// Describes a conflict of a child with its parent, where the parent's row is newer, or was deleted.
    ///
    /// Version numbers count saves to a store. Changes that the parent has not saved count as one more version.
    init(inTree source: NSManagedObject, base: Row, newer: Row?) {
        sourceObject = source
        oldVersionNumber = NSMergeConflict.number(base.version, source)
        newVersionNumber = newer.map { NSMergeConflict.number(max($0.version, base.version &+ 1), source) } ?? 0
        objectSnapshot = source.snapshot(of: base)
        newerRow = newer
        baseRow = base
        cachedSnapshot = newer.map { source.snapshot(of: $0) }
        persistedSnapshot = nil
    }

    /// Describes a conflict that a store has found.
    ///
    /// - Parameters:
    ///   - source: The object that could not be saved.
    ///   - base: The row that the context last read; `nil` for a row that it only has relationships to.
    ///   - newer: The row in the store; `nil` if it was deleted.
    ///   - cached: The row that the row cache had before.
    init(source: NSManagedObject, base: Row?, newer: Row?, cached: Row?) {
        sourceObject = source
        oldVersionNumber = NSMergeConflict.number(base?.version ?? cached?.version ?? 0, source)
        newVersionNumber = NSMergeConflict.number(newer?.version ?? 0, source)
        objectSnapshot = base.map { source.snapshot(of: $0) }
        newerRow = newer
        baseRow = base
        if let newer, let cached, cached.version >= newer.version {
            cachedSnapshot = source.snapshot(of: newer)
            persistedSnapshot = nil
        } else {
            cachedSnapshot = (cached ?? base).map { source.snapshot(of: $0) }
            persistedSnapshot = newer.map { source.snapshot(of: $0) }
        }
    }

    /// The number by which a version is shown to users.
    private static func number(_ version: Int64, _ object: NSManagedObject) -> Int {
        let store = object.context?.openStore(at: max(0, object.storeIndex))
        return Int(RowVersion.shown(version, store?.rows.versionForm ?? .counted))
    }

    /// The object, the versions and the properties that differ.
    public override var description: String {
        let newer = persistedSnapshot ?? cachedSnapshot
        let names = (newVersionNumber == 0 ? [:] : newer ?? [:]).keys.filter { key in
            (newer?[key] as? AnyHashable) != (objectSnapshot?[key] as? AnyHashable)
        }
        return
            "NSMergeConflict for \(sourceObject.objectID): the context read version \(oldVersionNumber), stored is \(newVersionNumber == 0 ? "nothing any more" : "version \(newVersionNumber)")\(names.isEmpty ? "" : ", which differs in \(names.sorted().joined(separator: ", "))")"
    }
}

/// Objects that cannot all be stored because a uniqueness constraint allows only one of them.
///
/// Confined to the queue of the objects' context.
///
/// See <doc:Saving>.
///
/// ```swift
/// City(context: context).name = "Lund"  // there is one
/// do { try context.save() } catch let error as NSError {
///     for case let conflict as NSConstraintConflict in error.userInfo["conflictList"] as? [Any] ?? [] {
///         print(conflict.constraint, conflict.conflictingObjects.count)
///     }
/// }
/// ```
public final class NSConstraintConflict: NSObject {
    /// The names of the attributes that must be unique together.
    public let constraint: [String]
    /// The values that collide; nil values are `NSNull`.
    public let constraintValues: [String: Any]
    /// The stored object that has the values already; `nil` if the collision is among unsaved objects.
    public let databaseObject: NSManagedObject?
    /// The values in the store of ``databaseObject``.
    public let databaseSnapshot: [String: Any]?
    /// The objects of the context that have the values.
    ///
    /// There is one if there is a ``databaseObject``, else there are two or more. The array is empty for a batch
    /// insert, which makes no objects.
    public let conflictingObjects: [NSManagedObject]
    /// The values that the context last read of each of ``conflictingObjects``; empty dictionaries for new objects.
    public let conflictingSnapshots: [[AnyHashable: Any]]

    /// The stored row of `databaseObject`.
    let databaseRow: Row?

    /// Makes an empty conflict, as a placeholder.
    public override convenience init() {
        self.init(constraint: [], databaseObject: nil, databaseSnapshot: nil, objects: [], snapshots: [], row: nil)
    }

    /// Describes a conflict.
    ///
    /// - Parameters:
    ///   - constraint: The names of the attributes.
    ///   - databaseObject: The stored object with the values, if there is one.
    ///   - databaseSnapshot: The values of that object in the store.
    ///   - conflictingObjects: The context's objects with the values.
    ///   - conflictingSnapshots: The values of those objects that the context last read.
    public convenience init(
        constraint: [String],
        database databaseObject: NSManagedObject?,
        databaseSnapshot: [AnyHashable: Any]?,
        conflicting conflictingObjects: [NSManagedObject],
        conflictingSnapshots: [Any]
    ) {
        self.init(
            constraint: constraint,
            databaseObject: databaseObject,
            databaseSnapshot: databaseSnapshot as? [String: Any],
            objects: conflictingObjects,
            snapshots: conflictingSnapshots.map { $0 as? [AnyHashable: Any] ?? [:] },
            row: nil
        )
    }

    init(
        constraint: [String],
        databaseObject: NSManagedObject?,
        databaseSnapshot: [String: Any]?,
        objects: [NSManagedObject],
        snapshots: [[AnyHashable: Any]],
        row: Row?
    ) {
        self.constraint = constraint
        self.databaseObject = databaseObject
        self.databaseSnapshot = databaseSnapshot
        conflictingObjects = objects
        conflictingSnapshots = snapshots
        databaseRow = row
        constraintValues = objects.first?.dictionaryWithValues(forKeys: constraint) ?? [:]
    }

    /// Describes a conflict of a row of a batch insert, for which there is no object.
    package init(
        constraint: [String],
        values: [String: Any],
        databaseObject: NSManagedObject?,
        databaseSnapshot: [String: Any]?
    ) {
        self.constraint = constraint
        constraintValues = values
        self.databaseObject = databaseObject
        self.databaseSnapshot = databaseSnapshot
        conflictingObjects = []
        conflictingSnapshots = []
        databaseRow = nil
    }

    /// The constraint, the values and the objects.
    public override var description: String {
        let values = constraint.map { "\($0) = \(constraintValues[$0] ?? "nil")" }.joined(separator: ", ")
        return "NSConstraintConflict: \(collision(over: values))"
    }

    /// The constraint and the objects, without values.
    var summary: String { collision(over: "the same " + constraint.joined(separator: ", ")) }

    private func collision(over what: String) -> String {
        let objects =
            conflictingObjects.isEmpty ? "a row" : conflictingObjects.map { "\($0.objectID)" }.joined(separator: ", ")
        let others = databaseObject.map { "the stored \($0.objectID)" } ?? "one another"
        return "\(objects) with \(what) collide with \(others)"
    }
}

extension NSManagedObject {
    /// A row's attributes and to-one IDs by name; nil values are `NSNull`.
    package final func snapshot(of row: Row) -> [String: Any] {
        var result: [String: Any] = [:]
        for slot in layout.slots where !slot.name.utf8.contains(UInt8(ascii: ".")) {
            result[slot.name] = publicValue(of: slot, in: row) ?? NSNull()
        }
        for composite in layout.composites { result[composite.name] = compositeValue(composite, in: row) ?? NSNull() }
        return result
    }
}
