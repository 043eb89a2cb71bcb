import Dispatch
import Expectations
import StrataLocks
import Testing

/// References that are set once.
@Suite("References that are set once")
struct OnceReferenceTests {
    private final class Instance: Sendable {
        let number: Int
        private let ended: @Sendable (Int) -> Void

        init(_ number: Int, ended: @escaping @Sendable (Int) -> Void = { _ in }) {
            self.number = number
            self.ended = ended
        }

        deinit { ended(number) }
    }

    /// The reference, in a class as in the library.
    private final class Holder: Sendable {
        let reference = OnceReference<Instance>()
    }

    @Test func `it is nil, then the first instance, and no other one after that`() {
        let holder = Holder()
        expect(holder.reference.load() == nil)
        expectEqual(holder.reference.storeIfNil(Instance(1)).number, 1)
        expectEqual(holder.reference.storeIfNil(Instance(2)).number, 1)
        expectEqual(holder.reference.load()?.number, 1)
    }

    @Test func `it keeps its instance alive, drops the ones that came late, and lets go at its end`() {
        let ended = Locked<[Int]>([])
        var holder: Holder? = Holder()
        for number in 1...3 {
            _ = holder?.reference.storeIfNil(Instance(number) { number in ended.withLock { $0.append(number) } })
        }
        expectEqual(ended.withLock { $0 }, [2, 3])
        expectEqual(holder?.reference.load()?.number, 1)
        holder = nil
        expectEqual(ended.withLock { $0 }, [2, 3, 1])
    }

    @Test func `threads that set it at the same time all get the same instance, and the others end`() {
        let ended = Locked(0)
        for _ in 0..<200 {
            let holder = Holder()
            let found = Locked<[Int]>([])
            DispatchQueue.concurrentPerform(iterations: 8) { number in
                let mine = Instance(number) { _ in ended.withLock { $0 += 1 } }
                let winner = holder.reference.storeIfNil(mine).number
                let seen = holder.reference.load()?.number
                found.withLock { $0 += [winner, seen ?? -1] }
            }
            expectEqual(Set(found.withLock { $0 }).count, 1)
        }
        expectEqual(ended.withLock { $0 }, 200 * 8)
    }
}
