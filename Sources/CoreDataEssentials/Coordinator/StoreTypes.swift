import Foundation
import StrataLocks

/// The classes of stores, by type.
///
/// Any thread may use it.
package enum StoreTypes {
    private static let registered = Locked<[String: NSPersistentStore.Type]>([:])

    /// The store class of a type: a registered one, or else a built-in one.
    package static func storeClass(_ type: String) -> NSPersistentStore.Type? {
        if let found = registered.withLock({ $0[type] }) { return found }
        return HigherTargets.all.storeClasses[type]
    }

    /// The store class of a type whose stores can be destroyed and replaced as a whole.
    ///
    /// `nil` for custom stores and for unknown types.
    package static func wholeStoreClass(_ type: String) -> (any WholeStore.Type)? {
        storeClass(type) as? any WholeStore.Type
    }

    /// The result of ``storeClass(_:)``, which must exist.
    ///
    /// - Throws: `persistentStoreInvalidType` (134000) for an unknown type.
    package static func required(_ type: String) throws -> NSPersistentStore.Type {
        if let found = storeClass(type) { return found }
        throw CocoaError.described(
            .persistentStoreInvalidType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "There is no store of type \"\(type)\" here. Use NSSQLiteStoreType, NSInMemoryStoreType or NSBinaryStoreType, or register a class for the type."
            ]
        )
    }

    static func register(_ storeClass: NSPersistentStore.Type?, _ type: String) {
        registered.withLock { $0[type] = storeClass }
    }

    static var all: [String: NSValue] {
        let known = registered.withLock { Set($0.keys) }.union(HigherTargets.all.storeClasses.keys)
        return Dictionary(uniqueKeysWithValues: known.map { ($0, NSValue()) })
    }
}
