import CoreDataContainer
import CoreDataEssentials
import StrataKeys
import StrataPredicates
import StrataRows

/// Option: the `URL` of a folder to which a store is copied before it is migrated.
///
/// Default nil. The name of the copy contains the names of the store and of its version, as in `shop-1a2b3c4d.sqlite`;
/// the copy replaces an earlier one of that name. It is made only if the store is about to be migrated, and it is
/// complete before anything is changed. The option has an effect only together with those that migrate. An addition to
/// Apple's API.
public let NSPersistentStoreMigrationBackupFolderOption = "NSPersistentStoreMigrationBackupFolderOption"

/// Copies of stores before their migration.
enum MigrationBackup {
    /// The place for the copy of a store of a certain version.
    static func url(of store: URL, in folder: URL, hashes: [String: Data]) -> URL {
        let version = Data(base64Encoded: SchemaHashes.checksum(of: hashes))?.shortHex ?? "unknown"
        let name = "\(store.deletingPathExtension().lastPathComponent)-\(version)"
        let copy = folder.appendingPathComponent(name)
        return store.pathExtension.isEmpty ? copy : copy.appendingPathExtension(store.pathExtension)
    }
}

extension NSPersistentStoreDescription {
    /// A folder to which the store is copied before it is migrated.
    ///
    /// Default nil. The option is ``NSPersistentStoreMigrationBackupFolderOption``. An addition to Apple's API.
    public final var migrationBackupFolder: URL? {
        get { (options[NSPersistentStoreMigrationBackupFolderOption] as? NSURL).map { $0 as URL } }
        set { setOption(newValue.map { $0 as NSURL }, forKey: NSPersistentStoreMigrationBackupFolderOption) }
    }

    /// Whether a store may be migrated through other versions of its model if one step is not possible.
    ///
    /// Default false. The option is ``NSPersistentStoreAllowsProgressiveMigrationOption``, which can also name a folder
    /// of versions. An addition to Apple's API.
    public final var allowsProgressiveMigration: Bool {
        get {
            options[NSPersistentStoreAllowsProgressiveMigrationOption].map { $0 is NSURL || StoreOption.flag($0) }
                ?? false
        }
        set { setOption(NSNumber(value: newValue), forKey: NSPersistentStoreAllowsProgressiveMigrationOption) }
    }

    /// The object that receives the progress of a migration of the store, and can cancel it.
    ///
    /// Default nil. The option is ``NSPersistentStoreMigrationProgressOption``. An addition to Apple's API.
    public final var migrationProgress: Progress? {
        get { options[NSPersistentStoreMigrationProgressOption] as? Progress }
        set { setOption(newValue, forKey: NSPersistentStoreMigrationProgressOption) }
    }
}
