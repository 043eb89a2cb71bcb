import CoreData
import StrataLocks

extension RemoteChangeFollower {
    /// Blocks the thread until everything that any process committed before is merged.
    func waitToCatchUp() throws {
        let result = Locked<Result<Void, any Error>>(.success(()))
        let done = DispatchSemaphore(value: 0)
        Task {
            do { try await catchUp() } catch { result.withLock { $0 = .failure(error) } }
            done.signal()
        }
        done.wait()
        try result.withLock { $0 }.get()
    }
}
