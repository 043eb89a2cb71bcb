/// The pieces of work that are measured on PostgreSQL, under their names in the documentation.
enum PostgreSQLWorkload: String, CaseIterable {
    case insert = "P1"
    case insertInBatches = "P2"
    case insertWithKeys = "P2k"
    case readEverything = "P3"
    case lookUp = "P4"
    case gather = "P4b"
    case change = "P5"
    case batchUpdate = "P6"
    case batchDelete = "P7"
    case batchInsert = "P8"
    case writers = "P9"
    case history = "P10"
    case remoteChange = "P11"
    case manyWriters = "P12"
    case jobQueueOfOne = "P13a"
    case jobQueue = "P13"
    case jobQueueOfMany = "P13b"
    case jobQueueOneByOne = "P13c"
    case jobAmongMany = "P13d"
    case changeLocked = "P14"
    case migration = "P15"

    var summary: String {
        switch self {
        case .insert: "insert all rows, one save"
        case .insertInBatches: "insert all rows, a save each 100"
        case .insertWithKeys: "P2, where libpq's table has a foreign key: the framework never lets one dangle"
        case .readEverything: "fetch all rows, read every property, caches cold"
        case .lookUp: "1,000 look-ups by ID in random order, caches cold"
        case .gather: "1,000 faults filled by one fetch"
        case .change: "load, change and save 10,000 rows"
        case .batchUpdate: "batch update of all rows"
        case .batchDelete: "batch delete of half of the rows"
        case .batchInsert: "batch insert of all rows"
        case .writers: "8 threads, saves of 10 insertions; ratio of the saves"
        case .history: "P2 with a history; against without"
        case .remoteChange: "from a save in one process to the merged object in another, 100 times"
        case .jobQueueOfOne: "jobs of a queue, claimed and done by one process"
        case .jobQueue: "the same by four processes"
        case .jobQueueOfMany: "the same by 16 processes"
        case .jobQueueOneByOne: "P13 with a save for each job on both sides"
        case .jobAmongMany: "200 jobs of a limited queue done one by one, while as many as rows wait; against 1,000"
        case .changeLocked: "1,000 times: lock one row, change it and save, in a transaction each"
        case .migration: "8 threads save while a table gets another type, an index and an attribute"
        case .manyWriters: "32 threads of 4 processes, saves of 10 insertions, a history; ratio of the saves"
        }
    }

    /// The goal: at most so many times what raw libpq takes.
    ///
    /// For P9 and P12 it is at least so large a share of libpq's saves, and for P11 at most so many milliseconds. For P15
    /// it is at most so many times the usual p99.
    var goal: Double {
        switch self {
        case .insert, .gather, .change: 1.5
        case .insertInBatches, .insertWithKeys, .readEverything, .lookUp: 1.3
        case .batchUpdate, .batchDelete, .batchInsert: 1.1
        case .writers: 0.8
        case .history: 1.4
        case .remoteChange: 50
        case .manyWriters: 1.0 / 3
        case .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne, .changeLocked: 3
        case .jobAmongMany: 1.2
        case .migration: 2
        }
    }

    /// The number of processes that do the jobs of a queue; `nil` for other work.
    var processes: Int? {
        switch self {
        case .jobQueueOfOne: 1
        case .jobQueue, .jobQueueOneByOne: 4
        case .jobQueueOfMany: 16
        default: nil
        }
    }
}
