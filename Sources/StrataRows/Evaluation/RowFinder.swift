import StrataPredicates

/// Reads the rows of a store for resolved expressions.
package protocol RowFinder: PredicateReader {
    /// The number by which predicates distinguish the store's objects from those of other stores.
    var storeNumber: Int { get }
    /// The row of an object of an entity's hierarchy; `nil` if there is none.
    func row(_ identity: PredicateIdentity, in layout: EntityLayout) throws -> Row?
}

/// Answers that come from a row alone.
extension RowFinder {
    /// The row that the evaluator was given as an object.
    package func row(_ subject: AnyObject) -> Row {
        // Only row buffers are handed to the evaluator with such a reader.
        Row(shared: unsafeDowncast(subject, to: RowBuffer.self))
    }

    package func identity(of subject: AnyObject) -> PredicateIdentity {
        let row = row(subject)
        return PredicateIdentity(store: storeNumber, entity: row.layout.rootNumber, key: row.key)
    }

    package func value(of attribute: PredicateAttribute, in subject: AnyObject) -> PredicateValue {
        row(subject).predicateValue(of: attribute)
    }

    package func identity(of relationship: PredicateRelationship, in subject: AnyObject) -> PredicateIdentity? {
        row(subject).reference(of: relationship).map {
            PredicateIdentity(store: storeNumber, entity: relationship.rootNumber, key: $0.key)
        }
    }

    package func isKind(_ subject: AnyObject, of schema: any PredicateSchema) -> Bool {
        row(subject).layout.isKind(of: schema)
    }
}
