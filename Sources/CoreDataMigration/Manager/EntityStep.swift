import CoreDataEssentials
import StrataPredicates
import StrataRows

/// One entity mapping in a running migration: names are resolved, the policy is made, and expressions are checked.
///
/// Only the thread that migrates uses it.
final class EntityStep {
    /// A property mapping with its expression; a mapping without an expression has no step.
    private struct PropertyStep {
        let mapping: NSPropertyMapping
        let name: String
        let expression: ValueExpression
    }

    let mapping: NSEntityMapping
    let name: String
    let policy: NSEntityMigrationPolicy
    /// The entities of the two stacks; `nil` if the mapping has none on that side.
    let source: NSEntityDescription?
    let destination: NSEntityDescription?
    /// The expression for the source objects, if the mapping has one.
    let sourceExpression: ValueExpression?
    var associations = AssociationTable()
    /// Whether destination objects get the primary keys of their source objects.
    var keepsKeys = false

    private unowned let run: MigrationRun
    // The run owns its steps.
    private var attributes: [PropertyStep] = []
    private var relationships: [PropertyStep] = []

    /// Resolves a mapping.
    ///
    /// - Throws: `migration` (134110) for an entity or a property that the models do not have; `entityMigrationPolicy`
    ///   (134170) for a policy or a function that cannot be found.
    init(_ mapping: NSEntityMapping, in run: MigrationRun) throws {
        self.mapping = mapping
        self.run = run
        name = mapping.effectiveName
        source = try Self.entity(
            named: mapping.sourceEntityName,
            in: run.source.model,
            side: "source",
            mapping: mapping
        )
        destination = try Self.entity(
            named: mapping.destinationEntityName,
            in: run.destination.model,
            side: "destination",
            mapping: mapping
        )
        policy = try PolicyClasses.policy(for: mapping).init()
        sourceExpression = mapping.sourceExpression.map { ValueExpression($0, source: nil) }
        try sourceExpression?.check(scope())
        if let destination {
            guard
                !destination.isAbstract || type(of: policy) != NSEntityMigrationPolicy.self || source == nil
                    || source?.isAbstract == true
            else {
                throw failure("entity \(destination.name ?? "") is abstract in the destination model.")
            }
            attributes = try steps(mapping.attributeMappings, in: destination.attributesByName, of: destination)
            attributes.removeAll { destination.attributesByName[$0.name] is NSDerivedAttributeDescription }
            relationships = try steps(
                mapping.relationshipMappings,
                in: destination.relationshipsByName,
                of: destination
            )
        }
    }

    private static func entity(
        named name: String?,
        in model: NSManagedObjectModel,
        side: String,
        mapping: NSEntityMapping
    ) throws -> NSEntityDescription? {
        guard let name else { return nil }
        if let entity = model.entitiesByName[name] { return entity }
        throw MigrationFailure.error(
            .migration,
            "Mapping \(mapping.effectiveName) names entity \(name), which is not in the \(side) model.",
            mapping: mapping
        )
    }

    private func steps(
        _ mappings: [NSPropertyMapping]?,
        in properties: [String: some NSPropertyDescription],
        of entity: NSEntityDescription
    ) throws -> [PropertyStep] {
        try (mappings ?? []).compactMap { property in
            guard let name = property.name, let expression = property.valueExpression else { return nil }
            guard properties[name] != nil else {
                throw failure("entity \(entity.name ?? "") of the destination model has no such property.", name)
            }
            var scope = scope()
            scope.property = property
            let value = ValueExpression(expression, source: source)
            try value.check(scope)
            return PropertyStep(mapping: property, name: name, expression: value)
        }
    }

    /// The scope of expressions, without objects.
    func scope() -> ExpressionScope {
        ExpressionScope(manager: run.manager, mapping: mapping, policy: policy)
    }

    /// Whether the step has source objects.
    var hasSources: Bool { source != nil || sourceExpression != nil }

    /// The number of objects that are processed before they are written; it is smaller if they may be large.
    static func batchSize(for entity: NSEntityDescription?) -> Int {
        let isLarge =
            entity?.attributesByName.values.contains {
                [.binaryDataAttributeType, .transformableAttributeType].contains($0.attributeType)
            } ?? false
        return isLarge ? 100 : 1000
    }

    // MARK: - The default of the policy

