#if canImport(CoreDataPostgreSQL)
import Foundation
import JobQueue

extension RawPostgreSQLSide {
    /// Jobs in a queue from which several processes take them.
    static func doJobs(_ database: RawPostgreSQL, _ url: String, _ count: Int, _ processes: Int) throws -> Sample {
        try database.execute(
            """
            DROP TABLE IF EXISTS job, receipt;
            CREATE TABLE job (id bigint PRIMARY KEY, version bigint, number bigint UNIQUE, document text, is_done boolean,
                claimed_by text, claimed_until double precision);
            CREATE INDEX ON job (is_done, number);
            CREATE TABLE receipt (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, version bigint, worker text,
                time double precision, result bigint, number bigint);
            CREATE INDEX ON receipt (number)
            """
        )
        let numbers = (1...Int64(count)).map { $0 }
        _ = try database.query(
            "INSERT INTO job SELECT number, 1, number, document, false, NULL, NULL FROM unnest($1, $2) AS u (number, document)",
            [RawParameter(numbers), RawParameter(numbers.map(Checksum.document))]
        )
        try database.execute("ANALYZE job")
        let duration = try WorkerProcesses.run(.rawWorkerOfPostgreSQL, in: url, processes)
        return Sample(
            duration: duration,
            checksum: Int(try database.query("SELECT count(*) FROM receipt").int64(0, 0))
        )
    }

    /// In the process that was started for it: does jobs when it is asked to, until there are none left.
    static func doJobsWhenAsked(_ url: String) throws {
        let database = try RawPostgreSQL(url, schema: PostgreSQLBench.rawSchema)
        let worker = "worker-\(getpid())"
        try BenchChild.isReady()
        guard try BenchChild.isAsked() else { return }
        while true {
            let now = Date().timeIntervalSince1970
            let claimed = try database.query(
                """
                UPDATE job SET version = version + 1, claimed_by = $1, claimed_until = $2 FROM (SELECT id FROM job
                    WHERE NOT is_done AND (claimed_until IS NULL OR claimed_until <= $3) ORDER BY number
                    LIMIT \(WorkerProcesses.jobsAtOnce) FOR NO KEY UPDATE SKIP LOCKED) AS free
                WHERE job.id = free.id RETURNING job.id, job.number, job.document
                """,
                [RawParameter(worker), RawParameter(now + 60), RawParameter(now)]
            )
            guard claimed.count > 0 else { return }
            for row in 0..<claimed.count {
                let result = Checksum.result(of: claimed.text(row, 2))
                try database.execute("BEGIN")
                let finished = try database.query(
                    """
                    UPDATE job SET version = version + 1, is_done = true, claimed_by = NULL, claimed_until = NULL
                    WHERE id = $1 AND claimed_by = $2
                    """,
                    [RawParameter(claimed.int64(row, 0)), RawParameter(worker)]
                )
                guard finished.changes == 1 else { throw BenchError("The lease of a job has ended") }
                _ = try database.query(
                    "INSERT INTO receipt (version, worker, time, result, number) VALUES (1, $1, $2, $3, $4)",
                    [
                        RawParameter(worker), RawParameter(now), RawParameter(result),
                        RawParameter(claimed.int64(row, 1)),
                    ]
                )
                try database.execute("COMMIT")
            }
        }
    }
}
#endif
