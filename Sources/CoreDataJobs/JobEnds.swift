import CoreData
import StrataLocks

/// Ends jobs whose runs have no effects in the store, several with one save.
///
/// One end is written at a time. Those that come meanwhile wait, and are then written together. So a job that ends alone
/// waits for nothing, and many that end at once cost few saves.
final class JobEnds: Sendable {
    /// An end that waits to be written.
    private struct End {
        let claim: JobClaim
        let output: String?
        let continuation: CheckedContinuation<Turn, Never>
    }

    /// The next step of the task of an end.
    private enum Turn {
        /// It writes these ends, of which its own is the first; none for its own alone.
        case write([End])
        /// Another task has written its end.
        case written
        /// The ends could not be written together, so each is written by itself.
        case writeAlone
    }

    private struct State {
        var isWriting = false
        var waiting: [End] = []
    }

    private let state = Locked(State())

    /// Ends a job of the desk's worker as done.
    ///
    /// - Parameters:
    ///   - claim: The claim of the run.
    ///   - output: The output of the handler.
    ///   - desk: The desk of the worker.
    ///   - time: The time of the end.
    /// - Returns: Whether the job was still this worker's.
    /// - Throws: Errors of the save.
    func end(_ claim: JobClaim, _ output: String?, at desk: JobDesk, time: @escaping @Sendable () -> Date) async throws
        -> Bool
    {
        let turn: Turn = await withCheckedContinuation { continuation in
            let isFirst = state.withLock { state in
                guard state.isWriting else {
                    state.isWriting = true
                    return true
                }
                state.waiting.append(End(claim: claim, output: output, continuation: continuation))
                return false
            }
            if isFirst { continuation.resume(returning: .write([])) }
        }
        switch turn {
        case .written: return true
        case .writeAlone: return try await desk.settle(claim) { Self.finish($0, output, at: time()) } != nil
        case .write(let ends):
            defer { passOn() }
            if ends.count > 1 {
                let isWritten = await Self.write(ends, at: desk, time: time)
                for end in ends.dropFirst() { end.continuation.resume(returning: isWritten ? .written : .writeAlone) }
                if isWritten { return true }
            }
            return try await desk.settle(claim) { Self.finish($0, output, at: time()) } != nil
        }
    }

    /// Lets the ends that have come meanwhile be written.
    private func passOn() {
        let next = state.withLock { state in
            let next = Array(state.waiting.prefix(JobDesk.portion))
            state.waiting.removeFirst(next.count)
            state.isWriting = !next.isEmpty
            return next
        }
        next.first?.continuation.resume(returning: .write(next))
    }

    /// Writes ends with one save.
    ///
    /// - Returns: Whether it has; otherwise nothing was written.
    private static func write(_ ends: [End], at desk: JobDesk, time: @escaping @Sendable () -> Date) async -> Bool {
        let outputs = Dictionary(ends.map { ($0.claim.id, $0.output) }) { $1 }
        // An error shows again when each is written by itself.
        let isWritten = try? await desk.settleTogether(ends.map(\.claim)) { job in
            finish(job, outputs[job.objectID] ?? nil, at: time())
        }
        return isWritten ?? false
    }

    private static func finish(_ job: QueuedJob, _ output: String?, at time: Date) {
        job.output = output
        job.progress = 1
        job.finish(.done, at: time)
    }
}
