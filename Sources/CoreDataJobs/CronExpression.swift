import Foundation

/// Times that repeat, as five fields: minute, hour, day of the month, month, day of the week.
///
/// ```swift
/// let weekdays = try CronExpression("0 9-17/2 * * mon-fri", timeZone: TimeZone(identifier: "Europe/Rome") ?? .gmt)
/// print(weekdays.next(after: Date()) ?? "never")
/// let daily = try CronExpression("@daily")
/// print(daily.timeZone)
/// ```
///
/// A field is `*`, a number, a name (`jan`, `mon`), a range (`1-5`), a step (`*/15`, `8-18/2`, `5/10`), or a list of these
/// with commas. Sunday is 0 or 7. If both the day of the month and the day of the week are given, then a day matches one of
/// them, as in other crons. `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` are short
/// forms.
///
/// When clocks change, each time still happens once: a time that the clocks skip happens at the moment of the change, and a
/// time that they show twice happens the first time. If the hour is `*` or `*/n`, then the times are those that the clock
/// shows, each time it shows them.
public struct CronExpression: Hashable, Sendable, CustomStringConvertible {
    /// The text.
    public let description: String
    /// The time zone whose clocks show the times.
    public let timeZone: TimeZone

    private let minutes: [Int]
    private let hours: [Int]
    private let days: Set<Int>
    private let months: Set<Int>
    private let weekdays: Set<Int>
    private let anyDay: Bool
    private let anyWeekday: Bool
    private let followsClock: Bool

