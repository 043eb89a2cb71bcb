import Foundation
import JobQueue

extension RawSide {
    private static func jobsPath(_ folder: String) -> String { folder + "/raw-jobs.sqlite" }

    /// Jobs in a queue from which several processes take them.
    static func doJobs(in folder: String, count: Int, processes: Int) throws -> Sample {
        let path = jobsPath(folder)
        defer { removeDatabase(at: path) }
        let database = try RawDatabase(path: path)
        try database.execute(
            """
            CREATE TABLE job (pk INTEGER PRIMARY KEY, version INTEGER, number INTEGER, document TEXT, enqueuedAt REAL, isDone INTEGER,
                claimedBy TEXT, claimedUntil REAL);
            CREATE INDEX byProgress ON job (isDone, number); CREATE UNIQUE INDEX byNumber ON job (number);
            CREATE TABLE receipt (pk INTEGER PRIMARY KEY, version INTEGER, worker TEXT, time REAL, result INTEGER, number INTEGER);
            CREATE INDEX receiptByNumber ON receipt (number); BEGIN
            """
        )
        let insert = try database.prepare("INSERT INTO job VALUES (?, 1, ?, ?, 0, 0, NULL, NULL)")
        for number in 1...Int64(count) {
            insert.bind(number, at: 1)
            insert.bind(number, at: 2)
            insert.bind(Checksum.document(number), at: 3)
            try insert.run()
        }
        try database.execute("COMMIT")
        let duration = try WorkerProcesses.run(.rawWorker, in: folder, processes)
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
                (SELECT pk FROM job WHERE isDone = 0 AND (claimedUntil IS NULL OR claimedUntil <= ?3) ORDER BY number LIMIT \(WorkerProcesses.jobsAtOnce))
            RETURNING pk, number, document
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
            var claimed: [(key: Int64, number: Int64, document: String)] = []
            let now = sharedClock()
            claim.bind(worker, at: 1)
            claim.bind(now + 60e9, at: 2)
            claim.bind(now, at: 3)
            while try claim.step() { claimed.append((claim.integer(0), claim.integer(1), claim.text(2))) }
            claim.reset()
            guard !claimed.isEmpty else { return }
            for job in claimed {
                let result = Checksum.result(of: job.document)
                try database.execute("BEGIN IMMEDIATE")
                finish.bind(job.key, at: 1)
                finish.bind(worker, at: 2)
                try finish.run()
                guard database.changes == 1 else { throw BenchError("The lease of a job has ended") }
                receipt.bind(worker, at: 1)
                receipt.bind(now, at: 2)
                receipt.bind(result, at: 3)
                receipt.bind(job.number, at: 4)
                try receipt.run()
                try database.execute("COMMIT")
            }
        }
    }
}
