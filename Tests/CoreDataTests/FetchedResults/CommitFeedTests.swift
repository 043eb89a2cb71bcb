import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials

@Suite("The feed of commits")
struct CommitFeedTests {
    private final class Counts: Sendable {
        private let counts = Locked((known: 0, unknown: 0))

        var known: Int { counts.withLock { $0.known } }
        var unknown: Int { counts.withLock { $0.unknown } }

        func add(_ message: ChangeMessage?) {
            counts.withLock { if message == nil { $0.unknown += 1 } else { $0.known += 1 } }
        }
    }

    private final class Listener: Sendable {
        let told = Counts()
        let observer: CommitObserver

        init() {
            let told = told
            observer = CommitObserver(committed: { told.add($0) }, contextEnded: {})
        }
    }

    @Test func `listeners come and go while others are told of commits, and one that stays hears of each`() throws {
        let feed = CommitFeed()
        expect(!feed.hasSubscribers)
        let stays = Listener()
        feed.subscribe(stays.observer)
        let teller = onThread {
            for _ in 0..<4000 {
                feed.publishUnknownChanges()
                feed.publish(ChangeMessage())
                expect(feed.hasSubscribers)
            }
        }
        for _ in 0..<4000 {
            let passing = Listener()
            feed.subscribe(passing.observer)
            feed.publishUnknownChanges()
            expect(passing.told.unknown > 0)
        }
        try teller.join()
        expectEqual(stays.told.known, 4000)
        expectEqual(stays.told.unknown, 8000)
    }

    @Test func `listeners of a context come and go while others are told of changes elsewhere`() throws {
        let context = try Stack(.memory).context()
        let observers = context.observers
        let stays = Listener()
        observers.add(stays.observer)
        let teller = onThread { for _ in 0..<4000 { observers.storesChangedElsewhere(ChangeMessage()) } }
        for _ in 0..<4000 {
            let passing = Listener()
            observers.add(passing.observer)
            observers.storesChangedElsewhere(ChangeMessage())
            expect(passing.told.known > 0)
        }
        try teller.join()
        expectEqual(stays.told.known, 8000)
        withExtendedLifetime(context) {}
    }

    @Test func `a feed keeps no listener alive`() {
        let feed = CommitFeed()
        weak var gone: Listener?
        do {
            let listener = Listener()
            gone = listener
            feed.subscribe(listener.observer)
            expect(feed.hasSubscribers)
        }
        expect(gone == nil && !feed.hasSubscribers)
        feed.publishUnknownChanges()
    }
}
