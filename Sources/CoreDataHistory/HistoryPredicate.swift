import CoreDataEssentials
import StrataPredicates

/// Finds the parts of a transaction that have to be read before a predicate can be evaluated.
enum HistoryPredicate {
    /// Whether a predicate may use the changes of a transaction: it names them, or its keys are not known.
    static func mayReadChanges(_ predicate: NSPredicate) -> Bool {
        switch PredicateForm(predicate) {
        case .constant: false
        case .comparison(let comparison):
            mayReadChanges(comparison.leftExpression) || mayReadChanges(comparison.rightExpression)
        case .not(let member): mayReadChanges(member)
        case .and(let members), .or(let members): members.contains(where: mayReadChanges)
        case .block: true
        }
    }

    private static func mayReadChanges(_ expression: NSExpression) -> Bool {
        switch expression.kind {
        case .constant: false
        case .keyPath(let path): !path.split(separator: ".").allSatisfy(isOfTransaction)
        case .aggregate(let members): members.contains(where: mayReadChanges)
        default: true
        }
    }

    private static func isOfTransaction(_ key: Substring) -> Bool {
        HistoryModel.shared.transaction.attributesByName[String(key)] != nil
    }
}
