/// The pieces of work that are measured, by the names they have in the performance goals.
enum Workload: String, CaseIterable {
    case insert = "W1"
    case insertInBatches = "W1b"
    case readEverything = "W2"
    case query = "W3"
    case lookUp = "W4"
    case change = "W6"
    case aggregate = "W11"

    var name: String { rawValue }

    var summary: String {
        switch self {
        case .insert: "insert all rows, one save"
        case .insertInBatches: "insert all rows, a save each 100"
        case .readEverything: "fetch all rows, read every property, caches cold"
        case .query: "predicate, order and limit 100, 1,000 times"
        case .lookUp: "1,000 lookups by ID in random order, caches cold"
        case .change: "load, change and save 10,000 rows"
        case .aggregate: "sum and count of all rows, then of each city's"
        }
    }

    /// The ratio to the raw C API that is aimed at, or better.
    var goal: Double {
        switch self {
        case .insert: 2.5
        case .insertInBatches: 1.5
        case .readEverything, .query: 1.5
        case .lookUp: 2
        case .change: 3
        case .aggregate: 1.05
        }
    }

    /// Whether the work starts from an empty database.
    var startsEmpty: Bool {
        self == .insert || self == .insertInBatches
    }
}

/// How much of everything there is.
struct Scale {
    let venues: Int

    var cities: Int { max(1, venues / 100) }
    var lookups: Int { min(1000, venues) }
    static let queries = 1000
    static let queryLimit = 100
    var changes: Int { min(10_000, venues) }
    static let venuesPerBatch = 100
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

/// What one run took, and a number that depends on every value it touched: both sides must come to the same.
struct Sample: Equatable {
    let duration: Duration
    let checksum: Int
}

/// One way to do the work.
protocol Side {
    /// Makes a database with all rows in `folder`, for the workloads that start from one.
    static func fill(_ folder: String, scale: Scale) throws

    /// Does the work once, in `folder`, with nothing left over from an earlier run but the database.
    static func run(_ workload: Workload, in folder: String, scale: Scale) throws -> Sample
}