    /// Makes the destination object of a source object.
    func createDestination(for object: NSManagedObject) throws {
        guard let destination, let entityName = destination.name else { return }
        guard !destination.isAbstract else {
            throw failure("entity \(entityName) is abstract in the destination model, so no object can be made.")
        }
        let made = NSEntityDescription.insertNewObject(forEntityName: entityName, into: run.destination.context)
        var scope = scope()
        scope.source = object
        scope.destination = made
        for step in attributes {
            scope.property = step.mapping
            // A custom store keeps values, and no archives.
            if run.destination.store.custom == nil, let archive = step.expression.undecodableCopy(scope),
                made.setArchive(archive, forKey: step.name)
            {
                continue
            }
            let value = try evaluate(step, scope)
            guard let attribute = destination.attributesByName[step.name] else { continue }
            // If a value became required, then the default value replaces a missing value.
            let hasDefault = attribute.defaultValue != nil || attribute is NSCompositeAttributeDescription
            if value == nil, !attribute.isOptional, hasDefault { continue }
            try require(value, isFor: attribute, step)
            made.setValue(value, forKey: step.name)
        }
        run.associate(object, with: made, step: self)
    }

    /// Gives a destination object its relationships.
    func createRelationships(of object: NSManagedObject) throws {
        guard !relationships.isEmpty else { return }
        var scope = scope()
        scope.destination = object
        scope.source = run.firstSource(of: object, self)
        for step in relationships {
            scope.property = step.mapping
            guard let value = try evaluate(step, scope),
                let relationship = object.entity.relationshipsByName[step.name]
            else { continue }
            guard let members = MigrationRun.objects(in: value) else {
                throw failure("its value is \(type(of: value)), not objects.", step.name)
            }
            for member in members { try require(member, isFor: relationship, step) }
            guard let first = members.first else { continue }
            if run.isInferred, !relationship.isToMany, members.count > 1 {
                throw failure(
                    "\(members.count) objects are in a relationship that may have one now. Take the others out with the old model, or in a custom stage, first.",
                    step.name
                )
            }
            if !relationship.isToMany {
                object.setValue(first, forKey: step.name)
            } else if relationship.isOrdered {
                object.setValue(NSOrderedSet(array: members), forKey: step.name)
            } else {
                object.setValue(NSSet(array: members), forKey: step.name)
            }
        }
    }

    private func evaluate(_ step: PropertyStep, _ scope: ExpressionScope) throws -> Any? {
        do {
            return try step.expression.value(scope)
        } catch let error as PredicateEvaluationError {
            throw failure("\(step.expression.expression) cannot be evaluated: \(error).", step.name)
        }
    }

    // MARK: - Checking values

    /// A row in which values are tried out.
    private lazy var scratch = destination.map { Row(layout: $0.layout, key: 0) }

    private func require(_ value: Any?, isFor attribute: NSAttributeDescription, _ step: PropertyStep) throws {
        guard let value, let destination else { return }
        let layout = destination.layout
        do {
            switch layout.places[step.name] {
            case .slot(let index): try tryOut(value, layout.slots[index])
            case .composite(let index): try tryOut(value, for: layout.composites[index], layout: layout)
            case .transient: _ = try attribute.attributeType.transientValue(value)
            default: break
            }
        } catch {
            throw failure(
                "the attribute is of type \(attribute.attributeType.described), and does not take a value of type \(type(of: value)).",
                step.name
            )
        }
    }

    private func tryOut(_ value: Any, _ slot: Slot) throws {
        guard slot.type != .transformable else { return }
        try scratch?.setAny(value, slot)
    }

    private func tryOut(_ value: Any, for composite: CompositeSlot, layout: EntityLayout) throws {
        guard let values = value as? [String: Any] else { throw PredicateEvaluationError("no dictionary") }
        let leaves = Dictionary(composite.leaves.map { (layout.slots[$0].name, layout.slots[$0]) }) { $1 }
        func walk(_ values: [String: Any], prefix: String, depth: Int) throws {
            for (name, value) in values {
                let path = prefix + "." + name
                if let slot = leaves[path] {
                    try tryOut(value, slot)
                } else if let nested = value as? [String: Any], depth < 16 {
                    try walk(nested, prefix: path, depth: depth + 1)
                } else {
                    throw PredicateEvaluationError("no element \(path)")
                }
            }
        }
        try walk(values, prefix: composite.name, depth: 0)
    }

    private func require(
        _ member: NSManagedObject,
        isFor relationship: NSRelationshipDescription,
        _ step: PropertyStep
    ) throws {
        guard member.context === run.destination.context else {
            throw failure(
                "its value has an object of the source. Ask the manager for what has become of it: destinationInstances(forEntityMappingName:sourceInstances:).",
                step.name
            )
        }
        guard let wanted = relationship.destinationEntity, member.entity.isKindOf(entity: wanted) else {
            throw failure(
                "its value has an object of entity \(member.entity.name ?? ""), not \(relationship.destinationEntity?.name ?? "").",
                step.name
            )
        }
    }

    /// An error about the mapping, or about one of its properties.
    private func failure(_ reason: String, _ property: String? = nil) -> CocoaError {
        MigrationFailure.error(
            .migration,
            "Mapping \(name)\(property.map { ", property \($0)" } ?? ""): \(reason)",
            mapping: mapping,
            property: property
        )
    }
}
