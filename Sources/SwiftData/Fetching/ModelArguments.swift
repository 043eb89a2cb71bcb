import Foundation

/// A model object, an array of them, or an optional one that a `#Predicate` has captured.
///
/// Foundation's predicates keep captured values that can be encoded and sent. A model object is neither, and is compared
/// by its identifier in a store.
///
/// ```swift
/// let stops = FetchDescriptor<Stop>(predicate: #Predicate { $0.trip == trip })
/// ```
public struct ModelArgument<Output>: StandardPredicateExpression, @unchecked Sendable {
    // @unchecked Sendable: a predicate with objects of a context is used where the context is.

    private let value: Output

    init(_ value: Output) { self.value = value }

    /// The captured value.
    ///
    /// - Parameter bindings: The objects that are tested, which do not matter.
    /// - Returns: The captured value.
    /// - Throws: Nothing.
    public func evaluate(_ bindings: PredicateBindings) throws -> Output { value }

    /// Refuses to decode: an object is found by a context only.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError.dataCorrupted` always. Capture the object's `persistentModelID` in place of the object.
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "SwiftData: a model object cannot be decoded.")
        )
    }

    /// Refuses to encode: an object is found by a context only.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: `EncodingError.invalidValue` always. Capture the object's `persistentModelID` in place of the object.
    public func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
            value,
            .init(codingPath: encoder.codingPath, debugDescription: "SwiftData: a model object cannot be encoded.")
        )
    }
}

extension PredicateExpressions {
    /// Captures an object, as `#Predicate` does it.
    ///
    /// - Parameter arg: The object.
    /// - Returns: The expression.
    public static func build_Arg<Model: PersistentModel>(_ arg: Model) -> ModelArgument<Model> { ModelArgument(arg) }

    /// Captures an optional object, as `#Predicate` does it.
    ///
    /// - Parameter arg: The object, or none.
    /// - Returns: The expression.
    public static func build_Arg<Model: PersistentModel>(_ arg: Model?) -> ModelArgument<Model?> { ModelArgument(arg) }

    /// Captures objects, as `#Predicate` does it.
    ///
    /// - Parameter arg: The objects.
    /// - Returns: The expression.
    public static func build_Arg<Model: PersistentModel>(_ arg: [Model]) -> ModelArgument<[Model]> {
        ModelArgument(arg)
    }
}
