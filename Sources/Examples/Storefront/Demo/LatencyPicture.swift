import Foundation

/// An answer of the server: when it was asked for, and how long it took.
package struct TimedAnswer: Sendable, Equatable {
    /// The seconds from the beginning of the run to the request.
    package var begin: Double
    /// The milliseconds from the request to the end of the answer.
    package var milliseconds: Double

    package init(begin: Double, milliseconds: Double) { (self.begin, self.milliseconds) = (begin, milliseconds) }
}

extension Array where Element == Double {
    /// The value that a given share of all values does not exceed; 0 if there are no values.
    package func quantile(_ share: Double) -> Double {
        let sorted = self.sorted()
        return sorted.isEmpty ? 0 : sorted[Swift.min(Int(share * Double(count)), count - 1)]
    }
}

/// A picture of the latency during a run, as SVG: the median and the 99th percentile of each short span of time.
///
/// An answer belongs to the span in which its request began. If no request began in a span, then the lines have a gap there. So
/// a server that stands still shows as a peak and a gap after it.
package struct LatencyPicture: Sendable {
    /// An event of the run: a vertical line with a text.
    package struct Mark: Sendable {
        /// The seconds from the beginning of the run.
        package var seconds: Double
        package var text: String

        package init(seconds: Double, text: String) { (self.seconds, self.text) = (seconds, text) }
    }

    /// The two figures of a span, in milliseconds.
    private struct Span {
        var median: Double
        var highest: Double
    }

    private static let (width, height) = (760.0, 340.0)
    private static let (left, right, top, bottom) = (64.0, 744.0, 64.0, 296.0)

    private let title: String
    private let seconds: Double
    private let marks: [Mark]
    private let answers: Int
    /// Spans of equal length, from the beginning to the end of the run; nil where no request began.
    private let spans: [Span?]
    /// The latency at the upper edge, in milliseconds, and the distance of the lines below it.
    private let (limit, step): (Double, Double)

    /// Makes the picture.
    ///
    /// - Parameters:
    ///   - title: The text above the picture.
    ///   - answers: The answers, in any order.
    ///   - seconds: The length of the run; more than zero. An answer beyond it belongs to the last span.
    ///   - marks: The events to show.
    package init(_ title: String, answers: [TimedAnswer], seconds: Double, marks: [Mark] = []) {
        (self.title, self.seconds, self.marks, self.answers) = (title, seconds, marks, answers.count)
        // A span of less than a tenth of a second has too few answers for a percentile.
        let count = max(1, min(60, Int(seconds * 10)))
        var latencies = [[Double]](repeating: [], count: count)
        for answer in answers {
            let span = Int(answer.begin / seconds * Double(count))
            latencies[max(0, min(count - 1, span))].append(answer.milliseconds)
        }
        spans = latencies.map { $0.isEmpty ? nil : Span(median: $0.quantile(0.5), highest: $0.quantile(0.99)) }
        (limit, step) = Self.scale(for: spans.reduce(1) { max($0, $1?.highest ?? 0) })
    }

    /// A round number that is at least `most`, and a round part of it.
    private static func scale(for most: Double) -> (limit: Double, step: Double) {
        let power = pow(10, floor(log10(most / 4)))
        let step = [1, 2, 5, 10].map { $0 * power }.first { $0 * 5 >= most } ?? most
        return ((most / step).rounded(.up) * step, step)
    }

    /// The text of a file with the picture.
    ///
    /// It refers to no other file and has no script. It uses dark colours if the reader's system does.
    package var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 340" width="760" height="340" role="img">
        <title>\(Self.escaped(title))</title>
        <style>
        svg { background: #fff; font: 12px system-ui, sans-serif }
        text { fill: #333 } .heading { font-size: 15px; font-weight: 600 } .end { text-anchor: end }
        .middle { text-anchor: middle } .grid { stroke: #ddd } .mark { stroke: #c22; stroke-dasharray: 4 3 }
        .mark-text { fill: #c22 } .band { fill: #2a7de1; fill-opacity: .15 }
        .line { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
        .p50 { stroke: #1559a8 } .p99 { stroke: #2a9de1 } .p50-text { fill: #1559a8 } .p99-text { fill: #2a9de1 }
        @media (prefers-color-scheme: dark) {
        svg { background: #16181c } text { fill: #ccc } .grid { stroke: #3a3d42 }
        .mark { stroke: #f66 } .mark-text { fill: #f66 } .p50 { stroke: #fff } .p50-text { fill: #fff }
        }
        </style>
        <text class="heading" x="16" y="26">\(Self.escaped(title))</text>
        \(legend)
        \(grid)
        \(curves)
        \(markLines)
        </svg>

        """
    }

    private var legend: String {
        guard answers > 0 else { return Self.text("No answers", at: (400, 184), class: "middle") }
        return Self.text("milliseconds", at: (16, 48))
            + Self.text("99 of 100 answers are faster", at: (Self.right, 48), class: "end p99-text")
            + Self.text("half of the answers are faster", at: (Self.right - 190, 48), class: "end p50-text")
    }

    private var grid: String {
        var lines = ""
        for number in 0...Int((limit / step).rounded()) {
            let value = Double(number) * step
            let y = Self.figure(self.y(value))
            lines += "<path class=\"grid\" d=\"M\(Self.figure(Self.left)),\(y)H\(Self.figure(Self.right))\"/>\n"
            lines += Self.text(Self.label(value), at: (Self.left - 8, self.y(value) + 4), class: "end")
        }
        // Five times are enough for any length.
        for part in 0...4 {
            let time = seconds * Double(part) / 4
            lines += Self.text(Self.label(time) + " s", at: (x(time), Self.bottom + 20), class: "middle")
        }
        return lines
    }

    private var curves: String {
        runs.map { run in
            let times = run.map { (Double($0) + 0.5) * seconds / Double(spans.count) }
            func points(_ part: KeyPath<Span, Double>) -> [String] {
                zip(run, times).map { "\(Self.figure(x($1))),\(Self.figure(y(spans[$0]?[keyPath: part] ?? 0)))" }
            }
            let (median, highest) = (points(\.median), points(\.highest))
            return """
                <path class="band" d="M\((highest + median.reversed()).joined(separator: "L"))Z"/>
                <path class="line p99" d="M\((highest + highest.suffix(1)).joined(separator: "L"))"/>
                <path class="line p50" d="M\((median + median.suffix(1)).joined(separator: "L"))"/>
                """
        }.joined(separator: "\n")
    }

    /// The spans that have answers, as runs without a gap.
    private var runs: [Range<Int>] {
        var runs: [Range<Int>] = []
        for (number, span) in spans.enumerated() where span != nil {
            if let last = runs.last, last.upperBound == number {
                runs[runs.count - 1] = last.lowerBound..<number + 1
            } else {
                runs.append(number..<number + 1)
            }
        }
        return runs
    }

    private var markLines: String {
        marks.map { mark in
            let x = self.x(max(0, min(seconds, mark.seconds)))
            // The text of a late event would leave the picture on the right.
            let isLate = mark.seconds > seconds * 0.6
            return
                "<path class=\"mark\" d=\"M\(Self.figure(x)),\(Self.figure(Self.top))V\(Self.figure(Self.bottom))\"/>\n"
                + Self.text(
                    mark.text,
                    at: (x + (isLate ? -6 : 6), Self.top + 12),
                    class: isLate ? "end mark-text" : "mark-text"
                )
        }.joined()
    }

    // MARK: - Places and texts

    private func x(_ time: Double) -> Double { Self.left + time / seconds * (Self.right - Self.left) }

    private func y(_ milliseconds: Double) -> Double { Self.bottom - milliseconds / limit * (Self.bottom - Self.top) }

    private static func text(_ text: String, at place: (x: Double, y: Double), class name: String = "") -> String {
        "<text class=\"\(name)\" x=\"\(figure(place.x))\" y=\"\(figure(place.y))\">\(escaped(text))</text>\n"
    }

    private static func figure(_ value: Double) -> String { String(format: "%.1f", value) }

    /// A number without zeros at its end.
    private static func label(_ value: Double) -> String { String(format: "%g", (value * 100).rounded() / 100) }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
