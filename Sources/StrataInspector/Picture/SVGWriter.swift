import CoreData

/// Writes a model's picture as SVG: a file of its own that any browser shows.
struct SVGWriter {
    private let picture: ModelPicture
    private let layout: PictureLayout
    private var lines: [String] = []

    static func lines(of model: NSManagedObjectModel) -> [String] {
        var writer = SVGWriter(ModelPicture(model))
        writer.write()
        return writer.lines
    }

    private init(_ picture: ModelPicture) {
        self.picture = picture
        layout = PictureLayout(picture)
    }

    private static let style = """
        text { font-family: -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; font-size: 12px; \
        fill: #1f2933 }
        .title { font-size: 14px; font-weight: 600; fill: #fff }
        .subtitle { font-size: 11px; fill: #d6e4f5; font-style: italic }
        .note { fill: #7b8794; text-anchor: end }
        .to { fill: #2b6cb0 }
        .unique { font-weight: 700 }
        .count { font-size: 10px; fill: #52606d; paint-order: stroke; stroke: #fff; stroke-width: 3px }
        .box { fill: #fff; stroke: #9fb3c8 }
        .head { fill: #3c5a7d }
        .abstract { fill: #7c8ea3 }
        .rule { stroke: #e4e7eb }
        .line { fill: none; stroke: #6f8bab; stroke-width: 1.3 }
        .line:hover, g:hover > .line { stroke: #d64545; stroke-width: 2.5 }
        .parent { stroke-dasharray: 5 3; stroke: #8a6fb0 }
        .arrow { fill: #fff; stroke: #8a6fb0; stroke-width: 1.3 }
        .foot { fill: none; stroke: #6f8bab; stroke-width: 1.3 }
        """

    private mutating func write() {
        let (width, height) = (Self.number(layout.width), Self.number(layout.height))
        lines.append(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" "
                + "viewBox=\"0 0 \(width) \(height)\">"
        )
        lines.append("<style>")
        lines += Self.style.split(separator: "\n").map(String.init)
        lines.append("</style>")
        lines.append("<rect width=\"100%\" height=\"100%\" fill=\"#fbfcfd\"/>")
        for (edge, route) in zip(picture.edges, layout.routes) {
            if let route { write(edge, route) }
        }
        for (box, place) in zip(picture.boxes, layout.boxes) { write(box, place) }
        lines.append("</svg>")
    }

    // MARK: - Boxes

    private mutating func write(_ box: ModelPicture.Box, _ place: PictureLayout.Rectangle) {
        let head = PictureText.titleHeight(of: box)
        let (x, y) = (place.x, place.y)
        let isAbstract = box.subtitle.hasPrefix("abstract")
        lines.append("<g>")
        lines.append(Self.rectangle("box", x, y, place.width, place.height))
        // The title has the round corners of the box above, and none below.
        let right = x + place.width
        lines.append(
            "<path class=\"head\(isAbstract ? " abstract" : "")\" d=\"M\(Self.point(x, y + head)) V\(Self.number(y + 6)) "
                + "Q\(Self.point(x, y)) \(Self.point(x + 6, y)) H\(Self.number(right - 6)) "
                + "Q\(Self.point(right, y)) \(Self.point(right, y + 6)) V\(Self.number(y + head)) Z\"/>"
        )
        lines.append(Self.text(box.name, "title", x + 12, y + 20))
        if !box.subtitle.isEmpty { lines.append(Self.text(box.subtitle, "subtitle", x + 12, y + 36)) }
        for (index, row) in box.rows.enumerated() {
            let middle = y + PictureText.middle(ofRow: index, in: box)
            if row.isRelationship, index > 0, !box.rows[index - 1].isRelationship {
                let rule = Self.number(middle - PictureText.rowHeight / 2)
                lines.append(
                    "<line class=\"rule\" x1=\"\(Self.number(x + 1))\" x2=\"\(Self.number(right - 1))\" y1=\"\(rule)\" y2=\"\(rule)\"/>"
                )
            }
            let style = row.isRelationship ? "to" : row.isUnique ? "unique" : ""
            lines.append(Self.text(row.name, style, x + 12, middle + 4))
            lines.append(Self.text(row.note, "note", right - 12, middle + 4))
        }
        lines.append("</g>")
    }

