/// The data that resolved predicates and sorts are evaluated on: a store's rows, or a context's objects.
///
/// A subject is any class instance that the reader can read: a row, a managed object. One reader serves any number of
/// subjects of one kind, so it needs no checked casts. Neither side is generic, because unspecialised generics would
/// cost several times as much as the comparison itself.
///
/// An implementation throws if the data cannot be read. The error ends the evaluation and reaches its caller.
package protocol PredicateReader: AnyObject {
    /// The identity of a subject, equal for all subjects that represent the same object.
    func identity(of subject: AnyObject) -> PredicateIdentity

    /// The value of an attribute: `.null`, or a value of the kind of the attribute's type.
    ///
    /// Booleans are `.int`, decimals `.double`, and URIs `.string`. For transformables it only matters whether they are
    /// `.null`.
    func value(of attribute: PredicateAttribute, in subject: AnyObject) throws -> PredicateValue

    /// The identity of the object that a to-one relationship points at, without reading that object.
    func identity(of relationship: PredicateRelationship, in subject: AnyObject) throws -> PredicateIdentity?

    /// The object that a to-one relationship points at.
    func subject(of relationship: PredicateRelationship, in subject: AnyObject) throws -> AnyObject?

    /// The objects that a to-many relationship holds, in any order.
    func subjects(of relationship: PredicateRelationship, in subject: AnyObject) throws -> [AnyObject]

    /// Whether a subject is of an entity, or of one that inherits from it.
    func isKind(_ subject: AnyObject, of schema: any PredicateSchema) throws -> Bool

    /// The number of objects in a to-many relationship.
    func count(of relationship: PredicateRelationship, in subject: AnyObject) throws -> Int
}

extension PredicateReader {
    package func isKind(_ subject: AnyObject, of schema: any PredicateSchema) throws -> Bool {
        throw PredicateEvaluationError("Casts to an entity such as \(schema.predicateEntityName) are not known here.")
    }

    package func count(of relationship: PredicateRelationship, in subject: AnyObject) throws -> Int {
        try subjects(of: relationship, in: subject).count
    }
}
