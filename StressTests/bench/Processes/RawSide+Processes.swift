import Foundation
import JobQueue

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

    // MARK: - Jobs

    private static func jobsPath(_ folder: String) -> String { folder + "/raw-jobs.sqlite" }

    /// Jobs in a queue from which several processes take them.
    static func doJobs(in folder: String, count: Int, processes: Int) throws -> Sample {
        let path = jobsPath(folder)
        defer { removeDatabase(at: path) }
        let database = try RawDatabase(path: path)
        try database.execute(
            """
            CREATE TABLE job (pk INTEGER PRIMARY KEY, version INTEGER, number INTEGER, payload TEXT, enqueuedAt REAL, isDone INTEGER,
                claimedBy TEXT, claimedUntil REAL);
            CREATE INDEX byProgress ON job (isDone, number); CREATE UNIQUE INDEX byNumber ON job (number);
            CREATE TABLE receipt (pk INTEGER PRIMARY KEY, version INTEGER, worker TEXT, time REAL, result INTEGER, job INTEGER);
            CREATE INDEX byJob ON receipt (job); BEGIN
            """
        )
        let insert = try database.prepare("INSERT INTO job VALUES (?, 1, ?, ?, 0, 0, NULL, NULL)")
        for number in 1...Int64(count) {
            insert.bind(number, at: 1)
            insert.bind(number, at: 2)
            insert.bind(Job.payload(number), at: 3)
            try insert.run()
        }
        try database.execute("COMMIT")
        let duration = try Jobs.run(.rawWorker, in: folder, processes)
        let done = try database.prepare("SELECT count(*) FROM receipt")
        return Sample(duration: duration, checksum: try done.step() ? Int(done.integer(0)) : 0)
    }

    static func work(in folder: String) throws {
        let database = try RawDatabase(path: jobsPath(folder))
        try database.execute("PRAGMA busy_timeout = 60000")
        let worker = "worker-\(getpid())"
        let claim = try database.prepare(
            """
            UPDATE job SET version = version + 1, claimedBy = ?1, claimedUntil = ?2 WHERE pk IN
                (SELECT pk FROM job WHERE isDone = 0 AND (claimedUntil IS NULL OR claimedUntil <= ?3) ORDER BY number LIMIT 8)
            RETURNING pk, payload
            """
        )
        let finish = try database.prepare(
            """
            UPDATE job SET version = version + 1, isDone = 1, claimedBy = NULL, claimedUntil = NULL WHERE pk = ? AND claimedBy = ?
            """
        )
        let receipt = try database.prepare("INSERT INTO receipt VALUES (NULL, 1, ?, ?, ?, ?)")
        try BenchChild.isReady()
        guard try BenchChild.isAsked() else { return }
        while true {
            var claimed: [(key: Int64, payload: String)] = []
            let now = sharedClock()
            claim.bind(worker, at: 1)
            claim.bind(now + 60e9, at: 2)
            claim.bind(now, at: 3)
            while try claim.step() { claimed.append((claim.integer(0), claim.text(1))) }
            claim.reset()
            guard !claimed.isEmpty else { return }
            for job in claimed {
                let result = Job.result(of: job.payload)
                try database.execute("BEGIN IMMEDIATE")
                finish.bind(job.key, at: 1)
                finish.bind(worker, at: 2)
                try finish.run()
                guard database.changes == 1 else { throw BenchError("The lease of a job has ended") }
                receipt.bind(worker, at: 1)
                receipt.bind(now, at: 2)
                receipt.bind(result, at: 3)
                receipt.bind(job.key, at: 4)
                try receipt.run()
                try database.execute("COMMIT")
            }
        }
    }
}

/// The worker processes.
enum Jobs {
    /// Lets the workers do all jobs, and waits for their ends.
    static func run(_ part: ChildPart, in folder: String, _ processes: Int) throws -> Duration {
        let children = try (0..<processes).map { _ in try BenchChild(part, in: folder) }
        let clock = ContinuousClock()
        let start = clock.now
        for child in children { try child.ask() }
        for child in children { try child.end() }
        return clock.now - start
    }
}
