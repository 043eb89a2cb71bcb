import CoreDataEssentials
import Foundation
import StrataPredicates

/// The entities of transactions and changes, for use in fetch requests.
///
/// No store holds objects of them: requests are answered from the history's own tables.
struct HistoryModel: Sendable {
    let transaction: NSEntityDescription
    let change: NSEntityDescription

    static let shared = HistoryModel()

    /// A request for one of the entities.
    static func request(_ entity: NSEntityDescription) -> NSFetchRequest<any NSFetchRequestResult> {
        let request = NSFetchRequest<any NSFetchRequestResult>()
        request.entity = entity
        return request
    }

    private init() {
        transaction = Self.entity(
            "Transaction",
            [
                ("author", .stringAttributeType), ("bundleID", .stringAttributeType),
                ("contextName", .stringAttributeType), ("processID", .stringAttributeType),
                ("storeID", .stringAttributeType), ("timestamp", .dateAttributeType),
                ("token", .transformableAttributeType), ("transactionNumber", .integer64AttributeType),
            ]
        )
        change = Self.entity(
            "Change",
            [
                ("changeID", .integer64AttributeType), ("changeType", .integer64AttributeType),
                ("changedObjectID", .objectIDAttributeType), ("changedEntity", .stringAttributeType),
                ("tombstone", .transformableAttributeType), ("updatedProperties", .transformableAttributeType),
            ]
        )
        let (changes, owner) = (NSRelationshipDescription(), NSRelationshipDescription())
        changes.name = "changes"
        changes.destinationEntity = change
        changes.maxCount = 0
        changes.inverseRelationship = owner
        owner.name = "transaction"
        owner.destinationEntity = transaction
        owner.maxCount = 1
        owner.inverseRelationship = changes
        transaction.properties.append(changes)
        change.properties.append(owner)
        let model = NSManagedObjectModel()
        model.entities = [change, transaction]
        model.freeze()
    }

    private static func entity(
        _ name: String,
        _ attributes: [(String, NSAttributeType)]
    ) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        entity.properties = attributes.map { name, type in
            let attribute = NSAttributeDescription()
            attribute.name = name
            attribute.attributeType = type
            // No store could keep IDs.
            attribute.isTransient = type == .objectIDAttributeType
            return attribute
        }
        return entity
    }
}