    /// The reason why a text is no expression.
    ///
    /// ```swift
    /// do {
    ///     print(try CronExpression("61 * * * *"))
    /// } catch let error as CronExpression.Fault {
    ///     print(error.description)
    /// }
    /// ```
    public struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// A sentence that names the field.
        public let description: String
    }

    /// Reads an expression.
    ///
    /// - Parameters:
    ///   - text: Five fields, or a short form.
    ///   - timeZone: The time zone; by default GMT, which has no changes of the clock.
    /// - Throws: ``Fault`` if the text is no expression.
    public init(_ text: String, timeZone: TimeZone = .gmt) throws {
        let short = [
            "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
            "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
        ]
        let lowercase = text.lowercased()
        let key = lowercase.trimmingCharacters(in: .whitespaces)
        let fields = (short[key] ?? key).split(whereSeparator: \.isWhitespace).map(String.init)
        guard fields.count == 5 else {
            throw Fault(description: "“\(text)” is no cron expression: it has \(fields.count) fields instead of five.")
        }
        description = text
        self.timeZone = timeZone
        let monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        let dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
        minutes = try Self.values(fields[0], 0...59, "minute").sorted()
        hours = try Self.values(fields[1], 0...23, "hour").sorted()
        days = try Self.values(fields[2], 1...31, "day of the month")
        months = try Self.values(fields[3], 1...12, "month", names: monthNames, first: 1)
        weekdays = Set(try Self.values(fields[4], 0...7, "day of the week", names: dayNames, first: 0).map { $0 % 7 })
        anyDay = fields[2].hasPrefix("*")
        anyWeekday = fields[4].hasPrefix("*")
        followsClock = fields[1].hasPrefix("*")
    }

    private static func values(
        _ field: String,
        _ range: ClosedRange<Int>,
        _ what: String,
        names: [String] = [],
        first: Int = 0
    ) throws -> Set<Int> {
        func fault(_ reason: String) -> Fault { Fault(description: "“\(field)” is no \(what): \(reason).") }
        func number(_ text: Substring) throws -> Int {
            if let index = names.firstIndex(of: String(text)) { return index + first }
            guard !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text) else {
                throw fault("“\(text)” is no number")
            }
            guard range.contains(number) else {
                throw fault("\(number) is not between \(range.lowerBound) and \(range.upperBound)")
            }
            return number
        }
        var values: Set<Int> = []
        for part in field.split(separator: ",", omittingEmptySubsequences: false) {
            let pieces = part.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            var step = 1
            if pieces.count == 2 {
                guard let given = Int(pieces[1]), given > 0, pieces[1].allSatisfy(\.isNumber) else {
                    throw fault("“\(pieces[1])” is no step")
                }
                step = given
            }
            let bounds = pieces[0].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            let (low, high): (Int, Int)
            if pieces[0] == "*" {
                (low, high) = (range.lowerBound, range.upperBound)
            } else if bounds.count == 2 {
                (low, high) = (try number(bounds[0]), try number(bounds[1]))
                guard low <= high else { throw fault("\(low) is after \(high)") }
            } else {
                low = try number(bounds[0])
                high = pieces.count == 2 ? range.upperBound : low
            }
            values.formUnion(stride(from: low, through: high, by: step))
        }
        return values
    }

    // MARK: - Times

    /// The first time after another.
    ///
    /// - Parameter time: The other time.
    /// - Returns: The time; `nil` if there is none within 30 years, as for the 31st of February.
    public func next(after time: Date) -> Date? {
        let seconds = time.timeIntervalSince1970
        guard seconds.isFinite, abs(seconds) < 1e11 else { return nil }
        var day = Self.day(of: local(seconds)) - 1
        for _ in 0..<11_000 {
            if matches(day: day), let found = instants(of: day).first(where: { $0 > seconds }) {
                return Date(timeIntervalSince1970: found)
            }
            day += 1
        }
        return nil
    }

    /// The last time that is after one time and not after another; `nil` if there is none.
    func latest(after start: Date, through end: Date) -> Date? {
        // The nearest start that has a time behind it: a long absence must not be gone through minute by minute.
        let spans: [Double] = [3600, 86_400, 32 * 86_400, 367 * 86_400]
        let starts = spans.map { max(start, end.addingTimeInterval(-$0)) } + [start]
        for start in starts {
            guard var found = next(after: start), found <= end else { continue }
            while let later = next(after: found), later <= end { found = later }
            return found
        }
        return nil
    }

    private func matches(day: Int) -> Bool {
        let (_, month, dayOfMonth) = Self.civil(day)
        guard months.contains(month) else { return false }
        // 1970 began with a Thursday.
        let weekday = ((day % 7) + 11) % 7
        let (isDay, isWeekday) = (days.contains(dayOfMonth), weekdays.contains(weekday))
        return anyDay || anyWeekday ? isDay && isWeekday : isDay || isWeekday
    }

    /// The times of a day, in order, in seconds since 1970.
    private func instants(of day: Int) -> [Double] {
        let midnight = Double(day) * 86_400
        let steady = offset(midnight - 86_400)
        if steady == offset(midnight + 2 * 86_400) {
            return hours.flatMap { hour in minutes.map { midnight + Double(hour * 3600 + $0 * 60) - steady } }
        }
        var found: Set<Double> = []
        for hour in hours {
            for minute in minutes {
                let local = midnight + Double(hour * 3600 + minute * 60)
                // The offsets before and after a change that may be near.
                let offsets = Set([-86_400.0, 86_400.0].map { offset(local + $0) })
                let shown = offsets.map { local - $0 }.filter { offset($0) == local - $0 }.sorted()
                if followsClock {
                    found.formUnion(shown)
                } else if let first = shown.first {
                    found.insert(first)
                } else if let change = change(around: local) {
                    found.insert(change)
                }
            }
        }
        return found.sorted()
    }

    /// The moment at which the clocks skip a local time.
    private func change(around local: Double) -> Double? {
        var (low, high) = (local - offset(local + 86_400) - 86_400, local - offset(local - 86_400) + 86_400)
        let before = offset(low)
        guard offset(high) != before else { return nil }
        while high - low > 1 {
            let middle = ((low + high) / 2).rounded(.down)
            if offset(middle) == before { low = middle } else { high = middle }
        }
        return high
    }

    private func offset(_ seconds: Double) -> Double {
        Double(timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: seconds)))
    }

    private func local(_ seconds: Double) -> Double { seconds + offset(seconds) }

    // MARK: - The calendar

    private static func day(of local: Double) -> Int { Int((local / 86_400).rounded(.down)) }

    /// Year, month and day of a number of days since 1970, in the Gregorian calendar.
    private static func civil(_ day: Int) -> (year: Int, month: Int, day: Int) {
        // Years that begin in March end with the leap day.
        let shifted = day + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        )
    }
}
