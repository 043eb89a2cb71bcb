import CoreDataJobs
import Expectations
import Foundation
import Testing

@Suite("Cron expressions")
struct CronExpressionTests {
    private static func zone(_ name: String) throws -> TimeZone { try require(TimeZone(identifier: name)) }

    private static func date(_ text: String) throws -> Date { try Date(text + "Z", strategy: .iso8601) }

    /// The next times after a time, as GMT.
    private static func next(_ text: String, _ zone: String, after start: String, _ count: Int = 1) throws -> [String] {
        let cron = try CronExpression(text, timeZone: Self.zone(zone))
        var times: [String] = []
        var last = try date(start)
        for _ in 0..<count {
            guard let next = cron.next(after: last) else {
                times.append("never")
                break
            }
            expect(next > last)
            last = next
            times.append(String(next.formatted(.iso8601).dropLast()))
        }
        return times
    }

    /// An expression, a time, and the times that follow it, all in GMT.
    private static let inGMT: [(String, String, [String])] = [
        ("* * * * *", "2026-11-28T14:56:30", ["2026-11-28T14:57:00", "2026-11-28T14:58:00"]),
        ("* * * * *", "2026-12-31T23:59:00", ["2027-01-01T00:00:00"]),
        ("*/15 * * * *", "2026-11-28T14:46:00", ["2026-11-28T15:00:00", "2026-11-28T15:15:00"]),
        ("5/20 * * * *", "2026-11-28T14:46:00", ["2026-11-28T15:05:00", "2026-11-28T15:25:00", "2026-11-28T15:45:00"]),
        (
            "30 9-17/4 * * *", "2026-11-28T09:30:00",
            ["2026-11-28T13:30:00", "2026-11-28T17:30:00", "2026-11-29T09:30:00"]
        ),
        ("0,30 8,20 * * *", "2026-11-28T08:10:00", ["2026-11-28T08:30:00", "2026-11-28T20:00:00"]),
        ("0 0 * * mon-fri", "2026-11-28T12:00:00", ["2026-11-30T00:00:00", "2026-12-01T00:00:00"]),
        ("0 0 * * 7", "2026-11-28T12:00:00", ["2026-11-29T00:00:00"]),
        ("0 0 * * 0", "2026-11-28T12:00:00", ["2026-11-29T00:00:00"]),
        ("0 0 * * SAT", "2026-11-28T12:00:00", ["2026-12-05T00:00:00"]),
        // Both days are given: either counts.
        ("0 0 13 * fri", "2026-11-01T12:00:00", ["2026-11-06T00:00:00", "2026-11-13T00:00:00", "2026-11-20T00:00:00"]),
        ("0 0 13 2 tue", "2026-11-01T12:00:00", ["2027-02-02T00:00:00", "2027-02-09T00:00:00", "2027-02-13T00:00:00"]),
        // A step of all days is no choice.
        ("0 0 */2 * fri", "2026-11-01T12:00:00", ["2026-11-13T00:00:00", "2026-11-27T00:00:00"]),
        ("0 0 31 * *", "2026-11-28T12:00:00", ["2026-12-31T00:00:00", "2027-01-31T00:00:00", "2027-03-31T00:00:00"]),
        ("0 0 29 feb *", "2026-11-28T12:00:00", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("0 0 29 2 *", "2096-03-01T00:00:00", ["2104-02-29T00:00:00"]),
        ("0 0 30 2 *", "2026-11-28T12:00:00", ["never"]),
        ("0 0 1 jan,jul *", "2026-11-28T12:00:00", ["2027-01-01T00:00:00", "2027-07-01T00:00:00"]),
        ("@hourly", "2026-11-28T12:00:00", ["2026-11-28T13:00:00"]),
        ("@daily", "2026-11-28T12:00:00", ["2026-11-29T00:00:00"]),
        ("@Midnight", "2026-11-28T12:00:00", ["2026-11-29T00:00:00"]),
        ("@weekly", "2026-11-28T12:00:00", ["2026-11-29T00:00:00", "2026-12-06T00:00:00"]),
        ("@monthly", "2026-11-28T12:00:00", ["2026-12-01T00:00:00", "2027-01-01T00:00:00"]),
        ("@yearly", "2026-11-28T12:00:00", ["2027-01-01T00:00:00"]),
        ("@annually", "1969-11-28T12:00:00", ["1970-01-01T00:00:00"]),
        ("0 0 * * 3", "1969-12-30T12:00:00", ["1969-12-31T00:00:00"]),
    ]

    @Test(arguments: inGMT)
    func `an expression names its times`(_ text: String, _ start: String, _ times: [String]) throws {
        try expectEqual(Self.next(text, "GMT", after: start, times.count), times)
    }

    /// The same with zones whose clocks change; all times are in GMT.
    private static let withChanges: [(String, String, String, [String])] = [
        // Rome skips 02:00–03:00 on 29 March: a time in it happens at the change, once.
        (
            "30 2 * * *", "Europe/Rome", "2026-03-28T00:00:00",
            ["2026-03-28T01:30:00", "2026-03-29T01:00:00", "2026-03-30T00:30:00"]
        ),
        ("0,20,40 2 * * *", "Europe/Rome", "2026-03-28T12:00:00", ["2026-03-29T01:00:00", "2026-03-30T00:00:00"]),
        ("0 3 * * *", "Europe/Rome", "2026-03-28T12:00:00", ["2026-03-29T01:00:00", "2026-03-30T01:00:00"]),
        ("0 2,3 * * *", "Europe/Rome", "2026-03-28T12:00:00", ["2026-03-29T01:00:00", "2026-03-30T00:00:00"]),
        (
            "*/30 * * * *", "Europe/Rome", "2026-03-29T00:10:00",
            ["2026-03-29T00:30:00", "2026-03-29T01:00:00", "2026-03-29T01:30:00"]
        ),
        // Rome shows 02:00–03:00 twice on 25 October: a time in it happens once, the first time.
        ("30 2 * * *", "Europe/Rome", "2026-10-24T12:00:00", ["2026-10-25T00:30:00", "2026-10-26T01:30:00"]),
        ("0 3 * * *", "Europe/Rome", "2026-10-24T12:00:00", ["2026-10-25T02:00:00"]),
        (
            "30 * * * *", "Europe/Rome", "2026-10-25T00:00:00",
            ["2026-10-25T00:30:00", "2026-10-25T01:30:00", "2026-10-25T02:30:00"]
        ),
        (
            "30 */2 * * *", "Europe/Rome", "2026-10-24T23:00:00",
            ["2026-10-25T00:30:00", "2026-10-25T01:30:00", "2026-10-25T03:30:00"]
        ),
        // New York, 8 March and 1 November.
        ("30 2 * * *", "America/New_York", "2026-03-08T00:00:00", ["2026-03-08T07:00:00", "2026-03-09T06:30:00"]),
        ("15 1 * * sun", "America/New_York", "2026-10-31T12:00:00", ["2026-11-01T05:15:00", "2026-11-08T06:15:00"]),
        // Lord Howe changes by half an hour: 02:00 becomes 02:30 on 4 October, and 02:00 becomes 01:30 on 5 April.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00", ["2026-10-03T15:30:00", "2026-10-04T15:15:00"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00", ["2026-04-04T14:45:00", "2026-04-05T15:15:00"]),
        // Santiago skips the midnight of 6 September.
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00:00", ["2026-09-06T04:00:00", "2026-09-07T03:00:00"]),
        ("30 0 6 9 *", "America/Santiago", "2026-09-01T12:00:00", ["2026-09-06T04:00:00"]),
        // Samoa skipped the whole of 30 December 2011.
        (
            "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00",
            ["2011-12-29T22:00:00", "2011-12-30T10:00:00", "2011-12-30T22:00:00"]
        ),
        // No changes, and an odd offset.
        ("0 9 * * *", "Asia/Kathmandu", "2026-11-28T00:00:00", ["2026-11-28T03:15:00", "2026-11-29T03:15:00"]),
    ]

    @Test(arguments: withChanges)
    func `a time happens once when clocks change`(_ text: String, _ zone: String, _ start: String, _ times: [String])
        throws
    {
        try expectEqual(Self.next(text, zone, after: start, times.count), times)
    }

    @Test(arguments: [
        "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca",
    ])
    func `a daily time happens once on each day of three years`(_ zone: String) throws {
        for text in ["0 0 * * *", "30 1 * * *", "0 2 * * *", "30 2 * * *", "59 23 * * *"] {
            let cron = try CronExpression(text, timeZone: Self.zone(zone))
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = try Self.zone(zone)
            var last = try require(cron.next(after: Self.date("2025-01-01T12:00:00")))
            var day = calendar.startOfDay(for: last)
            for _ in 0..<1095 {
                last = try require(cron.next(after: last))
                let next = calendar.startOfDay(for: last)
                expectEqual(
                    calendar.dateComponents([.day], from: day, to: next.addingTimeInterval(7200)).day,
                    1,
                    "\(last)"
                )
                day = next
            }
        }
    }

    @Test(arguments: [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8",
        "*/0 * * * *", "*/x * * * *", "5-1 * * * *", "1,,2 * * * *", "a * * * *", "* * * mon *", "-1 * * * *",
        "1-2-3 * * * *", "1/2/3 * * * *", "@often", "99999999999999999999 * * * *", "+1 * * * *", "*5 * * * *",
    ])
    func `what is no expression is refused with its field`(_ text: String) throws {
        let fault = expectThrows(CronExpression.Fault.self) { try CronExpression(text) }
        expect(fault?.description.contains("is no") == true, "\(fault?.description ?? "")")
    }

    @Test func `a fault names the field and the value`() {
        let fault = expectThrows(CronExpression.Fault.self) { try CronExpression("0 25 * * *") }
        expectEqual(fault?.description, "“25” is no hour: 25 is not between 0 and 23.")
    }
}
