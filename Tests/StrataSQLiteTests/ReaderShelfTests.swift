import Expectations
import StrataLocks
import Synchronization
import Testing

@testable import StrataSQLite

@Suite("The shelf of readers")
struct ReaderShelfTests {
    /// Counts the readers in use.
    private final class Usage: Sendable {
        let inUse = Atomic(0)
        let most = Atomic(0)

        func use(_ body: () -> Void) {
            most.max(inUse.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
            body()
            inUse.subtract(1, ordering: .relaxed)
        }
    }

    private static func use(_ shelf: ReaderShelf, timeout: Double, cancellation: Cancellation? = nil) throws
        -> Connection
    {
        switch try shelf.take(timeout: timeout, cancellation: cancellation).grant {
        case .idle(let connection): connection
        case .mayOpen: try Connection(path: ":memory:", access: .readWriteCreate)
        }
    }

    @Test func `many threads share few readers, and no wake-up is lost`() throws {
        let shelf = ReaderShelf(limit: 3)
        let usage = Usage()
        let served = Atomic(0)
        let threads = (0..<8).map { thread in
            onThread {
                for round in 0..<400 {
                    // Some give up at once, some are cancelled beforehand, some break their reader.
                    if round % 7 == thread % 7 {
                        if let early = try? Self.use(shelf, timeout: 0) { shelf.putBack(early) }
                    }
                    if round % 11 == thread % 11 {
                        let cancellation = Cancellation()
                        cancellation.cancel()
                        if let late = try? Self.use(shelf, timeout: 30, cancellation: cancellation) {
                            shelf.putBack(late)
                        }
                    }
                    let connection = try Self.use(shelf, timeout: 30)
                    usage.use { served.add(1, ordering: .relaxed) }
                    if round % 13 == 0 { shelf.discard(connection) } else { shelf.putBack(connection) }
                }
            }
        }
        for thread in threads { try thread.join() }

        expectEqual(served.load(ordering: .relaxed), 8 * 400)
        expect(usage.most.load(ordering: .relaxed) <= 3)
        expectEqual(shelf.waiterCount, 0)
        let all = try (0..<3).map { _ in try Self.use(shelf, timeout: 0) }
        expectThrows(SQLiteError.self) { _ = try Self.use(shelf, timeout: 0) }
        for connection in all { shelf.putBack(connection) }
    }

    @Test func `a closed shelf gives nothing, also to those who wait`() throws {
        let shelf = ReaderShelf(limit: 1)
        let connection = try Self.use(shelf, timeout: 0)
        let thread = onThread {
            let error = try failure { _ = try Self.use(shelf, timeout: 30) }
            expectEqual(error.code, .misuse)
        }
        try wait { shelf.waiterCount == 1 }

        shelf.close()
        shelf.putBack(connection)

        try thread.join()
        try expectEqual(failure { _ = try Self.use(shelf, timeout: 0) }.code, .misuse)
    }

    @Test func `a reader taken away makes room for another`() throws {
        let shelf = ReaderShelf(limit: 1)
        shelf.putBack(try Self.use(shelf, timeout: 0))
        let taken = try require(shelf.removeIdle())
        let second = try Self.use(shelf, timeout: 0)
        expect(second !== taken)
        expect(shelf.removeIdle() == nil)
        shelf.putBack(second)
        shelf.adopt(taken)
        expect(shelf.removeIdle() === second, "the one that came too many was closed")
    }
}
