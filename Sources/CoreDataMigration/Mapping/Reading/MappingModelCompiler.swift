import CoreDataEssentials
import CoreDataModelFiles
import StrataArchives
import StrataPredicates

/// Compiles a mapping model in Xcode's editable form, with the same result as Xcode's compiler.
struct MappingModelCompiler {
    private let edited: EditedMappingModel
    private let models: MappingModelFile.Models
    private let sourceHashes: [String: Data]
    private let destinationHashes: [String: Data]

    init(_ edited: EditedMappingModel, _ models: MappingModelFile.Models) {
        self.edited = edited
        self.models = models
        sourceHashes = models.source.entityVersionHashesByName
        destinationHashes = models.destination.entityVersionHashesByName
    }

    /// The mappings, in order.
    func mappings() throws(ModelError) -> [NSEntityMapping] {
        var mappings: [NSEntityMapping] = []
        for entity in edited.entities { mappings.append(try mapping(entity)) }
        return mappings
    }

    private func mapping(_ edited: EditedMappingModel.Entity) throws(ModelError) -> NSEntityMapping {
        let mapping = NSEntityMapping()
        let name = edited.name ?? NSEntityMapping.defaultName(source: edited.source, destination: edited.destination)
        mapping.name = name
        mapping.sourceEntityName = edited.source
        mapping.destinationEntityName = edited.destination
        let source = try entity(named: edited.source, in: models.source, side: "source", mapping: name)
        _ = try entity(named: edited.destination, in: models.destination, side: "destination", mapping: name)
        mapping.sourceEntityVersionHash = edited.source.flatMap { sourceHashes[$0] }
        mapping.destinationEntityVersionHash = edited.destination.flatMap { destinationHashes[$0] }
        mapping.entityMigrationPolicyClassName = edited.policy
        mapping.mappingType = type(of: edited, mapping)
        mapping.userInfo = try edited.userInfo.map { (data) throws(ModelError) in try userInfo(data, name) }
        mapping.sourceExpression = try sourceExpression(edited, name)
        var attributes: [NSPropertyMapping] = []
        for property in edited.attributes {
            attributes.append(try self.property(property, mapping: name) { attributeValue(property, source) })
        }
        mapping.attributeMappings = attributes
        var relationships: [NSPropertyMapping] = []
        for property in edited.relationships {
            relationships.append(try self.property(property, mapping: name) { relationshipValue(property, source) })
        }
        mapping.relationshipMappings = relationships
        return mapping
    }

    private func entity(
        named name: String?,
        in model: NSManagedObjectModel,
        side: String,
        mapping: String
    ) throws(ModelError) -> NSEntityDescription? {
        guard let name else { return nil }
        if let entity = model.entitiesByName[name] { return entity }
        throw ModelError(.malformed, "mapping \"\(mapping)\" names entity \(name), which is not in the \(side) model")
    }

    private func type(of edited: EditedMappingModel.Entity, _ mapping: NSEntityMapping) -> NSEntityMappingType {
        if edited.policy != nil { return .customEntityMappingType }
        if edited.source == nil { return .addEntityMappingType }
        if edited.destination == nil { return .removeEntityMappingType }
        return mapping.sourceEntityVersionHash == mapping.destinationEntityVersionHash
            && edited.source == edited.destination ? .copyEntityMappingType : .transformEntityMappingType
    }

    // MARK: - Values

    private func property(
        _ edited: EditedMappingModel.Property,
        mapping: String,
        generated: () -> NSExpression?
    ) throws(ModelError) -> NSPropertyMapping {
        let property = NSPropertyMapping()
        property.name = edited.name
        property.userInfo = try edited.userInfo.map { (data) throws(ModelError) in try userInfo(data, mapping) }
        if let data = edited.expression {
            do {
                property.valueExpression = try ArchivedExpression.expression(archivedIn: data)
            } catch {
                throw ModelError(
                    .malformed,
                    "the value expression of \"\(edited.name)\" in mapping \"\(mapping)\" cannot be read: \(error.reason)"
                )
            }
        } else {
            property.valueExpression = generated()
        }
        return property
    }

