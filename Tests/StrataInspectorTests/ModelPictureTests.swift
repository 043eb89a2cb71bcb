import Expectations
import FoundationXML
import TestSupport
import Testing

@testable import CoreData
@testable import StrataInspector

@Suite("Pictures of models")
struct ModelPictureTests {
    @Test("no two boxes overlap, and no line runs through a box", arguments: [1, 2, 5, 12, 40, 90])
    func free(_ count: Int) {
        let picture = ModelPicture(ModelFixtures.large(count))
        let layout = PictureLayout(picture)

        expectEqual(layout.boxes.count, count)
        for (index, box) in layout.boxes.enumerated() {
            expect(box.x >= 0 && box.y >= 0 && box.x + box.width <= layout.width && box.bottom <= layout.height)
            for other in layout.boxes[(index + 1)...] {
                let isApart =
                    box.x + box.width <= other.x || other.x + other.width <= box.x || box.bottom <= other.y
                    || other.bottom <= box.y
                expect(isApart)
            }
            for route in layout.routes.compactMap({ $0 }) {
                // Levels end at their box's side; tracks run between columns.
                let isBetween = route.track <= box.x || route.track >= box.x + box.width
                let (low, high) = (min(route.start.y, route.end.y), max(route.start.y, route.end.y))
                expect(isBetween || high < box.y || low > box.bottom)
            }
        }
        expect(layout.routes.allSatisfy { $0 != nil })
    }

    @Test("two lines share no piece of a track", arguments: [12, 40])
    func tracks(_ count: Int) {
        let layout = PictureLayout(ModelPicture(ModelFixtures.large(count)))
        let routes = layout.routes.compactMap { $0 }

        for (index, route) in routes.enumerated() {
            for other in routes[(index + 1)...] where abs(route.track - other.track) < 1 {
                let mine = min(route.start.y, route.end.y)...max(route.start.y, route.end.y)
                expect(!mine.overlaps(min(other.start.y, other.end.y)...max(other.start.y, other.end.y)))
            }
        }
    }

    @Test("a picture of many entities keeps a shape that a screen has", arguments: [12, 40, 90])
    func shape(_ count: Int) {
        let layout = PictureLayout(ModelPicture(ModelFixtures.large(count)))

        expect((0.3...4).contains(layout.width / layout.height), "\(layout.width) by \(layout.height)")
    }

    @Test("a relationship that is its own inverse has its cardinality at both ends, and one without an inverse at one")
    func ownInverse() throws {
        let edges = ModelPicture(try ModelFixtures.everythingModel()).edges

        let near = try require(edges.first { $0.title == "Place.near" })
        expect(near.from.cardinality == "*" && near.to.cardinality == "*")
        let twin = try require(edges.first { $0.title == "City.twin" })
        expect(twin.from.cardinality == nil && twin.to.cardinality != nil)
    }

    @Test("the file is XML with a box for each entity, its attributes, relationships, cardinalities and parents")
    func file() throws {
        let model = try ModelFixtures.everythingModel()

        let text = SVGWriter.lines(of: model).joined(separator: "\n")

        let delegate = Counter()
        let parser = XMLParser(data: Data(text.utf8))
        parser.delegate = delegate
        expect(parser.parse())
        expectEqual(delegate.elements["svg"], 1)
        for text in ["Place", "Bar", "City", "population", "Integer 64?", "abstract", "is a Place", "City 0..1"] {
            expect(delegate.texts.contains(text), "\(text) in \(delegate.texts)")
        }
        // The signs at the ends of City.places – Place.city.
        expect(delegate.texts.contains("1..9") || delegate.texts.contains("0..9"))
        expect(delegate.texts.contains("City.places – Place.city"))
        expect(text.contains("class=\"line parent\""))
    }

    private final class Counter: NSObject, XMLParserDelegate {
        var elements: [String: Int] = [:]
        var texts: Set<String> = []
        private var text = ""

        func parser(
            _ parser: XMLParser,
            didStartElement name: String,
            namespaceURI: String?,
            qualifiedName: String?,
            attributes: [String: String]
        ) {
            elements[name, default: 0] += 1
            text = ""
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

        func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
            texts.insert(text)
            text = ""
        }
    }
}
