import Expectations
import Foundation
import FoundationXML
import Testing

@testable import Storefront

/// The picture that `make demo-server` draws.
@Suite("The picture of latency")
struct LatencyPictureTests {
    /// Ten answers of 20 ms in each second of a run of six seconds.
    private let steady = (0..<60).map { TimedAnswer(begin: Double($0) / 10 + 0.05, milliseconds: 20) }

    @Test func `each span of time has a median and a 99th percentile`() {
        let answers = (0..<600).map { number in
            // In the fourth second half of the answers take 100 ms, and one in ten takes 400 ms.
            let isSlow = number >= 300 && number < 400
            return TimedAnswer(
                begin: Double(number) / 100 + 0.005,
                milliseconds: isSlow && number % 10 == 0 ? 400 : isSlow && number.isMultiple(of: 2) ? 100 : 20
            )
        }
        let picture = LatencyPicture("Latency", answers: answers, seconds: 6)
        let (median, highest) = (points("p50", picture), points("p99", picture))
        expectEqual(median.count, 1)
        expectEqual(median[0].count, 60)
        // The latency of 20 ms is at the same height from the beginning to the end.
        expectEqual(Set(median[0].map(\.y)).count, 2)
        // The scale ends at 400 ms: the percentile of the slow spans touches the upper edge.
        expectEqual(Set(highest[0].filter { $0.y < median[0][0].y }.map(\.y)), [64])
        expectEqual(highest[0].indices.filter { highest[0][$0].y == 64 }, Array(30..<40))
        expectEqual(median[0].map(\.x), median[0].map(\.x).sorted())
        expect(picture.svg.contains(">400</text>") && picture.svg.contains(">300</text>"))
        expect(picture.svg.contains(">6 s</text>"))
    }

    @Test func `a server that stands still shows as a peak and a gap`() {
        let answers =
            steady.filter { $0.begin < 2 || $0.begin >= 4 } + [TimedAnswer(begin: 1.95, milliseconds: 2050)]
        let lines = points("p99", LatencyPicture("Latency", answers: answers, seconds: 6))
        expectEqual(lines.map(\.count), [20, 20])
        expectEqual(lines[0].indices.min { lines[0][$0].y < lines[0][$1].y }, 19)
    }

    @Test func `the order of the answers makes no difference, and answers at the edges count`() {
        let edges = [TimedAnswer(begin: 0, milliseconds: 1), TimedAnswer(begin: 6, milliseconds: 2)]
        let picture = LatencyPicture("Latency", answers: steady + edges, seconds: 6)
        let shuffled = LatencyPicture("Latency", answers: (steady + edges).shuffled(), seconds: 6)
        expectEqual(picture.svg, shuffled.svg)
    }

    @Test func `an event is a line with its text, inside of the picture`() {
        let marks = [
            LatencyPicture.Mark(seconds: 3, text: "worker 1 killed"), LatencyPicture.Mark(seconds: 9, text: "late"),
        ]
        let svg = LatencyPicture("Latency", answers: steady, seconds: 6, marks: marks).svg
        expect(
            svg.contains("<path class=\"mark\" d=\"M404.0,64.0V296.0\"/>") && svg.contains(">worker 1 killed</text>")
        )
        expect(svg.contains("<path class=\"mark\" d=\"M744.0,64.0V296.0\"/>") && svg.contains("\"end mark-text\""))
    }

    @Test(arguments: [[], [TimedAnswer(begin: 0.5, milliseconds: 0)], [TimedAnswer(begin: 3, milliseconds: 1e7)]])
    func `the picture is well-formed for any answers and texts`(_ answers: [TimedAnswer]) {
        let mark = LatencyPicture.Mark(seconds: 0, text: "a < b & \"c\" > d")
        let svg = LatencyPicture("Latency <of> R&D", answers: answers, seconds: 0.05, marks: [mark]).svg
        let texts = Texts()
        let parser = XMLParser(data: Data(svg.utf8))
        parser.delegate = texts
        expect(parser.parse(), "\(svg)")
        expect(texts.all.contains("Latency <of> R&D") && texts.all.contains("a < b & \"c\" > d"), "\(texts.all)")
        expectEqual(texts.all.contains("No answers"), answers.isEmpty)
        expect(!svg.contains("nan") && !svg.contains("inf"))
    }

    private struct Point {
        var x: Double
        var y: Double
    }

    /// The points of each line of a kind.
    private func points(_ name: String, _ picture: LatencyPicture) -> [[Point]] {
        var lines: [[Point]] = []
        for match in picture.svg.matches(of: /class="line (p\d+)" d="M([^"]+)"/) where match.1 == name {
            let points = match.2.split(separator: "L").map { text in
                let parts = text.split(separator: ",").compactMap { Double($0) }
                return Point(x: parts[0], y: parts[1])
            }
            // The last point is there twice, so that a line of one point is a dot.
            lines.append(Array(points.dropLast()))
        }
        return lines
    }
}

/// Collects the texts of a picture.
private final class Texts: NSObject, XMLParserDelegate {
    private(set) var all: [String] = []
    private var text = ""

    func parser(
        _ parser: XMLParser,
        didStartElement name: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) { text = "" }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        all.append(text)
    }
}
