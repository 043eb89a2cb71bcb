import StrataPredicates
import StrataRows

/// Compares parts of models by their contents, for `==`.
///
/// Parts that a part refers to are compared by name. So a comparison ends even if parts refer to each other, and a part
/// that was copied out of its model equals the original. The application's facts (`userInfo`) are ignored, because they
/// may change at any time, and so are the localized names.
enum ModelEquality {
    static func areEqual(_ left: NSManagedObjectModel, _ right: NSManagedObjectModel) -> Bool {
        let (mine, theirs) = (left.entitiesByName, right.entitiesByName)
        guard left.entities.count == right.entities.count, mine.count == theirs.count,
            left.versionIdentifiers == right.versionIdentifiers,
            memberNames(left) == memberNames(right)
        else { return false }
        let (own, others) = (left.fetchRequestTemplatesByName, right.fetchRequestTemplatesByName)
        guard own.count == others.count,
            own.allSatisfy({ name, request in others[name].map { areEqual(request, $0) } ?? false })
        else { return false }
        return mine.allSatisfy { name, entity in theirs[name].map { areEqual(entity, $0) } ?? false }
    }

    private static func memberNames(_ model: NSManagedObjectModel) -> [String: Set<String>] {
        model.membersByConfiguration.mapValues { Set($0.compactMap(\.name)) }
    }

    static func areEqual(_ left: NSEntityDescription, _ right: NSEntityDescription) -> Bool {
        if left === right { return true }
        guard left.name == right.name, left.managedObjectClassName == right.managedObjectClassName,
            left.isAbstract == right.isAbstract, left.renamingIdentifier == right.renamingIdentifier,
            left.versionHashModifier == right.versionHashModifier,
            left.superentity?.name == right.superentity?.name || left.model == nil || right.model == nil,
            Set(left.subentities.map(\.name)) == Set(right.subentities.map(\.name)),
            Set(left.uniquenessConstraintNames) == Set(right.uniquenessConstraintNames),
            left.compoundIndexNames == right.compoundIndexNames
        else { return false }
        return areEqual(left.ownProperties, right.ownProperties) && areEqual(left.indexes, right.indexes)
    }

    /// Whether two lists have equal properties, in any order.
    private static func areEqual(_ left: [NSPropertyDescription], _ right: [NSPropertyDescription]) -> Bool {
        let theirs = EntityFacts.byName(right) { $0.name }
        return left.count == right.count
            && left.allSatisfy { property in theirs[property.name].map { areEqual(property, $0) } ?? false }
    }

    /// Whether two lists have equal indexes, in any order; indexes of the same name are compared in their order.
    private static func areEqual(_ left: [NSFetchIndexDescription], _ right: [NSFetchIndexDescription]) -> Bool {
        guard left.count == right.count else { return false }
        let theirs = Dictionary(grouping: right) { $0.name }
        return Dictionary(grouping: left) { $0.name }
            .allSatisfy { name, indexes in
                guard let others = theirs[name], others.count == indexes.count else { return false }
                return zip(indexes, others).allSatisfy { areEqual($0, $1) }
            }
    }

    static func areEqual(_ left: NSFetchIndexDescription, _ right: NSFetchIndexDescription) -> Bool {
        left === right
            || left.name == right.name && left.elements.count == right.elements.count
                && areEqualPredicates(left.partialIndexPredicate, right.partialIndexPredicate)
                && zip(left.elements, right.elements).allSatisfy { areEqual($0, $1) }
    }

    static func areEqual(_ left: NSFetchIndexElementDescription, _ right: NSFetchIndexElementDescription) -> Bool {
        guard left.collationType == right.collationType, left.isAscending == right.isAscending else { return false }
        switch (left.property as? NSExpressionDescription, right.property as? NSExpressionDescription) {
        case (let mine?, let theirs?): return areEqual(mine, theirs)
        case (nil, nil): return left.propertyName == right.propertyName
        default: return false
        }
    }

    // MARK: - Properties

