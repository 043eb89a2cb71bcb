import Expectations
import Foundation
import Synchronization
import Testing

@testable import StrataSQLite

#if canImport(Glibc)
@Suite("Events of files")
struct FileEventsTests {
    private let folder: TemporaryFolder
    private let events: FileEvents

    init() throws {
        folder = try TemporaryFolder()
        events = try require(FileEvents.shared)
    }

    private final class Calls: Sendable {
        let count = Atomic(0)

        var now: Int { count.load(ordering: .sequentiallyConsistent) }

        func note() { count.add(1, ordering: .sequentiallyConsistent) }
    }

    private func makeFile(_ name: String) throws -> String {
        let path = folder.file(name)
        try Data("a".utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func append(to path: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data("b".utf8))
        try file.close()
    }

    /// Waits until all events so far were handled.
    ///
    /// The queue is serial: at the second call for a file, everything before the first write to it is done.
    private func settle() throws {
        let path = try makeFile("bell")
        let calls = Calls()
        let token = try require(events.watch(path) { calls.note() })
        for _ in 0..<2 {
            let before = calls.now
            try append(to: path)
            try wait { calls.now > before }
        }
        events.end(token)
    }

    @Test func `writes without a break are reported a few times, including the last`() throws {
        let path = try makeFile("busy")
        let calls = Calls()
        let token = try require(events.watch(path) { calls.note() })
        let start = ContinuousClock.now
        while ContinuousClock.now - start < .seconds(0.5) {
            try append(to: path)
            usleep(50)
        }
        // Watchers report once in five milliseconds.
        expect(calls.now <= 10 + Int((ContinuousClock.now - start) / .milliseconds(2.5)), "\(calls.now)")
        try settle()
        let before = calls.now
        try append(to: path)
        try wait { calls.now > before }
        events.end(token)
    }

    @Test func `a write is reported to all who watch the file, and to no one who watches another`() throws {
        let path = try makeFile("one")
        let first = Calls()
        let second = Calls()
        let stranger = Calls()
        let tokens = [
            try require(events.watch(path) { first.note() }), try require(events.watch(path) { second.note() }),
            try require(events.watch(try makeFile("two")) { stranger.note() }),
        ]
        try append(to: path)
        try wait { first.now > 0 && second.now > 0 }
        try settle()
        expectEqual(stranger.now, 0)
        for token in tokens { events.end(token) }
    }

    @Test func `a watch that has ended is silent, and the other one on the file goes on`() throws {
        let path = try makeFile("one")
        let ended = Calls()
        let other = Calls()
        let first = try require(events.watch(path) { ended.note() })
        let second = try require(events.watch(path) { other.note() })
        events.end(first)
        try append(to: path)
        try wait { other.now > 0 }
        try settle()
        expectEqual(ended.now, 0)
        // A second end of the same watch does not end the other one.
        events.end(first)
        let before = other.now
        try append(to: path)
        try wait { other.now > before }
        events.end(second)
        try settle()
        let after = other.now
        try append(to: path)
        try settle()
        expectEqual(other.now, after)
    }

    @Test func `the kernel's watch ends with the last watch of the file`() throws {
        // The kernel gives the same number to a file as long as it watches it, and does not soon give a number again.
        let path = try makeFile("one")
        let first = try require(events.watch(path) {})
        let second = try require(events.watch(path) {})
        expectEqual(first.watch, second.watch)
        events.end(first)
        let third = try require(events.watch(path) {})
        expectEqual(third.watch, second.watch)
        events.end(third)
        events.end(second)
        let fourth = try require(events.watch(path) {})
        expect(fourth.watch != second.watch)
        events.end(fourth)
    }

    @Test func `a file that is not there cannot be watched`() {
        expect(events.watch(folder.file("none")) {} == nil)
    }
}
#endif
