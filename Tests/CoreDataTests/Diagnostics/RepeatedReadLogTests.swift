import CoreData
import Expectations
import TestSupport
import Testing

/// The settings of the log hold for the process, so each test runs in a separate one.
@Suite("The log of repeated reads")
struct RepeatedReadLogTests {
    /// Counts the events of repeated reads.
    private struct Log: CoreDataInstrument {
        let count = Shared(0)

        func record(_ event: CoreDataEvent) { if event.kind == .repeatedReads { count.update { $0 += 1 } } }
    }

    /// A store with twelve venues, each in its own city.
    private static func guide() throws -> Stack {
        let stack = try Stack(.database)
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<12 {
                let (venue, city) = (Venue(context: context), City(context: context))
                (venue.name, city.name, venue.city) = ("venue \(number)", "city \(number)", city)
            }
            try context.save()
        }
        return stack
    }

    /// Reads the venues and, one by one, their cities.
    private static func read(_ stack: Stack, in context: NSManagedObjectContext) throws {
        stack.coolDown()
        try context.performAndWait {
            context.reset()
            for venue in try context.fetch(venues()) { _ = venue.city?.name }
        }
    }

    @Test func `one block in as many as the program says is watched`() async {
        await #expect(processExitsWith: .success) {
            let stack = try Self.guide()
            let log = Log()
            stack.coordinator.instrument = log
            let context = stack.context()
            for interval in [1, 4] {
                RepeatedReadLog.samplingInterval = interval
                log.count.update { $0 = 0 }
                for _ in 0..<40 { try Self.read(stack, in: context) }
                expectEqual(log.count.current, 40 / interval)
            }
            RepeatedReadLog.threshold = nil
            for _ in 0..<40 { try Self.read(stack, in: context) }
            expectEqual(log.count.current, 10)
        }
    }

    @Test func `each place is written once`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let stack = try Self.guide()
            let context = stack.context()
            RepeatedReadLog.samplingInterval = 1
            for _ in 0..<3 { try Self.read(stack, in: context) }
            try context.performAndWait {
                context.reset()
                stack.coolDown()
                for venue in try context.fetch(venues()) { _ = venue.tags.count }
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let lines = text.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("CoreData: ") }
        expectEqual(lines.count { $0.contains("10 objects of City") }, 1)
        expectEqual(lines.count { $0.contains("the members of Venue.tags of 10 objects") }, 1)
    }
}
