/// The raw side with the settings that SQLite has by itself.
enum RawDefaultsSide: ConcurrentSide {
    static func fill(_ folder: String, scale: Scale) throws {
        try withDefaults { try RawSide.fill(folder, scale: scale) }
    }

    static func bytesPerObject(in folder: String, scale: Scale) throws -> Int {
        try withDefaults { try RawSide.bytesPerObject(in: folder, scale: scale) }
    }

    static func run(_ workload: Workload, in folder: String, scale: Scale, isWarm: Bool) throws -> Sample {
        try withDefaults { try RawSide.run(workload, in: folder, scale: scale, isWarm: isWarm) }
    }

    static func crew(_ size: Crew.Size, in folder: String, scale: Scale) throws -> Crew {
        try withDefaults { try RawSide.crew(size, in: folder, scale: scale) }
    }

    private static func withDefaults<Result>(_ body: () throws -> Result) rethrows -> Result {
        RawSide.settings = .defaults
        defer { RawSide.settings = .same }
        return try body()
    }
}
