import Foundation
import StrataKeys

/// The version hashes of entities and properties, as a formula over plain values.
///
/// They decide whether a store can be opened with a model, here and on Apple's systems, so they are computed over the
/// same bytes. If no store was found to measure, the rule is marked "own choice". Models with such parts open with this
/// framework, but perhaps not with Apple's.
package enum HashFormula {
    /// The parts of a hash that every kind of property has.
    package struct Base {
        fileprivate let hash: Data

        package init(name: String, isOptional: Bool, modifier: String?) {
            var message = Data(name.utf8)
            message.append(isOptional ? 1 : 0)
            // It is zero in every store that was measured: transient properties are not in an entity's hash.
            message.append(0)
            message.append(contentsOf: (modifier ?? "").utf8)
            hash = SHA2.sha256(message)
        }
    }

    // MARK: - Properties

    /// The hash of an attribute that is neither derived nor composite.
    ///
    /// - Parameters:
    ///   - base: The parts that all properties have.
    ///   - type: The number of its type.
    ///   - allowsExternalStorage: Whether a large value may be in a separate file.
    ///   - preservesValueOnDeletion: Whether the history keeps the value of a deleted object.
    /// - Returns: 32 bytes.
    package static func attribute(
        _ base: Base,
        type: UInt,
        allowsExternalStorage: Bool,
        preservesValueOnDeletion: Bool
    ) -> Data {
        attribute(
            base,
            type: type,
            allowsExternalStorage: allowsExternalStorage,
            preservesValueOnDeletion: preservesValueOnDeletion,
            elements: []
        )
    }

    /// The hash of a derived attribute: only the text of the derivation counts.
    package static func derived(_ text: String) -> Data {
        SHA2.sha256(Data(canonicalDerivation(text).utf8))
    }

    /// The hash of a composite attribute: only its elements count, by name.
    ///
    /// Its own name only decides its place among the properties of its entity. A composite inside of another is hashed
    /// by the same rule, which is an own choice.
    ///
    /// - Parameter elements: The elements with their hashes.
    /// - Returns: 32 bytes.
    package static func composite(_ elements: [(name: String, hash: Data)]) -> Data {
        SHA2.sha256(sorted(elements).reduce(into: Data()) { $0.append($1.hash) })
    }

    /// The hash that this framework gave to a composite attribute before Apple's rule was known.
    ///
    /// Stores of that time have it in their metadata.
    ///
    /// - Parameters:
    ///   - base: The parts that all properties have.
    ///   - allowsExternalStorage: Whether a large value may be in a separate file.
    ///   - preservesValueOnDeletion: Whether the history keeps the value of a deleted object.
    ///   - elements: The elements with their hashes by the same rule.
    /// - Returns: 32 bytes.
    package static func formerComposite(
        _ base: Base,
        allowsExternalStorage: Bool,
        preservesValueOnDeletion: Bool,
        elements: [(name: String, hash: Data)]
    ) -> Data {
        attribute(
            base,
            type: 2100,
            allowsExternalStorage: allowsExternalStorage,
            preservesValueOnDeletion: preservesValueOnDeletion,
            elements: elements
        )
    }

    private static func attribute(
        _ base: Base,
        type: UInt,
        allowsExternalStorage: Bool,
        preservesValueOnDeletion: Bool,
        elements: [(name: String, hash: Data)]
    ) -> Data {
        var message = base.hash
        message.append(contentsOf: bytes(type))
        if allowsExternalStorage { message.append(1) }
        if preservesValueOnDeletion { message.append(1) }
        for element in sorted(elements) { message.append(element.hash) }
        return SHA2.sha256(message)
    }

    /// The hash of a relationship.
    ///
    /// - Parameters:
    ///   - base: The parts that all properties have.
    ///   - destination: The name of the destination entity; empty for none.
    ///   - inverse: The name of the inverse relationship; empty for none.
    ///   - maxCount: The most objects; 0 for any number.
    ///   - minCount: The fewest objects.
    ///   - isOrdered: Whether the members have an order.
    /// - Returns: 32 bytes.
    package static func relationship(
        _ base: Base,
        destination: String,
        inverse: String,
        maxCount: Int,
        minCount: Int,
        isOrdered: Bool
    ) -> Data {
        var message = base.hash
        message.append(contentsOf: destination.utf8)
        message.append(contentsOf: inverse.utf8)
        message.append(contentsOf: bytes(maxCount))
        message.append(contentsOf: bytes(minCount))
        if isOrdered { message.append(contentsOf: [1, 0]) }
        return SHA2.sha256(message)
    }

    /// The hash of a property that no store keeps.
    ///
    /// It is not part of an entity's hash.
    package static func other(_ base: Base) -> Data { SHA2.sha256(base.hash) }

    // MARK: - Entities

    /// The hash of an entity.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - isAbstract: Whether it is abstract.
    ///   - parent: The hash of its super-entity; `nil` for none.
    ///   - properties: The stored properties with their hashes, including inherited ones.
    ///   - constraints: The uniqueness constraints that it declares itself.
    ///   - modifier: The version hash modifier.
    /// - Returns: 32 bytes.
    package static func entity(
        _ name: String,
        isAbstract: Bool,
        parent: Data?,
        properties: [(name: String, hash: Data)],
        constraints: [[String]],
        modifier: String?
    ) -> Data {
        var message = Data(name.utf8)
        message.append(isAbstract ? 1 : 0)
        if let parent { message.append(parent) }
        for property in sorted(properties) { message.append(property.hash) }
        // They are in the order of their texts, whatever their order in the model is.
        for constraint in constraints.map({ $0.joined(separator: ".") }).sorted(by: precedes) {
            message.append(contentsOf: constraint.utf8)
        }
        message.append(contentsOf: (modifier ?? "").utf8)
        return SHA2.sha256(message)
    }

    // MARK: - Parts

    /// The text of a derivation in the form that is hashed.
    ///
    /// If a key path ends in a collection operator, or contains one, it counts as a call: `pages.@count` is
    /// `count:(pages)`. This was measured only for `@count`; the same form for other operators is an own choice.
    package static func canonicalDerivation(_ text: String) -> String {
        let text = text.trimmingCharacters(in: .whitespaces)
        let parts = text.components(separatedBy: ".")
        guard !text.contains("("), let index = parts.firstIndex(where: { $0.hasPrefix("@") }) else { return text }
        let path = (parts[..<index] + parts[(index + 1)...]).joined(separator: ".")
        return "\(parts[index].dropFirst()):(\(path))"
    }

    /// The text of a derivation with the full names of its functions: a description of an expression leaves out the colon.
    ///
    /// Models in files have `lowercase:(name)`, so the same model in code must have that as well.
    package static func derivationWithColons(_ text: String) -> String {
        text.replacing(#/([A-Za-z])\((?!\))/#) { "\($0.output.1):(" }
    }

    private static func sorted(_ hashes: [(name: String, hash: Data)]) -> [(name: String, hash: Data)] {
        hashes.sorted { precedes($0.name, $1.name) }
    }

    /// Compares in byte order.
    ///
    /// For names beyond ASCII, that is not the order of `String`.
    private static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }

    private static func bytes(_ value: some BinaryInteger) -> [UInt8] {
        withUnsafeBytes(of: Int32(truncatingIfNeeded: value).littleEndian, Array.init)
    }
}
