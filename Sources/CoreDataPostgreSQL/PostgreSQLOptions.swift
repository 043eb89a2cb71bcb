/// Option: an array of `postgresql://` URLs, or of texts that are such, one for each replica: a server that follows the one which the
/// store's URL leads to.
///
/// Reads of contexts with ``CoreData/NSManagedObjectContext/readsFromReplicas`` are answered there. The URLs are as that of the store; the
/// schema is the store's, whatever they say. A server that turns out to be no replica, as after a promotion, is not read from.
///
/// ```swift
/// description.setOption(["postgresql://guide@replica.example.org/shop"] as NSArray, forKey: NSPostgreSQLReplicasOption)
/// ```
public let NSPostgreSQLReplicasOption = "NSPostgreSQLReplicas"

/// Option: for how many seconds a read waits for a replica to have what was saved, before the primary answers in its place.
///
/// Default 0.2.
public let NSPostgreSQLReplicaWaitOption = "NSPostgreSQLReplicaWait"

/// Option: a Boolean that gives a store foreign keys, which keep programs with SQL of their own from leaving relationships that lead nowhere.
///
/// A store that is made, or is there already, has them from then on, for all programs and without the option. They are checked when a
/// transaction commits. Relationships without an inverse to a single object, and those whose inverse has the delete rule no-action, have none,
/// as they may lead to what was deleted. Adding the store throws `persistentStoreIncompatibleSchema` (134020), with the relationships and
/// the numbers of rows, if some lead nowhere as yet, `persistentStoreTimeout` (134090) if others keep a table locked, and
/// `fileReadNoPermission` (257) if the role does not own the tables; nothing is changed then. A store that is opened for reading only is left
/// as it is. Default `false`, which takes away nothing.
///
/// ```swift
/// description.setOption(true as NSNumber, forKey: NSPostgreSQLForeignKeysOption)
/// ```
public let NSPostgreSQLForeignKeysOption = "NSPostgreSQLForeignKeys"

/// Option: how many versions contexts of the store's coordinator may be pinned to at a time, from 1 to 1024.
///
/// Default 16. Each keeps a connection beside those of the pool, and has the server keep old rows. Whoever pins a context beyond that gets
/// `persistentStoreOperation` (134070). Contexts that are pinned to the same query generation share a version.
public let NSPostgreSQLPinnedVersionsOption = "NSPostgreSQLPinnedVersions"

/// Option: for how many seconds a context may be pinned to a version, of the primary or of a replica, before that is given up.
///
/// No limit without it, nor with 0. A read of a version that is older throws `persistentStoreOperation` (134070): pin the context anew. A read
/// that has begun before is let finish. The server lets go of an old version by itself, also if nobody reads.
///
/// ```swift
/// description.setOption(600 as NSNumber, forKey: NSPostgreSQLPinnedVersionAgeOption)
/// ```
public let NSPostgreSQLPinnedVersionAgeOption = "NSPostgreSQLPinnedVersionAge"
