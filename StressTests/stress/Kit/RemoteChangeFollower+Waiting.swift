import CoreData
import StrataLocks

extension RemoteChangeFollower {
    /// Waits with the thread until what was committed before, by whichever process, is merged.
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