    private func attributeValue(
        _ property: EditedMappingModel.Property,
        _ source: NSEntityDescription?
    ) -> NSExpression? {
        guard source?.attributesByName[property.name] != nil else { return nil }
        return MappingExpressions.source(property.name)
    }

    private func relationshipValue(
        _ property: EditedMappingModel.Property,
        _ source: NSEntityDescription?
    ) -> NSExpression? {
        if let path = property.keyPath, let mapping = property.mappingName {
            let prefix = "$source."
            let key = path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path
            return MappingExpressions.destinations(mapping: mapping, MappingExpressions.source(key))
        }
        guard let relationship = source?.relationshipsByName[property.name] else { return nil }
        let members = MappingExpressions.source(property.name)
        let destination = relationship.destinationEntity
        let carriers = edited.entities.filter { $0.source != nil && $0.source == destination?.name }
        if carriers.count == 1, destination?.subentities.isEmpty ?? true, let carrier = carriers.first {
            let name =
                carrier.name ?? NSEntityMapping.defaultName(source: carrier.source, destination: carrier.destination)
            return MappingExpressions.destinations(mapping: name, members)
        }
        return MappingExpressions.destinations(relationship: property.name, members)
    }

    private func sourceExpression(
        _ edited: EditedMappingModel.Entity,
        _ mapping: String
    ) throws(ModelError) -> NSExpression? {
        guard let source = edited.source else { return nil }
        if let data = edited.sourceExpression {
            do {
                return try ArchivedExpression.expression(archivedIn: data)
            } catch {
                throw ModelError(
                    .malformed,
                    "the source expression of mapping \"\(mapping)\" cannot be read: \(error.reason)"
                )
            }
        }
        if let predicate = edited.predicate {
            do { _ = try NSPredicate(validating: predicate) } catch {
                throw ModelError(.malformed, "the filter of mapping \"\(mapping)\" is no predicate")
            }
        }
        return MappingExpressions.objects(of: source, predicate: edited.predicate ?? "TRUEPREDICATE")
    }

    private func userInfo(_ data: Data, _ mapping: String) throws(ModelError) -> [AnyHashable: Any] {
        guard let archive = try? KeyedArchive(data),
            let value = ArchivedValues(archive).value(archive.root) as? [AnyHashable: Any]
        else { throw ModelError(.malformed, "the user info of mapping \"\(mapping)\" cannot be read") }
        return value
    }
}

/// The expressions that Xcode's compiler and inference make.
enum MappingExpressions {
    /// The value at a key path of the source object.
    static func source(_ path: String) -> NSExpression {
        KeyPathFunction.make(NSExpression(forVariable: NSMigrationSourceObjectKey), path)
    }

    private static var manager: NSExpression { NSExpression(forVariable: NSMigrationManagerKey) }

    /// The destination objects of source objects through a mapping.
    static func destinations(mapping: String, _ sources: NSExpression) -> NSExpression {
        NSExpression(
            forFunction: manager,
            selectorName: "destinationInstancesForEntityMappingNamed:sourceInstances:",
            arguments: [NSExpression(forConstantValue: mapping), sources]
        )
    }

    /// The destination objects of a relationship's members, through any mappings.
    static func destinations(relationship: String, _ sources: NSExpression) -> NSExpression {
        NSExpression(
            forFunction: manager,
            selectorName: "destinationInstancesForSourceRelationshipNamed:sourceInstances:",
            arguments: [NSExpression(forConstantValue: relationship), sources]
        )
    }

    /// The source objects of an entity that fulfil a predicate.
    static func objects(of entity: String, predicate: String) -> NSExpression {
        let request = NSExpression(
            forFunction: manager,
            selectorName: "fetchRequestForSourceEntityNamed:predicateString:",
            arguments: [NSExpression(forConstantValue: entity), NSExpression(forConstantValue: predicate)]
        )
        let context = KeyPathFunction.make(manager, "sourceContext")
        return NSFetchRequestExpression.expression(forFetch: request, context: context, countOnly: false)
    }
}
