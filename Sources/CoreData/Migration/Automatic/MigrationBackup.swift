import StrataKeys
import StrataPredicates
import StrataRows

/// Option: the `URL` of a folder to which a store is copied before it is migrated.
///
/// Default nil. The copy is called after the store and the version that it has, as in `shop-1a2b3c4d.sqlite`, and replaces an earlier one of that
/// name. It is made only if the store is about to be migrated, and complete before anything is changed. The option takes effect
/// together with those that migrate. An addition to Apple's API.
public let NSPersistentStoreMigrationBackupFolderOption = "NSPersistentStoreMigrationBackupFolderOption"

/// Copies of stores before their migration.
enum MigrationBackup {
    /// Where the copy of a store of a certain version goes.
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

    /// Whether a store may be migrated over other versions of its model where no one step leads from its own to the coordinator's.
    ///
    /// Default false. The option is ``NSPersistentStoreAllowsProgressiveMigrationOption``, which can also name a folder of versions. An addition to
    /// Apple's API.
    public final var allowsProgressiveMigration: Bool {
        get {
            options[NSPersistentStoreAllowsProgressiveMigrationOption].map { $0 is NSURL || StoreOption.flag($0) }
                ?? false
        }
        set { setOption(NSNumber(value: newValue), forKey: NSPersistentStoreAllowsProgressiveMigrationOption) }
    }

    /// What a migration of the store tells how far it is, and by which it can be cancelled.
    ///
    /// Default nil. The option is ``NSPersistentStoreMigrationProgressOption``. An addition to Apple's API.
    public final var migrationProgress: Progress? {
        get { options[NSPersistentStoreMigrationProgressOption] as? Progress }
        set { setOption(newValue, forKey: NSPersistentStoreMigrationProgressOption) }
    }
}
