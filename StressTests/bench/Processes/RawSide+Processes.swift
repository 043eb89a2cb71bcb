import Foundation

extension RawSide {
    // MARK: - From a commit to another process

    private static func clockPath(_ folder: String) -> String { folder + "/raw-clock.sqlite" }

    /// The time from each commit in another process until this process has read the row.
    static func remoteChanges(in folder: String) throws -> Sample {
        let path = clockPath(folder)
        defer { removeDatabase(at: path) }
        let database = try RawDatabase(path: path)
        try database.execute("CREATE TABLE clock (time REAL); INSERT INTO clock VALUES (0)")
        let version = try database.prepare("PRAGMA data_version")
        let select = try database.prepare("SELECT time FROM clock")
        func read(_ statement: RawStatement) throws -> Double {
            defer { statement.reset() }
            return try statement.step() ? statement.double(0) : 0
        }
        let child = try BenchChild(.rawWriter, in: folder)
        var total = 0.0
        for _ in 0..<Scale.remoteChanges {
            let before = try read(version)
            try child.ask()
            // The loop looks each millisecond, like a program without the kernel's help.
            while try read(version) == before { usleep(1000) }
            total += sharedClock() - (try read(select))
        }
        try child.end()
        return Sample(duration: .nanoseconds(Int64(total)), checksum: Scale.remoteChanges)
    }

    static func writeWhenAsked(in folder: String) throws {
        let database = try RawDatabase(path: clockPath(folder))
        let update = try database.prepare("UPDATE clock SET time = ?")
        try BenchChild.isReady()
        while try BenchChild.isAsked() {
            update.bind(sharedClock(), at: 1)
            try update.run()
        }
    }
}
