/// The compound predicates that this module makes.
///
/// Foundation's compound predicates have no text, and equal every other compound.
package final class StructuralCompoundPredicate: NSCompoundPredicate {
    /// The number of levels of expressions and predicates, including this one.
    package let depth: Int

    package override init(type: LogicalType, subpredicates: [NSPredicate]) {
        depth = 1 + subpredicates.reduce(0) { max($0, TreeDepth.of($1)) }
        super.init(type: type, subpredicates: subpredicates)
    }

    package required init?(coder: NSCoder) {
        // Foundation cannot decode predicates on this platform.
        nil
    }

    package override func evaluate(with object: Any?) -> Bool {
        evaluate(with: object, substitutionVariables: nil)
    }

    package override func evaluate(with object: Any?, substitutionVariables bindings: [String: Any]?) -> Bool {
        (try? evaluateOrThrow(with: object, substitutionVariables: bindings)) ?? false
    }

    package override var predicateFormat: String {
        FormatPrinter.text(of: self)
    }

    package override var description: String {
        FormatPrinter.text(of: self)
    }

    package override func copy(with zone: NSZone? = nil) -> Any {
        self
    }

    package override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPredicate else { return false }
        return predicatesAreEqual(self, other)
    }

    package override var hash: Int {
        var hasher = Hasher()
        hashPredicate(self, into: &hasher)
        return hasher.finalize()
    }
}
