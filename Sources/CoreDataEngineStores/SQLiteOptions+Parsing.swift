import CoreDataEssentials
import Foundation
import StrataKeys
import StrataRows
import StrataSQLiteStore

extension SQLiteOptions {
    /// Reads the options of a store.
    ///
    /// - Throws: `persistentStoreOpen` (134080) for a URL that is no file URL, and for pragmas that are neither texts
    ///   nor numbers.
    package init(url: URL, _ options: [AnyHashable: Any]?) throws {
        let options = options ?? [:]
        func flag(_ key: String) -> Bool { StoreOption.flag(options[key]) }
        try self.init(
            url: url,
            isReadOnly: flag(NSReadOnlyPersistentStoreOption),
            pragmas: Self.pragmas(options[NSSQLitePragmasOption])
        )
        ignoresVersions = flag(NSIgnorePersistentStoreVersioningOption)
        vacuums = flag(NSSQLiteManualVacuumOption)
        analyzes = flag(NSSQLiteAnalyzeOption)
        defersCleanUp = flag(NSPersistentStoreDeferredLightweightMigrationOptionKey)
        tracksHistory = StoreOption.tracksHistory(options)
        timeout = StoreOption.timeout(options)
        if let size = StoreOption.number(options[NSPersistentStoreConnectionPoolMaxSizeKey]), size >= 1 {
            maximumReaders = Int(min(size, 1024))
        }
    }

    private static func pragmas(_ value: Any?) throws -> [String: String] {
        guard let value else { return [:] }
        guard let dictionary = value as? [AnyHashable: Any] else { throw badPragmas("\(value)") }
        var pragmas: [String: String] = [:]
        for (name, value) in dictionary {
            guard let name = name as? String else { throw badPragmas("\(name)") }
            switch value {
            case let text as String: pragmas[name] = text
            case let flag as Bool: pragmas[name] = flag ? "1" : "0"
            case let number as any BinaryInteger: pragmas[name] = "\(number)"
            case let number as NSNumber: pragmas[name] = number.stringValue
            default: throw badPragmas("\(name) = \(value)")
            }
        }
        return pragmas
    }

    private static func badPragmas(_ text: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreOpen,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "NSSQLitePragmasOption must be a dictionary of names and texts or numbers; \(text) is not."
            ]
        )
    }
}
