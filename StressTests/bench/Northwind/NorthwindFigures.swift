import Foundation

/// The durations of one form of reading.
struct NorthwindFigures {
    let form: NorthwindForm
    let durations: [Duration]
    /// The times of the form that all others are compared with.
    let base: [Duration]

    private static func microseconds(_ milliseconds: Double) -> Double {
        milliseconds * 1000 / Double(NorthwindData.orderCount)
    }
    private static func least(_ durations: [Duration]) -> Double { (durations.min() ?? .zero) / .milliseconds(1) }

    /// Microseconds for one order.
    private var median: Double { Self.microseconds(Comparison.median(durations)) }
    private var least: Double { Self.microseconds(Self.least(durations)) }
    private var ratio: Double { Comparison.median(durations) / Comparison.median(base) }
    private var leastRatio: Double { Self.least(durations) / Self.least(base) }

    /// The figures as one JSON object.
    var json: String {
        let name = form.rawValue.replacingOccurrences(of: "`", with: "")
        let numbers = String(
            format:
                "\"us_a_row\": %.3f, \"ratio\": %.3f, \"least_us_a_row\": %.3f, \"least_ratio\": %.3f, \"rounds\": %d",
            median,
            ratio,
            least,
            leastRatio,
            durations.count
        )
        return "{\"name\": \"northwind: \(name)\", \(numbers)}"
    }

    /// The figures as lines of a page.
    static func table(_ all: [NorthwindFigures]) -> [String] {
        ["| form | µs a row | ratio | least µs a row | ratio of the least |", "|---|---:|---:|---:|---:|"]
            + all.map { figures in
                let numbers = String(
                    format: "%.2f | %.2f | %.2f | %.2f",
                    figures.median,
                    figures.ratio,
                    figures.least,
                    figures.leastRatio
                )
                return "| \(figures.form.rawValue) | \(numbers) |"
            }
    }
}
