import StrataPredicates
import StrataRows

// Access from a schema to the descriptions from which it was made. The frozen model keeps all of them alive.

extension Schema {
    /// The model from which the schema was made.
    var model: NSManagedObjectModel? { entities.first?.entity.managedObjectModel }
}

extension EntityLayout {
    /// The entity.
    ///
    /// Frozen, so it may be read from any thread.
    @inline(__always)
    package var entity: NSEntityDescription { unsafeDowncast(companion, to: NSEntityDescription.self) }

    /// The entity, without a counted reference.
    @inline(__always)
    var unmanagedEntity: Unmanaged<NSEntityDescription> { Unmanaged.passUnretained(entity) }

    /// The class of the entity's objects.
    @inline(__always)
    var objectClass: ObjectClassCache { entity.objectClass }
}

extension Slot {
    /// The property of the slot; for the leaf of a composite attribute, the element.
    package var property: NSPropertyDescription { unsafeDowncast(description, to: NSPropertyDescription.self) }

    /// The attribute, if the slot holds one.
    package var attribute: NSAttributeDescription? {
        kind == .reference ? nil : unsafeDowncast(description, to: NSAttributeDescription.self)
    }
}

extension TransientSlot {
    /// The property, which is an attribute or a to-one relationship.
    package var property: NSPropertyDescription { unsafeDowncast(description, to: NSPropertyDescription.self) }
}

extension CompositeSlot {
    /// The attribute.
    package var property: NSCompositeAttributeDescription {
        unsafeDowncast(description, to: NSCompositeAttributeDescription.self)
    }
}

extension Relationship {
    /// The relationship in the model.
    package var property: NSRelationshipDescription { unsafeDowncast(description, to: NSRelationshipDescription.self) }
}

extension NSEntityDescription: PredicateEntityReference {
    package final var predicateEntityName: String { name ?? "" }

    /// Whether the entity or its class has this name; the class name may lack its module.
    package final func isNamed(_ name: String) -> Bool {
        if self.name == name { return true }
        guard let className = managedObjectClassName else { return false }
        return className == name || className.hasSuffix("." + name)
    }
}
