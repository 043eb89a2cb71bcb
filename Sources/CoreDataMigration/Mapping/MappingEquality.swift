import CoreDataEssentials
import Foundation
import StrataPredicates

/// Compares mappings by their contents, as descriptions of models are compared.
///
/// A migration uses no mapping as a key, so equal mappings may occur twice.
enum MappingEquality {
    static func areEqual(_ left: NSEntityMapping, _ right: NSEntityMapping) -> Bool {
        left.name == right.name && left.mappingType == right.mappingType
            && left.sourceEntityName == right.sourceEntityName
            && left.destinationEntityName == right.destinationEntityName
            && left.sourceEntityVersionHash == right.sourceEntityVersionHash
            && left.destinationEntityVersionHash == right.destinationEntityVersionHash
            && left.entityMigrationPolicyClassName == right.entityMigrationPolicyClassName
            && left.attributeMappings == right.attributeMappings
            && left.relationshipMappings == right.relationshipMappings
            && left.sourceExpression == right.sourceExpression && areEqual(left.userInfo, right.userInfo)
    }

    static func areEqual(_ left: NSPropertyMapping, _ right: NSPropertyMapping) -> Bool {
        left.name == right.name && left.valueExpression == right.valueExpression
            && areEqual(left.userInfo, right.userInfo)
    }

    private static func areEqual(_ left: [AnyHashable: Any]?, _ right: [AnyHashable: Any]?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): NSDictionary(dictionary: left) == NSDictionary(dictionary: right)
        default: false
        }
    }
}