    static func areEqual(_ left: NSPropertyDescription, _ right: NSPropertyDescription) -> Bool {
        if left === right { return true }
        // A copy belongs to no entity yet, but still equals the original.
        if let mine = left.owner, let theirs = right.owner, mine.name != theirs.name { return false }
        guard type(of: left) == type(of: right), left.name == right.name, left.isOptional == right.isOptional,
            left.isTransient == right.isTransient, left.isIndexed == right.isIndexed,
            left.renamingIdentifier == right.renamingIdentifier, left.versionHashModifier == right.versionHashModifier,
            left.validationPredicates.count == right.validationPredicates.count,
            zip(left.validationPredicates, right.validationPredicates).allSatisfy({ areEqualPredicates($0, $1) }),
            zip(left.validationWarnings, right.validationWarnings).allSatisfy({ areEqualValues($0, $1) })
        else { return false }
        switch (left, right) {
        case (let left as NSAttributeDescription, let right as NSAttributeDescription):
            return areEqualAttributes(left, right)
        case (let left as NSRelationshipDescription, let right as NSRelationshipDescription):
            return left.destinationEntity?.name == right.destinationEntity?.name
                && left.inverseRelationship?.name == right.inverseRelationship?.name
                && left.maxCount == right.maxCount && left.minCount == right.minCount
                && left.deleteRule == right.deleteRule && left.isOrdered == right.isOrdered
        case (let left as NSExpressionDescription, let right as NSExpressionDescription):
            return left.resultType == right.resultType && areEqualExpressions(left.expression, right.expression)
        case (let left as NSFetchedPropertyDescription, let right as NSFetchedPropertyDescription):
            guard let mine = left.fetchRequest, let theirs = right.fetchRequest else {
                return left.fetchRequest == nil && right.fetchRequest == nil
            }
            return areEqual(mine, theirs)
        default: return true
        }
    }

    private static func areEqualAttributes(_ left: NSAttributeDescription, _ right: NSAttributeDescription) -> Bool {
        guard left.type == right.type, left.attributeValueClassName == right.attributeValueClassName,
            left.valueTransformerName == right.valueTransformerName,
            left.allowsExternalBinaryDataStorage == right.allowsExternalBinaryDataStorage,
            left.preservesValueInHistoryOnDeletion == right.preservesValueInHistoryOnDeletion,
            areEqualValues(left.defaultValue, right.defaultValue)
        else { return false }
        switch (left, right) {
        case (let left as NSCompositeAttributeDescription, let right as NSCompositeAttributeDescription):
            return left.elements.count == right.elements.count
                && zip(left.elements, right.elements).allSatisfy { areEqual($0, $1) }
        case (let left as NSDerivedAttributeDescription, let right as NSDerivedAttributeDescription):
            return left.derivationText == right.derivationText
        default: return true
        }
    }

    // MARK: - Parts of properties

    private static func areEqualValues(_ left: Any?, _ right: Any?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        if let mine = left as? AnyHashable, let theirs = right as? AnyHashable { return mine == theirs }
        return "\(left)" == "\(right)"
    }

    private static func areEqualPredicates(_ left: NSPredicate?, _ right: NSPredicate?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return predicatesAreEqual(left, right)
    }

    private static func areEqualExpressions(_ left: NSExpression?, _ right: NSExpression?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return expressionsAreEqual(left, right)
    }

    private static func areEqual(
        _ left: NSFetchRequest<NSFetchRequestResult>,
        _ right: NSFetchRequest<NSFetchRequestResult>
    ) -> Bool {
        guard left.entityName == right.entityName, areEqualPredicates(left.predicate, right.predicate),
            left.sortDescriptors == right.sortDescriptors, left.fetchLimit == right.fetchLimit,
            left.fetchOffset == right.fetchOffset, left.fetchBatchSize == right.fetchBatchSize,
            left.resultType == right.resultType, left.returnsDistinctResults == right.returnsDistinctResults
        else { return false }
        guard left.includesSubentities == right.includesSubentities,
            left.includesPropertyValues == right.includesPropertyValues,
            left.includesPendingChanges == right.includesPendingChanges,
            left.returnsObjectsAsFaults == right.returnsObjectsAsFaults,
            left.shouldRefreshRefetchedObjects == right.shouldRefreshRefetchedObjects,
            left.evaluationTimeLimit == right.evaluationTimeLimit,
            left.relationshipKeyPathsForPrefetching ?? [] == right.relationshipKeyPathsForPrefetching ?? []
        else { return false }
        return areEqualPredicates(left.havingPredicate, right.havingPredicate)
            && areEqualProperties(left.propertiesToFetch, right.propertiesToFetch)
            && areEqualProperties(left.propertiesToGroupBy, right.propertiesToGroupBy)
    }

    /// Whether two lists have equal names or descriptions of properties, in the same order.
    private static func areEqualProperties(_ left: [Any]?, _ right: [Any]?) -> Bool {
        (left ?? []).elementsEqual(right ?? []) { mine, theirs in
            guard let mine = mine as? NSPropertyDescription, let theirs = theirs as? NSPropertyDescription else {
                return areEqualValues(mine, theirs)
            }
            return areEqual(mine, theirs)
        }
    }
}
