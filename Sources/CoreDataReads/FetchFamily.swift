import CoreDataEssentials
import StrataPredicates

/// Fetches of one entity that differ only in the values for which they compare properties for equality.
///
/// A program that looks for objects one by one makes them, and one fetch with `IN` could find the objects together. Fetches
/// that differ in something else, such as the pages of a list or the days of a calendar, are of other families.
struct FetchFamily: Hashable {
    let entity: String
    /// The parts of the predicate that all of these fetches have in common, with `?` for the compared values.
    let conditions: [String]
    /// The properties that are compared for equality.
    let keyPaths: [String]

    /// The family of a fetch, and the values by which it differs from the others.
    ///
    /// - Parameters:
    ///   - entity: The entity of the fetch.
    ///   - predicate: The predicate of the fetch.
    /// - Returns: `nil` if nothing is compared for equality with a value.
    static func of(_ entity: String, _ predicate: NSPredicate?) -> (family: FetchFamily, values: [String])? {
        guard let predicate else { return nil }
        var conditions: [String] = []
        var keyPaths: [String] = []
        var values: [String] = []
        for member in members(of: predicate) {
            if let (keyPath, value) = equality(member) {
                keyPaths.append(keyPath)
                values.append(value)
                conditions.append("\(keyPath) == ?")
            } else {
                conditions.append(member.formatText)
            }
        }
        guard !keyPaths.isEmpty else { return nil }
        return (FetchFamily(entity: entity, conditions: conditions, keyPaths: keyPaths), values)
    }

    private static func members(of predicate: NSPredicate) -> [NSPredicate] {
        if case .and(let members) = PredicateForm(predicate) { return members.flatMap(members(of:)) }
        return [predicate]
    }

    /// The property and the value of a comparison for equality.
    private static func equality(_ predicate: NSPredicate) -> (keyPath: String, value: String)? {
        guard case .comparison(let comparison) = PredicateForm(predicate), comparison.predicateOperatorType == .equalTo,
            comparison.comparisonPredicateModifier == .direct
        else { return nil }
        let (left, right) = (comparison.leftExpression, comparison.rightExpression)
        if let keyPath = name(left), right.expressionType == .constantValue { return (keyPath, "\(right)") }
        if let keyPath = name(right), left.expressionType == .constantValue { return (keyPath, "\(left)") }
        return nil
    }

    private static func name(_ expression: NSExpression) -> String? {
        switch expression.expressionType {
        case .keyPath: expression.keyPath
        case .evaluatedObject: "SELF"
        default: nil
        }
    }
}
