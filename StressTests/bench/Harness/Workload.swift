/// The pieces of work that are measured, under their names in the performance goals.
enum Workload: String, CaseIterable {
    case insert = "W1"
    case insertInBatches = "W1b"
    case readEverything = "W2"
    case query = "W3"
    case lookUp = "W4"
    case requestOne = "W4f"
    case traverse = "W5"
    case change = "W6"
    case changeLocked = "W25"
    case childSave = "W14"
    case mergeSave = "W15"
    case queryOverChanges = "W12"
    case findOrInsert = "W24"
    case firstBatch = "W13"
    case readInBatches = "W27"
    case readArrayInBatches = "W27b"
    case openContext = "W16"
    case readProperties = "read"
    case writeProperties = "write"
    case aggregate = "W11"
    case insertHistory = "W18"
    case changeHistory = "W18b"
    case batchUpdate = "W7"
    case batchUpdateOverPlain = "W7b"
    case batchDelete = "W8"
    case batchInsert = "W9"
    case remoteChange = "W19"
    case jobQueueOfOne = "W20a"
    case jobQueue = "W20"
    case jobQueueOfMany = "W20b"
    case jobQueueOneByOne = "W20c"
    case jobAmongMany = "W20d"
    case migrateInPlace = "W21"
    case migrateInFront = "W21b"
    case migrateByCopy = "W22"
    case migrateByPolicy = "W23"

    var name: String { rawValue }

    var summary: String {
        switch self {
        case .insert: "insert all rows, one save"
        case .insertInBatches: "insert all rows, a save each 100"
        case .readEverything: "fetch all rows, read every property"
        case .query: "predicate, order and limit 100, 1,000 times"
        case .lookUp: "1,000 lookups by ID in random order"
        case .requestOne: "1,000 requests for one object by an indexed attribute"
        case .traverse: "the name of each row's to-one, prefetched"
        case .queryOverChanges: "W3 with 1,000 rows changed and not saved"
        case .findOrInsert:
            "2,000 times: look for a row by an indexed value, insert it if there is none; nothing is saved"
        case .firstBatch: "the first 100 of a batched fetch of all rows in order"
        case .readInBatches: "read every property of all rows in batches of 1,000, without keeping them"
        case .readArrayInBatches: "the same, with an array that has all objects, most of them as faults"
        case .change: "load, change and save 10,000 rows"
        case .changeLocked: "1,000 times: lock one row, change it and save, in a transaction each"
        case .childSave: "child saves of 100 changes, all rows registered in the parent; against 100 registered"
        case .mergeSave: "a save of 10,000 changes merged into 8 contexts that hold the objects"
        case .openContext: "1,000 times: make a context, look up one row by ID, drop the context"
        case .readProperties: "read typed properties of 1,000 objects in memory"
        case .writeProperties: "write typed properties of 1,000 changed objects in memory"
        case .aggregate: "sum and count of all rows, then of each city's"
        case .insertHistory: "insert all rows, a save each 100, with a history; against without"
        case .changeHistory: "load, change and save 10,000 rows with a history; against without"
        case .batchUpdate: "batch update of all rows; both sides count their versions up"
        case .batchUpdateOverPlain: "the same; the raw side counts no versions"
        case .batchDelete: "batch delete of half of the rows"
        case .batchInsert: "batch insert of all rows"
        case .remoteChange: "from a commit in one process to the changed object in another, 100 times"
        case .jobQueueOfOne: "jobs of a queue, claimed and done by one process"
        case .jobQueue: "the same by four processes"
        case .jobQueueOfMany: "the same by 16 processes"
        case .jobQueueOneByOne: "W20 with a save for each job on both sides"
        case .jobAmongMany:
            "200 jobs of a limited queue taken and done one by one, while as many as rows wait; against 1,000 that wait"
        case .migrateInPlace: "a migration that adds an attribute and an entity"
        case .migrateInFront: "the same, and the new entity comes first, so that all rows get another number"
        case .migrateByCopy: "a migration that renames, removes and retypes attributes of all rows"
        case .migrateByPolicy: "a mapping model with a policy; against reading and writing all objects through contexts"
        }
    }

    /// The goal: a result is good if it reaches this or better.
    var goal: Goal {
        switch self {
        case .insert: .ratio(2.5)
        case .insertInBatches: .ratio(1.5)
        case .readEverything, .query, .traverse: .ratio(1.5)
        case .readInBatches, .readArrayInBatches: .ratio(3)
        case .lookUp: .ratio(2)
        case .requestOne: .ratio(3)
        case .findOrInsert: .each(nanoseconds: 100_000)
        case .change, .changeLocked: .ratio(3)
        case .childSave: .ratio(1.2)
        // Twice what W3 may take.
        case .queryOverChanges: .ratio(3)
        // The raw side does little else than fetch the IDs.
        case .firstBatch: .ratio(1.3)
        case .mergeSave: .each(nanoseconds: 1000)
        case .openContext: .eachOverRaw(nanoseconds: 20_000)
        case .readProperties, .writeProperties: .each(nanoseconds: 10)
        case .aggregate: .ratio(1.05)
        case .insertHistory, .changeHistory: .ratio(1.5)
        case .batchUpdate, .batchDelete: .ratio(1.1)
        case .batchUpdateOverPlain: .ratio(1.3)
        case .batchInsert: .ratio(1.2)
        case .remoteChange: .each(nanoseconds: 10_000_000)
        case .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne: .ratio(3)
        case .jobAmongMany: .ratio(1.2)
        case .migrateInPlace, .migrateInFront: .ratio(1.2)
        case .migrateByCopy: .ratio(1.3)
        case .migrateByPolicy: .ratio(4)
        }
    }

