import StrataModelFiles
import StrataPredicates

/// An attribute whose value the store computes from others whenever an object is saved.
///
/// Any thread may read it once a coordinator uses its model; until then it belongs to whoever builds the model.
///
/// ```swift
/// let search = NSDerivedAttributeDescription()
/// (search.name, search.type) = ("searchName", .string)
/// search.derivationExpression = NSExpression(format: "canonical:(name)")
/// ```
open class NSDerivedAttributeDescription: NSAttributeDescription, @unchecked Sendable {
    // @unchecked Sendable: as the superclass; every stored property is guarded by `assertMutable`.

    /// How the value is computed.
    ///
    /// Default `nil`; the model is not valid then.
    ///
    /// A key path (`owner.name`), a count or sum over a to-many relationship (`pages.@count`, `items.price.@sum`), or a call
    /// such as `canonical:(title)`, `lowercase:(title)`, `uppercase:(title)` or `now()`.
    open var derivationExpression: NSExpression? {
        willSet { assertMutable() }
        didSet { source = nil }
    }

    /// The text that the expression was read from.
    private var source: String?

    /// Sets the derivation from its text.
    ///
    /// - Throws: What is wrong with the text.
    func setDerivation(_ text: String) throws {
        derivationExpression = try ModelText.expression(text)
        source = text
    }

    /// The derivation as it takes part in the version hash: `chat.serverId`, `count:(pages)`, `now()`.
    package var derivationText: String? {
        (source ?? derivationExpression?.description).map(HashFormula.canonicalDerivation)
    }

    /// The derivation as model files have it: `pages.@count` where ``derivationText`` says `count:(pages)`.
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
