import StrataLocks

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
    /// Whether key paths from a type have names in the format language.
    static func hasNames(of root: Any.Type) -> Bool {
        root is any KeyPathNaming.Type || KeyPathNamers.name(for: root) != nil
    }

    /// The key path in the format language.
    ///
    /// - Throws: ``PredicateTranslationError`` that names the type and the key path.
    package func predicateName() throws -> String {
        let root = type(of: self).rootType
        if let naming = root as? any KeyPathNaming.Type { return try naming.predicateName(of: self) }
        if let name = KeyPathNamers.name(for: root) { return try name(self) }
        throw PredicateTranslationError("\(root) has no names for its key paths: \(self) cannot be used here.")
    }
}

/// Functions by which layers above name the key paths of their root types.
///
/// Any thread may use it.
package enum KeyPathNamers {
    /// Returns the function that names the key paths of a root type; `nil` if the type is another layer's.
    package typealias Namer = @Sendable (_ root: Any.Type) -> ((AnyKeyPath) throws -> String)?

    private static let namers = Locked<[Namer]>([])

    /// Adds a function, which stays as long as the process runs.
    package static func register(_ namer: @escaping Namer) { namers.withLock { $0.append(namer) } }

    private static let casts = Locked<[@Sendable (Any.Type) -> String?]>([])

    /// Adds a function that gives the name by which a cast finds the entity of a type of another layer.
    ///
    /// The function returns `nil` for all others.
    package static func registerCasts(_ cast: @escaping @Sendable (Any.Type) -> String?) {
        casts.withLock { $0.append(cast) }
    }

    /// The name by which a cast finds the entity of a type; `nil` if the type has no entity.
    static func castName(of type: Any.Type) -> String? {
        if let naming = type as? any KeyPathNaming.Type { return naming.castName }
        for cast in casts.withLock({ $0 }) {
            if let name = cast(type) { return name }
        }
        return nil
    }

    private static let constants = Locked<[@Sendable (Any) -> Any?]>([])

    /// Adds a function that turns constants of another layer into values of this one.
    ///
    /// The function returns `nil` for all others.
    package static func registerConstants(_ constant: @escaping @Sendable (Any) -> Any?) {
        constants.withLock { $0.append(constant) }
    }

    /// The value of this layer for a constant of another one.
    static func constant(_ value: Any) -> Any? {
        for constant in constants.withLock({ $0 }) {
            if let made = constant(value) { return made }
        }
        return nil
    }

    static func name(for root: Any.Type) -> ((AnyKeyPath) throws -> String)? {
        for namer in namers.withLock({ $0 }) {
            if let name = namer(root) { return name }
        }
        return nil
    }
}
