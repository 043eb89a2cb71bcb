/// The error of a predicate, an expression or a sort descriptor that cannot be used for an entity in a store.
///
/// As an `NSError` it has the domain `NSCocoaErrorDomain` and the general code of Core Data, 134060.
package struct PredicateResolutionError: LocalizedError, CustomNSError, CustomStringConvertible, Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        /// The entity has no such property.
        case unknownKey
        /// There is a collection in a place that needs one value.
        case toManyNotAllowed
        /// There is one value in a place that needs a collection.
        case collectionNeeded
        /// Values of these types cannot be compared or computed with.
        case incompatibleTypes
        /// A store cannot do this.
        ///
        /// Examples are blocks, methods and transient properties.
        case unsupported
        /// A variable has no value.
        case unboundVariable
        /// A constant does not fit its place, such as a broken regular expression or a range with one end.
        case invalidConstant
    }

    package let reason: Reason
    package let message: String
    /// The key path in question, if there is one.
    package let keyPath: String?
    package let entityName: String

    /// Keeps the first and the last part of a long text, because messages repeat parts of the predicate.
    package init(reason: Reason, message: String, keyPath: String?, entityName: String) {
        self.reason = reason
        self.message = Self.shortened(message, to: 400)
        self.keyPath = keyPath.map { Self.shortened($0, to: 200) }
        self.entityName = entityName
    }

    private static func shortened(_ text: String, to count: Int) -> String {
        // The number of bytes is known at once, the number of characters is not.
        guard text.utf8.count > count, text.count > count else { return text }
        return "\(text.prefix(count * 2 / 3))…\(text.suffix(count / 3))"
    }

    package var description: String {
        "\(message) (entity \(entityName)\(keyPath.map { ", key path \($0)" } ?? ""))"
    }

    package var errorDescription: String? {
        description
    }

    package static var errorDomain: String {
        NSCocoaErrorDomain
    }

    package var errorCode: Int {
        134060
    }

    package var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: description, "entity": entityName]
        info[NSLocalizedFailureReasonErrorKey] = description
        info["keyPath"] = keyPath
        return info
    }
}
