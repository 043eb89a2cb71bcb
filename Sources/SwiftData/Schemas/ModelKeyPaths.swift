import CoreData
import Foundation
import StrataPredicates

/// Gives the names of model classes' key paths to predicates and sort descriptors.
enum ModelKeyPaths {
    /// Finds the objects of the context whose fetch is being translated.
    @TaskLocal static var identities: ModelIdentities?

    static let registered: Void = {
        KeyPathNamers.register(namer)
        KeyPathNamers.registerCasts { ($0 as? any PersistentModel.Type)?.record.entityName }
        KeyPathNamers.registerConstants { value in
            if let identifier = value as? PersistentIdentifier {
                return identities?.objectID(identifier) ?? absentObject(identifier.entityName)
            }
            if let model = value as? any PersistentModel {
                return model.backing.object?.objectID ?? absentObject(type(of: model).record.entityName)
            }
            return nil
        }
    }()

    /// An identifier that no object has, because an object that no store has is not the same as none.
    private static func absentObject(_ entityName: String) -> Any {
        guard let entity = identities?.model.entitiesByName[entityName] else { return NSNull() }
        return NSManagedObject(entity: entity, insertInto: nil).objectID
    }

    private static let namer: KeyPathNamers.Namer = { root in
        if let type = root as? any PersistentModel.Type { return { try name(of: $0, in: ModelRecord.of(type)) } }
        return StructureKeyPaths.names(of: root).map { names in { try name(of: $0, in: names) } }
    }

    private static func name(of keyPath: AnyKeyPath, in names: [AnyKeyPath: String]) throws -> String {
        if let name = names[keyPath] { return name }
        throw PredicateTranslationError(
            "SwiftData: the key path \(keyPath) is no stored property of its structure, and cannot be used by a store."
        )
    }

    private static func name(of keyPath: AnyKeyPath, in record: ModelRecord) throws -> String {
        if let property = record.propertyIfStored(keyPath) {
            // The value of an enumeration is the only element of a composite of the same name.
            if case .attribute(.rawValue(_, let element, _)) = property.kind { return "\(property.name).\(element)" }
            return property.name
        }
        if isIdentifier(keyPath, of: record.type) { return "objectID" }
        throw PredicateTranslationError(
            "SwiftData: the key path \(keyPath) is no stored property of \(record.type), and cannot be used by a store."
        )
    }

    private static func isIdentifier<Model: PersistentModel>(_ keyPath: AnyKeyPath, of type: Model.Type) -> Bool {
        // Without its type this would be the key path of the protocol `Identifiable`, which no program writes.
        let identifier: KeyPath<Model, PersistentIdentifier> = \.id
        return keyPath == \Model.persistentModelID || keyPath == identifier
    }
}

/// Finds the managed objects of identifiers.
struct ModelIdentities: @unchecked Sendable {
    // @unchecked Sendable: it is used during one fetch, on the thread of the fetch.
    let model: NSManagedObjectModel
    let objectID: (PersistentIdentifier) -> NSManagedObjectID?
}
