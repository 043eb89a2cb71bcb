import StrataRows

// Relationships between objects without a context. Their rows and members name the other objects by temporary keys, as
// those of unsaved objects do. As no context can find the objects, each object holds those that its relationships lead
// to, its companions. If one of them is inserted into a context, then so are the others.

extension NSManagedObject {
    // MARK: - Finding

    /// The object that a relationship of this object names.
    @inline(__always)
    final func destination(_ reference: ObjectReference) -> NSManagedObject? {
        guard let context else { return extras?.companions[reference.key] }
        return context.object(for: reference, near: self)
    }

    /// The objects that a to-many relationship of this object names, without those whose deletion is final.
    final func destinations(_ references: [ObjectReference]) -> [NSManagedObject] {
        guard let context else { return references.compactMap { extras?.companions[$0.key] } }
        return context.objects(for: references, near: self)
    }

    // MARK: - Relating

    /// Makes sure that this object and another one can be related.
    ///
    /// If one of them has no context, then it is inserted into the context of the other one. If both have none, then
    /// they get temporary keys. Anything else stops the program, since a save would store a meaningless reference.
    final func prepareToRelate(to object: NSManagedObject, _ name: String) {
        if unmanagedContext?.toOpaque() == object.unmanagedContext?.toOpaque(), unmanagedContext != nil { return }
        requireRelatable(to: object, name)
        if let context {
            context.assertCurrent("relationship \"\(name)\"")
            context.insertObject(object)
        } else if let context = object.context {
            context.assertCurrent("relationship \"\(name)\"")
            context.insertObject(self)
        } else {
            for object in [self, object] { object.beginCompanionship() }
        }
    }

    private func requireRelatable(to object: NSManagedObject, _ name: String) {
        for object in [self, object] where object.context == nil {
            guard object.flags.contains(.detached), object.flags.isDisjoint(with: .gone) else {
                fatalError(
                    "CoreData: relationship \"\(name)\" of \(entity.name ?? "") cannot be set: \(object.objectID) was deleted, lost its context, or stands for a row of a batch insert."
                )
            }
        }
        guard let context, let other = object.context else { return }
        fatalError(
            "CoreData: relationship \"\(name)\" of \(objectID) in \(context.describedName) was set to \(object.objectID) of \(other.describedName). Bring the object into this context first, with context.object(with: other.objectID)."
        )
    }

    private func beginCompanionship() {
        assignTemporaryKey()
        forgetFormerRelationships()
    }

    /// Removes the relationships of an object that has left a context, for example by undo: they name the objects of
    /// that context.
    ///
    /// An object with companions has forgotten them already.
    final func forgetFormerRelationships() {
        guard extras?.companions.isEmpty ?? true else { return }
        for slot in layout.referenceSlots where readableRow().reference(slot) != nil {
            writableRow().setReference(nil, slot)
        }
        if let extras { for index in extras.toMany.indices { extras.toMany[index] = nil } }
    }

    /// Holds an object that a relationship now leads to, if this object has no context.
    @inline(__always)
    final func holdCompanion(_ object: NSManagedObject) {
        if unmanagedContext == nil { writableExtras.companions[object.key] = object }
    }

    /// Releases an object that a relationship no longer leads to, unless another relationship does.
    @inline(__always)
    final func releaseCompanion(_ reference: ObjectReference) {
        if unmanagedContext == nil { releaseUnlessNamed(reference) }
    }

    private func releaseUnlessNamed(_ reference: ObjectReference) {
        guard let extras, extras.companions[reference.key] != nil,
            !layout.referenceSlots.contains(where: { current?.reference($0) == reference }),
            !extras.toMany.indices.contains(where: { extras.toMany[$0]?.contains(reference) == true })
        else { return }
        extras.companions[reference.key] = nil
    }

    // MARK: - Inserting

    /// Ends the companionship of an object that a context has just registered.
    ///
    /// - Parameter context: The context.
    /// - Returns: The companions that are still to be inserted into the context.
    final func endCompanionship(in context: NSManagedObjectContext) -> [NSManagedObject] {
        guard let extras, !extras.companions.isEmpty else { return [] }
        let companions = extras.companions
        extras.companions = [:]
        var permanent = PermanentKeys()
        for (key, companion) in companions {
            if let other = companion.context, other !== context {
                fatalError(
                    "CoreData: \(objectID) cannot be inserted into \(context.describedName), because a relationship leads to \(companion.objectID) of \(other.describedName)."
                )
            }
            // Without an inverse, the companion may have been inserted before, and saved or deleted since.
            if companion.flags.contains(.gone) {
                forgetDestination(ObjectReference(key: key, entity: companion.layout.number))
            } else if companion.key != key {
                permanent.set(companion.key, for: key)
            }
        }
        if permanent.count > 0 { replaceReferences(permanent) }
        return companions.values.filter { $0.context == nil && $0.flags.isDisjoint(with: .gone) }
    }

    private func forgetDestination(_ reference: ObjectReference) {
        for slot in layout.referenceSlots where current?.reference(slot) == reference {
            writableRow().setReference(nil, slot)
        }
        if let extras { for index in extras.toMany.indices { extras.toMany[index]?.forget { $0 == reference } } }
    }
}
