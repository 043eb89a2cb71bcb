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
