/// The data that resolved predicates and sorts are evaluated on: a store's rows, or a context's objects.
///
/// A subject is any class instance that the reader knows how to read: a row, a managed object. One reader serves any number of
/// subjects, all of its own kind, so it can take them for what they are without a checked cast. Neither side is generic,
/// since unspecialised generics would cost several times what the comparison itself does.
///
/// An implementation throws where the data cannot be read; the error ends the evaluation and reaches its caller.
package protocol PredicateReader: AnyObject {
    /// The identity of a subject, equal for all subjects that stand for the same object.
    func identity(of subject: AnyObject) -> PredicateIdentity

    /// The value of an attribute: `.null`, or a value of the kind that the attribute's type has.
    ///
    /// Booleans are `.int`, decimals `.double`, URIs `.string`, and transformables only have to be `.null` or not.
    func value(of attribute: PredicateAttribute, in subject: AnyObject) throws -> PredicateValue

    /// The identity of the object that a to-one relationship points at, without reading that object.
    func identity(of relationship: PredicateRelationship, in subject: AnyObject) throws -> PredicateIdentity?

    /// The object that a to-one relationship points at.
    func subject(of relationship: PredicateRelationship, in subject: AnyObject) throws -> AnyObject?

    /// The objects that a to-many relationship holds, in any order.
    func subjects(of relationship: PredicateRelationship, in subject: AnyObject) throws -> [AnyObject]

    /// Whether a subject is of an entity, or of one that inherits from it.
    func isKind(_ subject: AnyObject, of schema: any PredicateSchema) throws -> Bool

    /// How many objects a to-many relationship holds.
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