    // MARK: - Lines

    private mutating func write(_ edge: ModelPicture.Edge, _ route: PictureLayout.Route) {
        lines.append("<g><title>\(Self.escaped(edge.title))</title>")
        lines.append("<path class=\"line\(edge.isInheritance ? " parent" : "")\" d=\"\(Self.path(route))\"/>")
        if edge.isInheritance {
            lines.append(Self.arrow(route.end, toRight: route.endsRight))
        } else {
            write(edge.from, at: route.start, isRight: route.startsRight)
            write(edge.to, at: route.end, isRight: route.endsRight)
        }
        lines.append("</g>")
    }

    /// Level, along the track with round corners, and level again.
    private static func path(_ route: PictureLayout.Route) -> String {
        let (start, end, track) = (route.start, route.end, route.track)
        let height = end.y - start.y
        guard abs(height) > 0.5 else { return "M\(point(start.x, start.y)) H\(number(end.x))" }
        let radius = min(6, abs(height) / 2)
        let down = height > 0 ? radius : -radius
        let before = track > start.x ? -radius : radius
        let after = end.x > track ? radius : -radius
        return "M\(point(start.x, start.y)) H\(number(track + before)) "
            + "Q\(point(track, start.y)) \(point(track, start.y + down)) V\(number(end.y - down)) "
            + "Q\(point(track, end.y)) \(point(track + after, end.y)) H\(number(end.x))"
    }

    /// The sign for how many: a crow's foot for many, a bar for one; and the number.
    private mutating func write(_ end: ModelPicture.End, at place: (x: Double, y: Double), isRight: Bool) {
        let away = isRight ? 1.0 : -1.0
        guard let cardinality = end.cardinality else { return }
        let isMany = cardinality != "1" && cardinality != "0..1"
        let (x, y) = place
        let reach = Self.number(x + away * 9)
        if isMany {
            lines.append(
                "<path class=\"foot\" d=\"M\(Self.point(x, y - 5)) L\(reach) \(Self.number(y)) L\(Self.point(x, y + 5))\"/>"
            )
        } else {
            lines.append("<path class=\"foot\" d=\"M\(reach) \(Self.number(y - 5)) V\(Self.number(y + 5))\"/>")
        }
        let anchor = isRight ? "start" : "end"
        lines.append(
            "<text class=\"count\" text-anchor=\"\(anchor)\" x=\"\(Self.number(x + away * 12))\" "
                + "y=\"\(Self.number(y - 3))\">\(Self.escaped(cardinality))</text>"
        )
    }

    private static func arrow(_ place: (x: Double, y: Double), toRight: Bool) -> String {
        let base = place.x + (toRight ? 10 : -10)
        return "<path class=\"arrow\" d=\"M\(point(place.x, place.y)) L\(point(base, place.y - 5)) "
            + "L\(point(base, place.y + 5)) Z\"/>"
    }

    // MARK: - Pieces

    private static func rectangle(_ style: String, _ x: Double, _ y: Double, _ width: Double, _ height: Double)
        -> String
    {
        "<rect class=\"\(style)\" rx=\"6\" x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(width))\" "
            + "height=\"\(number(height))\"/>"
    }

    private static func text(_ text: String, _ style: String, _ x: Double, _ y: Double) -> String {
        let style = style.isEmpty ? "" : " class=\"\(style)\""
        return "<text\(style) x=\"\(number(x))\" y=\"\(number(y))\">\(escaped(text))</text>"
    }

    private static func point(_ x: Double, _ y: Double) -> String { "\(number(x)) \(number(y))" }

    private static func number(_ value: Double) -> String {
        let rounded = (value * 10).rounded() / 10
        return rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)"
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;")
    }
}
