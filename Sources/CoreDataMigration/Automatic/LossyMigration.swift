import CoreDataContainer
import CoreDataEssentials
import Foundation
import StrataKeys
import StrataLocks
import StrataPredicates
import StrataRows

/// Option: a Boolean; an inferred migration of the store may lose data.
///
/// It may drop rows and values for which the new version of the model has no place, and may lead back to a version that
/// the store has left.
///
/// Default false: such a migration is refused with `migration` (134110), whose text lists the losses, and the store
/// stays as it is. Without the refusal, a program of an earlier version that opens the store would drop data that later
/// versions have added. With true the migration works as in Apple's framework. The process argument
/// `-com.apple.CoreData.AllowsLossyMigration 1`, or the environment variable of that name, sets the option for all
/// stores.
///
/// The option has no effect on mapping models and stages, because they define what happens to values. An addition to
/// Apple's API.
public let NSPersistentStoreAllowsLossyMigrationOption = "NSPersistentStoreAllowsLossyMigrationOption"

extension NSPersistentStoreDescription {
    /// Whether an inferred migration of the store may drop rows and values.
    ///
    /// Default false. The option is ``NSPersistentStoreAllowsLossyMigrationOption``, which describes the details. An
    /// addition to Apple's API.
    public final var allowsLossyMigration: Bool {
        get { StoreOption.flag(options[NSPersistentStoreAllowsLossyMigrationOption]) }
        set { setOption(NSNumber(value: newValue), forKey: NSPersistentStoreAllowsLossyMigrationOption) }
    }
}

/// Checks whether an inferred migration may drop data of a store, and finds that data.
enum LossyMigration {
    /// Whether values may be dropped, by the store's options or by an argument of the process.
    static func isAllowed(_ options: [AnyHashable: Any]) -> Bool {
        if FaultGuard.lossCheck.isOff { return true }
        return isAllowedInProcess || StoreOption.flag(options[NSPersistentStoreAllowsLossyMigrationOption])
    }

    private static let isAllowedInProcess = MigrationLog.isSet("com.apple.CoreData.AllowsLossyMigration")

    /// Refuses to migrate a store back to a version that it has left.
    ///
    /// - Throws: `migration` (134110).
    static func requireNew(
        _ model: NSManagedObjectModel,
        configuration: String?,
        forStoreAt url: URL,
        metadata: [String: Any]
    ) throws {
        let hashes = model.versionHashes(forConfigurationName: configuration)
        guard let hashes, EarlierModels.contain(hashes, in: metadata) else { return }
        throw MigrationFailure.error(
            .migration,
            "The store \(url.placeName) was not migrated, and is as it was: a later version of the program has migrated it from version \(model.versionChecksum) of the model, which is this program's. Use the later version. \(MigrationErrors.lossAdvice)",
            url: url
        )
    }

    /// The rows and values of a store that an inferred mapping would drop.
    ///
    /// - Parameters:
    ///   - mapping: A mapping from the model of the store.
    ///   - stack: The store.
    /// - Returns: The losses, with the number of objects.
    /// - Throws: Errors of the store.
    static func losses(_ mapping: InferredMapping, in stack: MigrationStack) throws -> [RowFinding] {
        try stack.context.performAndWait {
            try mapping.entities.flatMap { entity -> [RowFinding] in
                guard let source = entity.source, let name = source.name else { return [] }
                guard entity.destination != nil else {
                    let count = try count(name, where: nil, in: stack)
                    return count == 0
                        ? [] : [finding(name, property: nil, reason: "the entity goes, with \(count) objects")]
                }
                let properties = try entity.lostProperties(mapping).compactMap { property in
                    let isToMany = (property as? NSRelationshipDescription)?.isToMany == true
                    let kind = property is NSRelationshipDescription ? "relationship" : "attribute"
                    return try loss(
                        of: kind,
                        format: isToMany ? "%K.@count > 0" : "%K != nil",
                        entity: name,
                        path: property.name,
                        stack: stack
                    )
                }
                let elements = try entity.lostElements.compactMap { path in
                    try loss(of: "element", format: "%K != nil", entity: name, path: path, stack: stack)
                }
                return properties + elements
            }
        }
    }

    /// The finding of a property or an element that goes; `nil` if no object has a value there.
    private static func loss(
        of kind: String,
        format: String,
        entity: String,
        path: String,
        stack: MigrationStack
    ) throws -> RowFinding? {
        let count = try count(entity, where: NSPredicate(format: format, path), in: stack)
        return count == 0
            ? nil : finding(entity, property: path, reason: "the \(kind) goes, with the values of \(count) objects")
    }

    private static func count(
        _ entity: String,
        where predicate: NSPredicate?,
        in stack: MigrationStack
    ) throws -> Int {
        let request = stack.request(entity)
        request.predicate = predicate
        return try stack.context.count(for: request)
    }

    private static func finding(_ entity: String, property: String?, reason: String) -> RowFinding {
        RowFinding(entity: entity, property: property, reason: reason)
    }
}

extension InferredEntity {
    /// The stored properties of the source that are dropped.
    ///
    /// Derived attributes, and relationships with a kept inverse, are not included.
    fileprivate func lostProperties(_ mapping: InferredMapping) -> [NSPropertyDescription] {
        guard let source else { return [] }
        let kept = Set(attributes.compactMap { $0.source?.name } + relationships.compactMap { $0.source?.name })
        return source.properties.filter { property in
            guard property.isPersistent, !kept.contains(property.name), !(property is NSDerivedAttributeDescription)
            else { return false }
            guard let inverse = (property as? NSRelationshipDescription)?.inverseRelationship else { return true }
            return !mapping.entities.contains { entity in
                entity.relationships.contains {
                    $0.source?.name == inverse.name && $0.source?.entity.name == inverse.entity.name
                }
            }
        }.sorted { $0.name < $1.name }
    }

    /// The key paths of the elements that composite attributes of the source lose, although the attributes stay.
    fileprivate var lostElements: [String] {
        attributes.flatMap { Self.lostElements(of: $0, path: $0.source?.name ?? "") }.sorted()
    }

    private static func lostElements(of attribute: InferredAttribute, path: String) -> [String] {
        guard let former = attribute.source as? NSCompositeAttributeDescription else { return [] }
        let kept = Set(attribute.elements.compactMap { $0.source?.name })
        let lost = former.elements.filter { !kept.contains($0.name) }.flatMap { leaves(of: $0, path: path) }
        return lost + attribute.elements.flatMap { lostElements(of: $0, path: "\(path).\($0.source?.name ?? "")") }
    }

    /// The key paths of the values in an element: its own, or those of its elements.
    private static func leaves(of element: NSAttributeDescription, path: String) -> [String] {
        let path = "\(path).\(element.name)"
        guard let composite = element as? NSCompositeAttributeDescription else { return [path] }
        return composite.elements.flatMap { leaves(of: $0, path: path) }
    }
}
