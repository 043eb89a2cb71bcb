import StrataLocks
@_spi(Reflection) import Swift

/// The names of the stored properties of structures that are composite attributes, by key path.
enum StructureKeyPaths {
    private struct Names: @unchecked Sendable {
        // @unchecked Sendable: immutable; key paths of properties capture nothing.
        let byKeyPath: [AnyKeyPath: String]
    }

    private static let known = Locked<[ObjectIdentifier: Names]>([:])

    /// Adds a structure, whose properties predicates can use from then on.
    static func add(_ type: Any.Type) {
        func read<Structure>(_ type: Structure.Type) -> Names {
            var names: [AnyKeyPath: String] = [:]
            _ = _forEachFieldWithKeyPath(of: type, options: []) { name, keyPath in
                names[keyPath] = String(cString: name)
                return true
            }
            return Names(byKeyPath: names)
        }
        let names = _openExistential(type, do: read)
        known.withLock { $0[ObjectIdentifier(type)] = names }
    }

    /// The names in a structure; `nil` if it is no composite attribute.
    static func names(of type: Any.Type) -> [AnyKeyPath: String]? {
        known.withLock { $0[ObjectIdentifier(type)] }?.byKeyPath
    }
}
