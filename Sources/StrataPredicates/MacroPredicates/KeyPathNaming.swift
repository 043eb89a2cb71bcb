/// A type that knows the format language's names of its Swift key paths.
///
/// Managed objects do. The types of this module get the names through this protocol.
package protocol KeyPathNaming: AnyObject {
    /// The name of a key path whose root is this type or a subclass of it, such as `city.name` for `\Venue.city?.name`.
    ///
    /// - Throws: ``PredicateTranslationError`` if the key path does not lead to a property that has a name.
    static func predicateName(of keyPath: AnyKeyPath) throws -> String

    /// The name by which a cast finds the entity of the type: the name of the entity or of the class.
    static var castName: String { get }
}

extension AnyKeyPath {
    /// The key path in the format language.
    ///
    /// - Throws: ``PredicateTranslationError`` that names the type and the key path.
    package func predicateName() throws -> String {
        let root = type(of: self).rootType
        guard let naming = root as? any KeyPathNaming.Type else {
            throw PredicateTranslationError("\(root) has no names for its key paths: \(self) cannot be used here.")
        }
        return try naming.predicateName(of: self)
    }
}