    /// Whether the work starts from an empty database.
    var startsEmpty: Bool {
        switch self {
        case .insert, .insertInBatches, .insertHistory, .changeHistory, .batchDelete, .batchInsert, .remoteChange,
            .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne, .jobAmongMany:
            true
        default: false
        }
    }
}

extension Workload {
    /// Whether the work saves, on either side.
    var saves: Bool {
        switch self {
        case .readEverything, .query, .lookUp, .requestOne, .traverse, .queryOverChanges, .findOrInsert, .firstBatch,
            .readInBatches, .readArrayInBatches, .openContext, .readProperties, .writeProperties, .aggregate:
            false
        default: true
        }
    }

    /// Whether the work can be done a second time on the same connection, which has read everything by then.
    var canBeRepeated: Bool {
        switch self {
        case .readEverything, .query, .lookUp, .requestOne, .traverse, .change, .firstBatch, .openContext, .aggregate:
            true
        default: false
        }
    }

    /// Whether the raw side opens a database in this process, so that its settings matter.
    var opensRawDatabase: Bool {
        switch self {
        case .childSave, .insertHistory, .changeHistory, .migrateInPlace, .migrateInFront, .migrateByPolicy,
            .remoteChange, .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne, .jobAmongMany,
            .readProperties, .writeProperties:
            false
        default: true
        }
    }
}

extension Workload {
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

/// A goal for a workload.
enum Goal {
    /// The framework takes at most so many times what the raw C API takes.
    case ratio(Double)
    /// One operation takes at most so many nanoseconds.
    case each(nanoseconds: Double)
    /// One operation takes at most so many nanoseconds more than with the raw C API.
    case eachOverRaw(nanoseconds: Double)
}

/// The amounts of everything in the work.
struct Scale {
    let venues: Int

    var cities: Int { max(1, venues / 100) }
    var lookups: Int { min(1000, venues) }
    static let queries = 1000
    static let queryLimit = 100
    var pendingChanges: Int { min(1000, venues) }
    /// How often a row is looked for before it is inserted.
    static let searches = 2000
    static let batchSize = 100
    static let largeBatchSize = 1000
    var changes: Int { min(10_000, venues) }
    static let venuesPerBatch = 100
    static let changesPerChildSave = 100
    static let childSaves = 200
    static let mergingContexts = 8
    static let remoteChanges = 100
    var jobs: Int { min(2000, venues) }
    /// The jobs that one worker takes one by one, and how many others wait where they are few.
    static let takenJobs = 200
    static let fewWaitingJobs = 1000
    /// The objects in memory whose properties are read and written.
    var held: Int { min(1000, venues) }
    /// How often all objects are visited, how often their properties are read or written at each visit, and how many
    /// properties each has.
    static let rounds = 10
    static let repetitions = 20
    static let properties = 5

    /// The number of operations in a workload, if the time of each is of interest.
    func operations(of workload: Workload) -> Int? {
        switch workload {
        case .openContext: lookups
        case .findOrInsert: Self.searches
        case .mergeSave: changes * Self.mergingContexts
        case .remoteChange: Self.remoteChanges
        case .jobQueue, .jobQueueOfOne, .jobQueueOfMany, .jobQueueOneByOne: jobs
        case .jobAmongMany: Self.takenJobs
        case .readProperties, .writeProperties: held * Self.rounds * Self.repetitions * Self.properties
        default: nil
        }
    }
}

/// One row of test data, the same for both sides.
struct VenueSample {
    let name: String
    let price: Int16
    let distance: Double
    /// Seconds since the reference date.
    let createdAt: Double
    let isFavorite: Bool
    let city: Int

    /// The names that are written in turn.
    static let newNames = ["Old Harbour", "New Harbour"]

    init(_ number: Int, scale: Scale) {
        name = "Venue \(number)"
        price = Int16(truncatingIfNeeded: number &* 7919) & 0x3FFF
        distance = Double(number &* 104_729 % 1_000_003) / 16
        createdAt = 700_000_000 + Double(number) * 1.5
        isFavorite = number % 3 == 0
        city = number % scale.cities
    }
}

/// Random numbers that are the same in every run (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }
}

/// The time of one run, and a checksum of every value that the run touched, which must be the same on both sides.
struct Sample: Equatable {
    let duration: Duration
    let checksum: Int
}

/// One way to do the work.
protocol Side {
    /// Makes a database with all rows in `folder`, for the workloads that start from one.
    static func fill(_ folder: String, scale: Scale) throws

    /// The bytes by which the process grows for each realised object while all are held, SQLite's page cache
    /// included.
    static func bytesPerObject(in folder: String, scale: Scale) throws -> Int

    /// Does the work once, in `folder`, in which an earlier run left nothing but the database.
    ///
    /// - Parameters:
    ///   - workload: The work.
    ///   - folder: Where the databases are.
    ///   - scale: The amounts of everything.
    ///   - isWarm: Whether the work is done twice on one connection, if it can be, so that the second time counts.
    /// - Returns: The time, and a checksum of what was read.
    /// - Throws: Errors of the database.
    static func run(_ workload: Workload, in folder: String, scale: Scale, isWarm: Bool) throws -> Sample
}
