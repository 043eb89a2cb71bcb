import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

/// One object that a transaction inserted, changed or deleted.
///
/// Immutable; any thread may use it.
///
/// ```swift
/// let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?))
/// for transaction in (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? [] {
///     for change in transaction.changes ?? [] where change.changeType == .insert { print(change.changedObjectID) }
/// }
/// ```
public final class NSPersistentHistoryChange: NSObject, NSCopying, @unchecked Sendable {
    // @unchecked Sendable: all properties are constants; a tombstone's values are property values, which no code
    // changes in place.

    private let record: HistoryChangeRecord
    private let owner: HistoryTransactionRecord
    private let store: OpenStore

    init(_ record: HistoryChangeRecord, of owner: HistoryTransactionRecord, in store: OpenStore) {
        self.record = record
        self.owner = owner
        self.store = store
    }

    /// A number that no other change of the store has or will have.
    public var changeID: Int64 { record.id }

    /// The ID of the object, in the coordinator whose history was read.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] where change.changeType != .delete {
    ///     print(context.object(with: change.changedObjectID))
    /// }
    /// ```
    public var changedObjectID: NSManagedObjectID {
        store.ids.id(key: record.key, layout: record.layout, store: store)
    }

    /// The kind of the change.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] where change.changeType == .insert { print(change.changedObjectID) }
    /// ```
    public var changeType: NSPersistentHistoryChangeType {
        // The raw values are the same.
        NSPersistentHistoryChangeType(rawValue: record.kind.rawValue) ?? .update
    }

    /// The values that are kept of a deleted object, by attribute name.
    ///
    /// It has the values of the attributes whose ``NSAttributeDescription/preservesValueInHistoryOnDeletion`` is set,
    /// except those that were nil. `nil` for other changes, and if the entity has no such attribute.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] where change.changeType == .delete {
    ///     print(change.tombstone?["name"] ?? "nothing is left")
    /// }
    /// ```
    public var tombstone: [AnyHashable: Any]? {
        record.tombstone.map { values in
            var shown = values
            for slot in record.layout.slots where slot.type == .transformable {
                guard let archive = values[slot.name] as? Data else { continue }
                shown[slot.name] = slot.attribute?.unarchived(archive)
            }
            return shown
        }
    }

    /// The transaction, without its changes.
    public var transaction: NSPersistentHistoryTransaction? { NSPersistentHistoryTransaction(owner, nil, in: store) }

    /// The properties that an update has changed, to-many relationships included; `nil` for other changes.
    ///
    /// Properties that the store computes may be included even if their values are the same as before.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] { print(change.updatedProperties?.map(\.name).sorted() ?? []) }
    /// ```
    public var updatedProperties: Set<NSPropertyDescription>? {
        record.updated.map { Set($0.descriptions.compactMap { $0 as? NSPropertyDescription }) }
    }

    // MARK: - Asking for changes by a predicate

    /// The entity that a fetch request for changes has.
    ///
    /// Its attributes have the names of the properties: `changeID`, `changedObjectID`, `changeType`, `tombstone`,
    /// `updatedProperties`. The attribute `changedEntity` can be compared with an entity, and `transaction` is a
    /// relationship.
    ///
    /// - Parameter context: Any context; it has no effect.
    /// - Returns: The entity.
    public class func entityDescription(with context: NSManagedObjectContext) -> NSEntityDescription? {
        HistoryModel.shared.change
    }

    /// The entity of ``entityDescription(with:)``; `nil` until the process has opened a store with a history.
    public class var entityDescription: NSEntityDescription? {
        HistoryUse.hasBegun ? HistoryModel.shared.change : nil
    }

    /// A fetch request for changes; `nil` until the process has opened a store with a history.
    ///
    /// Give it a predicate and pass it to ``NSPersistentHistoryChangeRequest/fetchHistory(withFetch:)``.
    public class var fetchRequest: NSFetchRequest<any NSFetchRequestResult>? {
        entityDescription.map(HistoryModel.request)
    }

    // MARK: - Identity

    /// Whether `object` is the same change of the same store.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPersistentHistoryChange else { return false }
        return other.record.id == record.id && other.store.store.identifier == store.store.identifier
    }

    /// Equal for equal changes.
    public override var hash: Int { record.id.hashValue }

    /// The change itself, which is immutable.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The change itself.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// A summary for logs.
    public override var description: String {
        "<NSPersistentHistoryChange \(changeID), \(changeType) of \(changedObjectID) in transaction \(owner.number)>"
    }
}

extension NSPersistentHistoryChange: PredicateEntityMember {
    package func predicateValue(forKey key: String) throws -> Any? {
        switch key {
        case "changeID": changeID
        case "changedObjectID": changedObjectID
        case "changedEntity": changedObjectID.entity
        case "changeType": changeType.rawValue
        case "tombstone": tombstone.map { NSDictionary(dictionary: $0) }
        case "updatedProperties": updatedProperties.map { Set($0.map(\.name)) }
        case "transaction": transaction
        case "self", "SELF": self
        default: throw PredicateEvaluationError("a history change has no property \"\(key)\"")
        }
    }

    package func isKind(ofEntityNamed name: String) -> Bool { HistoryModel.shared.change.isNamed(name) }
}
