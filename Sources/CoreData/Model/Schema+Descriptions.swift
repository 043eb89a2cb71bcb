import StrataPredicates
import StrataRows

// The way back from a schema to the descriptions that it was made of. The frozen model keeps all of them alive.

extension Schema {
    /// The model that the schema was made of.
    var model: NSManagedObjectModel? { entities.first?.entity.managedObjectModel }
}

extension EntityLayout {
    /// The entity.
    ///
    /// Frozen, so it may be read from any thread.
    @inline(__always)
    package var entity: NSEntityDescription { unsafeDowncast(companion, to: NSEntityDescription.self) }

    /// The entity, for a call that shall not count it.
    @inline(__always)
    var unmanagedEntity: Unmanaged<NSEntityDescription> { Unmanaged.passUnretained(entity) }

    /// The class of the entity's objects.
    @inline(__always)
    var objectClass: ObjectClassCache { entity.objectClass }
}

extension Slot {
    /// The property whose value the slot holds; of the leaf of a composite attribute, that element.
    var property: NSPropertyDescription { unsafeDowncast(description, to: NSPropertyDescription.self) }

    /// The attribute, for slots that hold one.
    var attribute: NSAttributeDescription? {
        kind == .reference ? nil : unsafeDowncast(description, to: NSAttributeDescription.self)
    }
}

extension TransientSlot {
    /// The property, which is an attribute or a to-one relationship.
    var property: NSPropertyDescription { unsafeDowncast(description, to: NSPropertyDescription.self) }
}

extension CompositeSlot {
    /// The attribute.
    var property: NSCompositeAttributeDescription {
        unsafeDowncast(description, to: NSCompositeAttributeDescription.self)
    }
}

extension Relationship {
    /// The relationship as the model describes it.
    var property: NSRelationshipDescription { unsafeDowncast(description, to: NSRelationshipDescription.self) }
}

extension NSEntityDescription: PredicateEntityReference {
    package final var predicateEntityName: String { name ?? "" }

    /// Whether the entity or its class has this name; that of the class may lack its module.
    final func isNamed(_ name: String) -> Bool {
        if self.name == name { return true }
        guard let className = managedObjectClassName else { return false }
        return className == name || className.hasSuffix("." + name)
    }
}
