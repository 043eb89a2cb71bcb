import Foundation
import StrataPredicates

extension NSManagedObjectContext: FetchExecuting {
    package func results(ofFetchIn request: Any?, countOnly: Bool) throws -> Any {
        guard let request = request as? any AnyFetchRequest else {
            throw FetchPlanner.refused("The requestExpression of a fetch request expression gives no NSFetchRequest.")
        }
        let fetch = NSFetchRequest<NSFetchRequestResult>(specification: request.specification)
        fetch.affectedStores = request.affectedStores
        if countOnly { return NSNumber(value: try count(for: fetch)) }
        let results = try self.fetch(fetch)
        switch fetch.resultType {
        case .countResultType: return results.first ?? NSNumber(value: 0)
        case .dictionaryResultType where fetch.propertiesToFetch?.count == 1:
            return results.map { ($0 as? NSDictionary)?.allValues.first ?? NSNull() }
        default: return results
        }
    }

    package func report(_ error: any Error, of expression: NSExpression, for object: Any?) {
        failedReads.recordError(error)
        // The value is missing, and the program may store something that depends on it.
        if let object = object as? NSManagedObject, object.context === self {
            failedReads.recordFailedComputation("\(expression)", of: object, error: error)
        }
        coordinator?.report(error, "evaluating \(expression)")
    }
}
