import StrataModelFiles
import StrataPredicates

extension NSManagedObjectModel {
    /// Checks that the model does not contradict itself.
    ///
    /// - Throws: A `CocoaError` with code 134060 (`coreData`) that names the entity and the property.
    ///   Its reasons are an empty, unusable, reserved or repeated name, an attribute without a type, and a
    ///   relationship without a destination in the model or whose inverse does not lead back.
    ///   Others are a sub-entity that redeclares a property, an inheritance cycle, and a constraint or index on a
    ///   property that does not exist.
    package func validate() throws {
        do {
            try ModelValidation(model: self).check()
        } catch {
            throw error.cocoaError
        }
    }
}

/// The checks that a model must pass before it is used.
package struct ModelValidation {
    private let model: NSManagedObjectModel
    private let members: Set<ObjectIdentifier>

    package init(model: NSManagedObjectModel) {
        self.model = model
        members = Set(model.entities.map(ObjectIdentifier.init))
    }

    package func check() throws(ModelError) {
        var names = Set<String>()
        for entity in model.entities {
            let name = entity.name ?? ""
            try check(name: name, of: "an entity", entity: name, property: nil)
            guard names.insert(name).inserted else {
                throw ModelError(.invalid, entity: name, "there are two entities with this name")
            }
        }
        for entity in model.entities {
            try checkInheritance(of: entity)
        }
        for entity in model.entities {
            try checkProperties(of: entity)
            try checkReferences(of: entity)
        }
    }

    // MARK: - Entities

    private func checkInheritance(of entity: NSEntityDescription) throws(ModelError) {
        if let parent = entity.superentity, !members.contains(ObjectIdentifier(parent)) {
            throw ModelError(
                .invalid,
                entity: entity.name,
                "its super-entity \"\(parent.name ?? "")\" is not in the model"
            )
        }
        if let root = entity.ancestors.last ?? entity.superentity, root.superentity != nil {
            throw ModelError(.invalid, entity: entity.name, "it inherits from itself (an inheritance cycle)")
        }
    }

    private func checkProperties(of entity: NSEntityDescription) throws(ModelError) {
        var inherited: [String: NSEntityDescription] = [:]
        for ancestor in entity.ancestors {
            for property in ancestor.ownProperties {
                inherited[property.name] = ancestor
            }
        }
        var names = Set<String>()
        for property in entity.ownProperties {
            let name = property.name
            try check(name: name, of: "a property", entity: entity.name, property: name)
            if let fault = ModelNames.memberFault(name) { throw error(property, fault) }
            guard names.insert(name).inserted else { throw error(property, "there are two properties with this name") }
            if let ancestor = inherited[name] {
                throw error(property, "it is inherited from \"\(ancestor.name ?? "")\" and cannot be declared again")
            }
            switch property {
            case let attribute as NSAttributeDescription: try check(attribute, in: property)
            case let relationship as NSRelationshipDescription: try check(relationship, of: entity)
            case is NSExpressionDescription:
                throw error(property, "an expression description is for fetch requests; an entity cannot have one")
            default: break
            }
        }
    }

    /// Checks that constraints and indexes name existing properties.
    private func checkReferences(of entity: NSEntityDescription) throws(ModelError) {
        let properties = entity.propertiesByName
        for (what, groups) in [
            ("uniqueness constraint", entity.uniquenessConstraintNames), ("compound index", entity.compoundIndexNames),
        ] {
            for group in groups {
                guard !group.isEmpty else { throw ModelError(.invalid, entity: entity.name, "a \(what) is empty") }
                for name in group where !Self.hasColumn(properties[name]) {
                    throw ModelError(
                        .invalid,
                        entity: entity.name,
                        property: name,
                        "a \(what) names it, but there is no such persistent attribute or to-one relationship"
                    )
                }
            }
        }
        for index in entity.indexes {
            for element in index.elements {
                guard let property = element.property, !(property is NSExpressionDescription) else { continue }
                guard Self.hasColumn(properties[property.name]) else {
                    throw ModelError(
                        .invalid,
                        entity: entity.name,
                        property: property.name,
                        "fetch index \"\(index.name)\" names it, but there is no such persistent attribute or to-one "
                            + "relationship"
                    )
                }
            }
            guard Set(index.elements.map(\.collationType)).count <= 1 else {
                throw ModelError(.invalid, entity: entity.name, "fetch index \"\(index.name)\" mixes kinds of elements")
            }
        }
    }

    /// Whether a row has a column for the property.
    private static func hasColumn(_ property: NSPropertyDescription?) -> Bool {
        guard let property, property.isPersistent else { return false }
        return (property as? NSRelationshipDescription)?.isToMany != true
    }

    // MARK: - Properties

    /// Checks an attribute, and reports errors for `property`: the attribute or the composite attribute around it.
    private func check(
        _ attribute: NSAttributeDescription,
        in property: NSPropertyDescription
    ) throws(ModelError) {
        let element = attribute === property ? "" : " (in its element \"\(attribute.name)\")"
        if let composite = attribute as? NSCompositeAttributeDescription {
            guard !composite.elements.isEmpty else {
                throw error(property, "the composite attribute has no elements\(element)")
            }
            var names = Set<String>()
            for inner in composite.elements {
                guard names.insert(inner.name).inserted else {
                    throw error(property, "there are two elements named \"\(inner.name)\"\(element)")
                }
                try check(name: inner.name, of: "an element", entity: property.owner?.name, property: property.name)
                try check(inner, in: property)
            }
            if let value = composite.defaultValue { try check(value, asDefaultOf: composite, in: property) }
            return
        }
        switch attribute.type {
        case .undefined where !property.isTransient:
            throw error(property, "the attribute has no type\(element); only transient attributes may be without one")
        case .objectID where !property.isTransient:
            throw error(property, "an object ID cannot be stored\(element); make the attribute transient")
        case .composite:
            throw error(property, "a composite attribute needs an NSCompositeAttributeDescription\(element)")
        default: break
        }
        if let value = attribute.defaultValue {
            // This check comes first, because the description of a date that is NaN stops the program (Foundation on
            // Linux).
            guard property.isTransient || isNumber(value, as: attribute.type) else {
                throw error(property, "its default value is not a number, which no store keeps\(element)")
            }
            guard accepts(value, as: attribute.type) else {
                throw error(property, "its default value \(value) does not fit its type\(element)")
            }
        }
        guard let derived = attribute as? NSDerivedAttributeDescription else { return }
        guard let expression = derived.derivationExpression else {
            throw error(property, "the derived attribute has no derivation expression\(element)")
        }
        if let owner = property.owner, let step = missingStep(in: expression, of: owner) {
            throw error(property, "its derivation names \"\(step)\", which does not exist\(element)")
        }
    }

    /// Checks the default value of a composite attribute: a dictionary of values for its elements.
    private func check(
        _ value: Any,
        asDefaultOf composite: NSCompositeAttributeDescription,
        in property: NSPropertyDescription
    ) throws(ModelError) {
        guard let values = value as? [String: Any] else {
            throw error(property, "its default value is no dictionary of the elements of \"\(composite.name)\"")
        }
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            guard let element = composite.elements.first(where: { $0.name == name }) else {
                throw error(property, "its default value has an element \"\(name)\", which \"\(composite.name)\" lacks")
            }
            if value is NSNull { continue }
            if let nested = element as? NSCompositeAttributeDescription {
                try check(value, asDefaultOf: nested, in: property)
            } else if !isNumber(value, as: element.type) {
                throw error(property, "its default value is not a number in its element \"\(name)\"")
            } else if !accepts(value, as: element.type) {
                throw error(property, "its default value does not fit the type of its element \"\(name)\"")
            }
        }
    }

    private func check(_ relationship: NSRelationshipDescription, of entity: NSEntityDescription) throws(ModelError) {
        guard let destination = relationship.destinationEntity else {
            throw error(relationship, "the relationship has no destination entity")
        }
        let destinationName = destination.name ?? ""
        guard members.contains(ObjectIdentifier(destination)) else {
            throw error(relationship, "its destination entity \"\(destinationName)\" is not in the model")
        }
        guard let inverse = relationship.inverseRelationship else { return }
        guard let owner = inverse.owner, destination.isKindOf(entity: owner) else {
            throw error(
                relationship,
                "its inverse \"\(inverse.name)\" is not a relationship of its destination \"\(destinationName)\""
            )
        }
        guard inverse.inverseRelationship === relationship else {
            throw error(
                relationship,
                "its inverse \"\(inverse.name)\" of \"\(destinationName)\" does not name it as its own inverse"
            )
        }
        guard let target = inverse.destinationEntity, target.isKindOf(entity: entity) else {
            throw error(
                relationship,
                "its inverse \"\(inverse.name)\" of \"\(destinationName)\" leads to another entity"
            )
        }
        guard relationship.isTransient == inverse.isTransient else {
            throw error(relationship, "it and its inverse \"\(inverse.name)\" must both be transient, or neither")
        }
    }

    // MARK: - Names

    private func error(_ property: NSPropertyDescription, _ reason: String) -> ModelError {
        ModelError(.invalid, entity: property.owner?.name, property: property.name, reason)
    }

    private func check(name: String, of what: String, entity: String?, property: String?) throws(ModelError) {
        guard let fault = ModelNames.fault(name, of: what) else { return }
        let isNamed = !name.isEmpty
        throw ModelError(
            .invalid,
            entity: entity.flatMap { $0.isEmpty ? nil : $0 },
            property: isNamed ? property : nil,
            fault
        )
    }
}
