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
    // @unchecked Sendable: all constants; a tombstone's values are property values, which nobody changes in place.

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

    /// The ID of the object, in the coordinator that the history was asked of.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] where change.changeType != .delete {
    ///     print(context.object(with: change.changedObjectID))
    /// }
    /// ```
    public var changedObjectID: NSManagedObjectID {
        store.ids.id(key: record.key, layout: record.layout, store: store)
    }

    /// What was done.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] where change.changeType == .insert { print(change.changedObjectID) }
    /// ```
    public var changeType: NSPersistentHistoryChangeType {
        // The raw values are the same.
        NSPersistentHistoryChangeType(rawValue: record.kind.rawValue) ?? .update
    }

    /// What is left of a deleted object: the values of the attributes whose
    /// ``NSAttributeDescription/preservesValueInHistoryOnDeletion`` is set, by name, but for those that were nil.
    ///
    /// `nil` for other changes, and if the entity has no such attribute.
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
    /// Properties that the store computes may be among them though they came out as before.
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
    /// `updatedProperties`; there is `changedEntity`, to be compared with an entity, and `transaction` is a relationship.
    ///
    /// - Parameter context: Any context; without effect.
    /// - Returns: The entity.
    public class func entityDescription(with context: NSManagedObjectContext) -> NSEntityDescription? {
        HistoryModel.shared.change
    }

    /// As ``entityDescription(with:)``; `nil` as long as the process has opened no store with a history.
    public class var entityDescription: NSEntityDescription? {
        HistoryModel.isInUse ? HistoryModel.shared.change : nil
    }

    /// A fetch request for changes, to be given a predicate and handed to
    /// ``NSPersistentHistoryChangeRequest/fetchHistory(withFetch:)``; `nil` as long as the process has opened no store with a
    /// history.
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

    /// The facts, for logs.
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
