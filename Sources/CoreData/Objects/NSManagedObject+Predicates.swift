import Foundation
import StrataPredicates

extension NSManagedObject: KeyValueCoding {}

extension NSManagedObject: PredicateObjectReference {
    package final var predicateIdentity: PredicateIdentity {
        let store = key < 0 ? nil : context?.openStore(at: storeSlot)
        return PredicateIdentity(store: store?.number ?? 0, entity: layout.rootNumber, key: key)
    }
}

/// Whether a key that a predicate asks for is undefined, which is an error there and not the end of the program.
///
/// A subclass may answer for such keys by overriding ``NSManagedObject/value(forUndefinedKey:)``, so that has to be asked.
final class UndefinedKeyQuestion: @unchecked Sendable {
    // @unchecked Sendable: asked and answered on one thread, within one call.

    @TaskLocal static var current: UndefinedKeyQuestion?

    private(set) var isUndefined = false

    /// What the framework's own method says.
    func answer() -> Any? {
        isUndefined = true
        return nil
    }
}

extension NSManagedObject: PredicateEntityMember {
    package final func predicateValue(forKey key: String) throws -> Any? {
        guard layout.places[key] == nil, key != "objectID", key != "entity", key != "self" else {
            return value(forKey: key)
        }
        let question = UndefinedKeyQuestion()
        let answer = UndefinedKeyQuestion.$current.withValue(question) { value(forKey: key) }
        guard question.isUndefined else { return answer }
        throw PredicateEvaluationError("the entity \(entity.name ?? "") has no property \"\(key)\"")
    }

    package final func isKind(ofEntityNamed name: String) -> Bool {
        var current: NSEntityDescription? = entity
        while let entity = current {
            if entity.isNamed(name) { return true }
            current = entity.superentity
        }
        return false
    }
}

extension NSManagedObjectID: PredicateObjectReference {
    package var predicateIdentity: PredicateIdentity {
        let (key, store) = current
        return PredicateIdentity(store: store?.number ?? 0, entity: layout.rootNumber, key: key)
    }
}

/// Reads a context's objects for resolved predicates: with their unsaved changes.
///
/// Confined to the context's queue.
///
/// An object that is going to be deleted counts as gone where a relationship without an inverse still leads to it, as it
/// will once that is saved.
final class ObjectReader: PredicateReader {
    private func object(_ subject: AnyObject) -> NSManagedObject {
        // Only managed objects are handed to the evaluator with this reader.
        unsafeDowncast(subject, to: NSManagedObject.self)
    }

    func identity(of subject: AnyObject) -> PredicateIdentity { object(subject).predicateIdentity }

    func value(of attribute: PredicateAttribute, in subject: AnyObject) -> PredicateValue {
        object(subject).readableRow().predicateValue(of: attribute)
    }

    func identity(of relationship: PredicateRelationship, in subject: AnyObject) -> PredicateIdentity? {
        let object = object(subject)
        guard let reference = object.readableRow().reference(of: relationship) else { return nil }
        let store = reference.key < 0 ? nil : object.context?.openStore(at: max(0, object.storeSlot))
        return PredicateIdentity(store: store?.number ?? 0, entity: relationship.rootNumber, key: reference.key)
    }

    func subject(of relationship: PredicateRelationship, in subject: AnyObject) -> AnyObject? {
        let object = object(subject)
        let slot = object.layout.slots[relationship.slot]
        guard let target = object.toOne(slot) else { return nil }
        return isThere(target, slot.relationship) ? target : nil
    }

    func subjects(of relationship: PredicateRelationship, in subject: AnyObject) -> [AnyObject] {
        let object = object(subject)
        let slot = object.layout.toMany[relationship.slot]
        return object.members(slot).filter { isThere($0, slot.relationship) }
    }

    func isKind(_ subject: AnyObject, of schema: any PredicateSchema) -> Bool {
        object(subject).layout.isKind(of: schema)
    }

    func count(of relationship: PredicateRelationship, in subject: AnyObject) -> Int {
        let object = object(subject)
        let slot = object.layout.toMany[relationship.slot]
        if slot.relationship.mayDangle { return subjects(of: relationship, in: subject).count }
        let references = object.loadedMembers(slot)
        guard let context = object.context else { return references.count }
        return references.count { context.registered($0, near: object)?.isDeleted != true }
    }

    // MARK: - Objects that have gone

    /// Whether the destination of a relationship is, and after the next save will be, in its store.
    private func isThere(_ target: NSManagedObject, _ relationship: NSRelationshipDescription?) -> Bool {
        if target.flags.contains(.fault), relationship?.mayDangle ?? true { target.prepareToRead() }
        return target.flags.isDisjoint(with: [.deleted, .gone, .inaccessible])
    }
}
