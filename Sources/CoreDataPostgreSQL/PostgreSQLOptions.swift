/// Option: the URLs of the store's replicas, an array of `postgresql://` URLs or of texts with such URLs.
///
/// A replica is a server that follows the one which the store's URL leads to. Replicas answer the reads of contexts
/// with ``CoreData/NSManagedObjectContext/readsFromReplicas``. Their URLs have the form of the store's URL; the schema
/// is always the store's, whatever they name. If a server turns out not to be a replica, for instance after a
/// promotion, then nothing is read from it.
///
/// ```swift
/// description.setOption(["postgresql://guide@replica.example.org/shop"] as NSArray, forKey: NSPostgreSQLReplicasOption)
/// ```
public let NSPostgreSQLReplicasOption = "NSPostgreSQLReplicas"

/// Option: how many seconds a read waits for a replica that does not have the saved changes yet, before the primary
/// answers instead.
///
/// Default 0.2.
public let NSPostgreSQLReplicaWaitOption = "NSPostgreSQLReplicaWait"

/// Option: a Boolean that gives a store foreign keys.
///
/// Foreign keys keep other programs that write SQL from leaving relationships that lead nowhere. A store that is made
/// or already exists has them from then on, for all programs and without the option. They are checked when a
/// transaction commits. Two kinds of relationships have no foreign key, because they may lead to deleted objects:
/// relationships to a single object without an inverse, and those whose inverse has the delete rule no-action.
///
/// Adding the store throws `persistentStoreIncompatibleSchema` (134020), with the relationships and the numbers of
/// rows, if some relationships already lead nowhere. It throws `persistentStoreTimeout` (134090) if others keep a table
/// locked, and `fileReadNoPermission` (257) if the role does not own the tables. Nothing is changed then. A store that
/// is opened for reading only is left as it is. The default is `false`, which removes no foreign keys.
///
/// ```swift
/// description.setOption(true as NSNumber, forKey: NSPostgreSQLForeignKeysOption)
/// ```
public let NSPostgreSQLForeignKeysOption = "NSPostgreSQLForeignKeys"

/// Option: a Boolean that lets a new store give its objects keys that lie far apart.
///
/// Some engines that speak PostgreSQL's protocol split tables by ranges of keys, and keep the parts on several machines. Keys are usually consecutive,
/// so that all new rows go to the machine with the last part. Scattered keys spread them over all machines: a process draws 1,000 keys at a time, which
/// are consecutive, and each such block lies elsewhere. On one machine leave it off: with consecutive keys an index grows at its end only.
///
/// The option counts when the store is made, and holds for all programs from then on, also after migrations, backups and new names. An existing store
/// keeps the order of its keys, whatever the option says. A hierarchy of entities has 2^30 blocks, about 10^12 keys, before its keys continue in another area of as many.
/// The default is `false`.
///
/// ```swift
/// description.setOption(true as NSNumber, forKey: NSPostgreSQLScatteredKeysOption)
/// ```
public let NSPostgreSQLScatteredKeysOption = "NSPostgreSQLScatteredKeys"

/// Option: the number of versions that contexts of the store's coordinator may be pinned to at a time, from 1 to 1024.
///
/// Default 16. Each version keeps a connection beside those of the pool, and makes the server keep old rows. Pinning a
/// context beyond this number throws `persistentStoreOperation` (134070). Contexts that are pinned to the same query
/// generation share a version.
public let NSPostgreSQLPinnedVersionsOption = "NSPostgreSQLPinnedVersions"

/// Option: how many seconds a context may be pinned to a version of the primary or of a replica before the version
/// ends.
///
/// Without the option, or with 0, there is no limit. A read of a version that is too old throws
/// `persistentStoreOperation` (134070); pin the context anew then. A read that has already begun runs to its end. The
/// server releases an old version even if no context reads it.
///
/// ```swift
/// description.setOption(600 as NSNumber, forKey: NSPostgreSQLPinnedVersionAgeOption)
/// ```
public let NSPostgreSQLPinnedVersionAgeOption = "NSPostgreSQLPinnedVersionAge"

/// Option: the most connections that all stores of this process on the same server have together, from 1 to 10,000.
///
/// Stores that have this option with the same number share one budget. Stores whose URLs differ only in the schema use the same connections in turn: a
/// store takes the one that it has used last, or else the one that was idle for longest, which takes a round trip more. If none is idle and all may exist
/// already, then a connection of other settings is closed, or the store waits, and throws `persistentStoreTimeout` (134090) at the end of its
/// time-out. Contexts that are pinned to a version, and blocks that lock rows, hold a connection all the time. Such stores also share one connection
/// on which they look for the changes of other processes, once a second; it is not counted. Neither are connections that find out how a commit in doubt has
/// ended, or that make, migrate or destroy a store. Without the option there is no limit beside the
/// number of connections of each store (`NSPersistentStoreConnectionPoolMaxSizeKey`).
///
/// ```swift
/// description.setOption(40 as NSNumber, forKey: NSPostgreSQLServerConnectionsOption)
/// ```
public let NSPostgreSQLServerConnectionsOption = "NSPostgreSQLServerConnections"
