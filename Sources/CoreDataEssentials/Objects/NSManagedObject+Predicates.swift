import Foundation
import StrataPredicates
import StrataRows

extension NSManagedObject: KeyValueCoding {}

extension NSManagedObject: PredicateObjectReference {
    package final var predicateIdentity: PredicateIdentity {
        let store = key < 0 ? nil : context?.openStore(at: storeIndex)
        return PredicateIdentity(store: store?.number ?? 0, entity: layout.rootNumber, key: key)
    }
}

/// Finds out whether a key in a predicate is undefined; there, this is an error and does not stop the program.
///
/// A subclass may define such keys by overriding ``NSManagedObject/value(forUndefinedKey:)``, so that method has to
/// be called.
final class UndefinedKeyQuestion: @unchecked Sendable {
    // @unchecked Sendable: it is used on one thread, within one call.

    @TaskLocal static var current: UndefinedKeyQuestion?

    private(set) var isUndefined = false

    /// The answer of the framework's own method.
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

/// Reads a context's objects, including unsaved changes, for resolved predicates.
///
/// It is confined to the context's queue.
///
/// If a relationship without an inverse leads to an object that is to be deleted, then the object counts as gone, as
/// it will after the next save.
package final class ObjectReader: PredicateReader {
    /// The quiet reads that are made for a child context; `nil` if faults may be realised meanwhile.
    private let quiet: QuietReads?
    /// The rows that are read in place of the values that objects show.
    private var substitutes: [ObjectIdentifier: Row] = [:]

    package init(_ quiet: QuietReads? = nil) { self.quiet = quiet }

    /// Reads a row from now on in place of the values that an object shows.
    ///
    /// The caller keeps the object as long as it uses the reader.
    func substitute(_ row: Row, for object: NSManagedObject) { substitutes[ObjectIdentifier(object)] = row }

    private func object(_ subject: AnyObject) -> NSManagedObject {
        // The evaluator receives only managed objects together with this reader.
        unsafeDowncast(subject, to: NSManagedObject.self)
    }

    /// The values of an object.
    func row(of object: NSManagedObject) throws -> Row {
        if !substitutes.isEmpty, let row = substitutes[ObjectIdentifier(object)] { return row }
        if let quiet, object.flags.contains(.fault) { return try quiet.row(of: object) ?? object.blankRow }
        return object.readableRow()
    }

    package func identity(of subject: AnyObject) -> PredicateIdentity { object(subject).predicateIdentity }

    package func value(of attribute: PredicateAttribute, in subject: AnyObject) throws -> PredicateValue {
        try row(of: object(subject)).predicateValue(of: attribute)
    }

    package func identity(of relationship: PredicateRelationship, in subject: AnyObject) throws -> PredicateIdentity? {
        let object = object(subject)
        guard let reference = try row(of: object).reference(of: relationship) else { return nil }
        let store = reference.key < 0 ? nil : object.context?.openStore(at: max(0, object.storeIndex))
        return PredicateIdentity(store: store?.number ?? 0, entity: relationship.rootNumber, key: reference.key)
    }

    package func subject(of relationship: PredicateRelationship, in subject: AnyObject) throws -> AnyObject? {
        let object = object(subject)
        let slot = object.layout.slots[relationship.slot]
        guard let reference = try row(of: object).reference(slot),
            let target = object.context?.object(for: reference, near: object)
        else { return nil }
        quiet?.recordRead(of: target)
        return try isThere(target, slot.relationship) ? target : nil
    }

    package func subjects(of relationship: PredicateRelationship, in subject: AnyObject) throws -> [AnyObject] {
        let object = object(subject)
        let slot = object.layout.toMany[relationship.slot]
        guard let quiet else { return try object.members(slot).filter { try isThere($0, slot.relationship) } }
        guard let context = object.context else { return [] }
        let members = context.objects(for: try quiet.members(slot, of: object), near: object)
        for member in members { quiet.recordRead(of: member) }
        return try members.filter { try isThere($0, slot.relationship) }
    }

    package func isKind(_ subject: AnyObject, of schema: any PredicateSchema) -> Bool {
        object(subject).layout.isKind(of: schema)
    }

    package func count(of relationship: PredicateRelationship, in subject: AnyObject) throws -> Int {
        let object = object(subject)
        let slot = object.layout.toMany[relationship.slot]
        if slot.relationship.mayDangle { return try subjects(of: relationship, in: subject).count }
        let references = try quiet?.members(slot, of: object) ?? object.loadedMembers(slot)
        guard let context = object.context else { return references.count }
        return references.count { context.registered($0, near: object)?.isDeleted != true }
    }

    // MARK: - Objects that have gone

    /// Whether the destination of a relationship is in its store, and will still be there after the next save.
    private func isThere(_ target: NSManagedObject, _ relationship: Relationship?) throws -> Bool {
        if target.flags.contains(.fault), relationship?.mayDangle ?? true {
            if let quiet {
                guard try quiet.row(of: target) != nil else { return false }
            } else {
                target.prepareToRead()
            }
        }
        return target.flags.isDisjoint(with: [.deleted, .gone, .inaccessible])
    }
}

extension NSManagedObject {
    /// The row that is read for an object whose row has gone.
    fileprivate final var blankRow: Row { Row(layout: layout, key: key) }
}
