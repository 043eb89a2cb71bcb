import StrataModelFiles
import StrataPredicates

/// An attribute whose value the store computes from others whenever an object is saved.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let search = NSDerivedAttributeDescription()
/// (search.name, search.type) = ("searchName", .string)
/// search.derivationExpression = NSExpression(format: "canonical:(name)")
/// ```
open class NSDerivedAttributeDescription: NSAttributeDescription, @unchecked Sendable {
    // @unchecked Sendable: like the superclass; every stored property is guarded by `assertMutable`.

    /// The expression that computes the value.
    ///
    /// Default `nil`, with which the model is not valid.
    ///
    /// It is a key path (`owner.name`), a count or sum over a to-many relationship (`pages.@count`,
    /// `items.price.@sum`), or a call such as `canonical:(title)`, `lowercase:(title)`, `uppercase:(title)` or `now()`.
    open var derivationExpression: NSExpression? {
        willSet { assertMutable() }
        didSet { source = nil }
    }

    /// The text from which the expression was read.
    private var source: String?

    /// Sets the derivation, and keeps the text from which it was read.
    package func setDerivation(_ expression: NSExpression, readFrom text: String) {
        derivationExpression = expression
        source = text
    }

    /// The text of the derivation for the version hash: `chat.serverId`, `count:(pages)`, `now()`.
    package var derivationText: String? {
        (source ?? describedDerivation.map(HashFormula.derivationWithColons)).map(HashFormula.canonicalDerivation)
    }

    /// The text by which earlier versions of this framework hashed an expression that was made in code: `lowercase(name)`.
    ///
    /// `nil` if it is ``derivationText``.
    package var formerDerivationText: String? {
        guard source == nil, let text = describedDerivation.map(HashFormula.canonicalDerivation) else { return nil }
        return text == derivationText ? nil : text
    }

    private var describedDerivation: String? { derivationExpression?.description }

    /// The text of the derivation for model files: `pages.@count` if ``derivationText`` is `count:(pages)`.
    package var writtenDerivation: String? {
        guard let text = derivationText else { return nil }
        guard let open = text.range(of: ":("), text.hasSuffix(")") else { return text }
        let name = text[..<open.lowerBound]
        let path = text[open.upperBound...].dropLast()
        guard Self.collectionOperators.contains(String(name)), !path.isEmpty,
            path.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." })
        else { return text }
        return "\(path).@\(name)"
    }

    private static let collectionOperators: Set<String> = ["count", "sum", "min", "max", "avg"]

    override func adopt(_ other: NSPropertyDescription) {
        super.adopt(other)
        guard let other = other as? NSDerivedAttributeDescription else { return }
        derivationExpression = other.derivationExpression
        source = other.source
    }
}
