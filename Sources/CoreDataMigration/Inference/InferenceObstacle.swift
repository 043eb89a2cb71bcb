import CoreDataEssentials
import StrataKeys
import StrataPredicates

/// One reason why no mapping can be inferred.
struct InferenceObstacle: Hashable {
    /// The name of the entity, in the destination if it exists there.
    let entity: String
    /// The name of the property; `nil` if the entity as a whole is the obstacle.
    let property: String?
    /// The problem: half a sentence.
    let reason: String
    /// The advice what to do instead: a sentence.
    let advice: String

    /// The complete message in one line, with the name of the property first.
    var text: String { "\(entity)\(property.map { ".\($0)" } ?? ""): \(reason). \(advice)" }

    private var error: CocoaError {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: text,
            "reason": reason,
            "entity": entity,
            NSModelEntityNameErrorKey: entity,
        ]
        userInfo["property"] = property
        userInfo[NSModelPropertyNameErrorKey] = property
        return CocoaError.described(.inferredMappingModel, userInfo: userInfo)
    }

    /// The error that lists obstacles.
    ///
    /// - Parameter obstacles: All obstacles, at least one.
    /// - Returns: `inferredMappingModel` (134190), with one error of the same code for each obstacle under
    ///   `NSDetailedErrorsKey`; each has `entity`, `property` and `reason`.
    static func error(_ obstacles: [InferenceObstacle]) -> CocoaError {
        let list = obstacles.map(\.text).joined(separator: " ")
        let count = obstacles.count == 1 ? "One change" : "\(obstacles.count) changes"
        return CocoaError.described(
            .inferredMappingModel,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "No mapping can be inferred between the two versions of the model. \(count) cannot be inferred. \(list)",
                "reason": obstacles.map(\.text).joined(separator: "\n"),
                NSDetailedErrorsKey: obstacles.map(\.error),
            ]
        )
    }
}

/// Obstacles in the order in which they were found, each once.
struct InferenceObstacles {
    private(set) var elements: [InferenceObstacle] = []
    private var seen: Set<InferenceObstacle> = []

    mutating func add(_ entity: String, property: String?, reason: String, advice: String) {
        let obstacle = InferenceObstacle(entity: entity, property: property, reason: reason, advice: advice)
        if seen.insert(obstacle).inserted { elements.append(obstacle) }
    }
}
