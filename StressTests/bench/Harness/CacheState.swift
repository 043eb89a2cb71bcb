/// The contents of the caches when the time of a run begins.
///
/// The file itself is always in the cache of the system, so that the disk is not measured.
enum CacheState: String, CaseIterable {
    /// Each run has a new process, which has only opened the database.
    case cold
    /// All runs are in one process, and each opens the database anew.
    case reopened
    /// The same as reopened, but each run does its work twice on one connection, and the second time counts.
    case warm

    var summary: String {
        switch self {
        case .cold: "a process for each run"
        case .reopened: "one process, the database opened anew for each run"
        case .warm: "one process, the second time on an open database"
        }
    }
}
