import Expectations
import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import Testing

/// Who gets the turn of a store, who waits, and who is refused at once, for each caller and each holder.
@Suite("The turn to write")
struct StoreTurnTests {
    private final class Scope: Sendable {}

    private let turn = StoreTurn(timeout: 0.02)
    private let holder = Scope()

    /// What the six ways to take the turn do here: they run, wait in vain, or are refused at once.
    private func answers() -> [String] {
        func answer(_ name: String, _ body: (() -> Void) throws -> Void) -> String {
            var ran = false
            do {
                try body { ran = true }
                return "\(name) \(ran ? "runs" : "does nothing")"
            } catch let error as CocoaError where error.code == .persistentStoreTimeout {
                return "\(name) \(error.localizedDescription.contains("very call") ? "is refused" : "waits")"
            } catch {
                return "\(name) \(error)"
            }
        }
        return [
            answer("take") { body in try turn.take(body) }, answer("takeAlone") { body in try turn.takeAlone(body) },
            answer("takeIfFree") { body in turn.takeIfFree(body) },
            answer("take for the holder") { body in
                guard turn.take(for: holder, timeout: 0.01, cancellation: Cancellation()) else { return }
                turn.giveBack()
                body()
            },
        ]
    }

    @Test func `the turn is taken where it is free, again inside, and by no one else`() throws {
        let free = ["take runs", "takeAlone runs", "takeIfFree runs", "take for the holder runs"]
        let others = ["take waits", "takeAlone waits", "takeIfFree does nothing", "take for the holder does nothing"]
        expectEqual(answers(), free)
        let inside = ["take runs", "takeAlone is refused", "takeIfFree runs", "take for the holder does nothing"]
        try turn.take { expectEqual(answers(), inside) }
        try turn.takeAlone { expectEqual(answers(), inside) }
        turn.takeIfFree { expectEqual(answers(), inside) }
        expectEqual(answers(), free)

        expect(turn.take(for: holder, timeout: 0.01, cancellation: Cancellation()))
        expectEqual(answers(), others)
        // A block that has locked rows would wait for itself, so it is refused without a wait.
        ConfinementScope.enter(holder) {
            expectEqual(
                answers(),
                ["take waits", "takeAlone is refused", "takeIfFree does nothing", "take for the holder does nothing"]
            )
        }
        ConfinementScope.enter(Scope()) { expectEqual(answers(), others) }
        turn.giveBack()
        expectEqual(answers(), free)
        ConfinementScope.enter(holder) { expectEqual(answers(), free) }
    }

    @Test func `the turn is free again after an error, and the caller's scope stays the innermost one`() throws {
        struct Failure: Error {}
        expectThrows(Failure.self) { try turn.take { throw Failure() } }
        expectThrows(Failure.self) { try turn.takeAlone { throw Failure() } }
        try ConfinementScope.enter(holder) {
            try turn.take {
                expect(ConfinementScope.innermost === holder)
                expect(ConfinementScope.contains(turn))
            }
        }
        try turn.take { expect(ConfinementScope.innermost === turn) }
        expect(!ConfinementScope.contains(turn))
        expectEqual(turn.waiterCount, 0)
    }

    @Test func `messages say whether the turn was another's or the caller's own`() throws {
        expect(turn.take(for: holder, timeout: 0.01, cancellation: Cancellation()))
        defer { turn.giveBack() }
        let waited = expectThrows(CocoaError.self) { try turn.take {} }
        let refused = ConfinementScope.enter(holder) { expectThrows(CocoaError.self) { try turn.takeAlone {} } }
        expectEqual(
            waited?.localizedDescription,
            "The store was in use by others for 0.02 s. Neither a store's methods nor who is told of a batch may wait for contexts that use the same store; NSPersistentStoreTimeoutOption sets the time."
        )
        expectEqual(
            refused?.localizedDescription,
            "The store is being written to by the very call that this one is made in, such as a batch insert whose progress is told, or a block that has locked rows. Write when that has returned."
        )
        let cancellation = Cancellation()
        cancellation.cancel()
        expect(!turn.take(for: Scope(), timeout: 60, cancellation: cancellation))
    }
}
