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
