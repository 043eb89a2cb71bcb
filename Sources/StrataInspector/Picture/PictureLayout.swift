/// Places for the boxes of a picture and ways for its lines.
///
/// The boxes of what hangs together stand in columns, by their distance from one box: so a line joins boxes of one column or of
/// neighbours, and runs in the gap between columns, where no box is. Each line has a track of its own there. Which box comes
/// first, and the order in the columns, are chosen so that the picture is compact and lines are short.
struct PictureLayout {
    struct Rectangle {
        var x = 0.0
        var y = 0.0
        var width = 0.0
        var height = 0.0

        var bottom: Double { y + height }
        var middle: Double { y + height / 2 }
    }

    /// The way of a line: from its start level to the track, along it, and level to its end.
    struct Route {
        var start: (x: Double, y: Double)
        var track: Double
        var end: (x: Double, y: Double)
        /// Whether the line arrives at each end from the right of the box.
        var startsRight: Bool
        var endsRight: Bool
    }

    private(set) var boxes: [Rectangle]
    /// The routes in the order of the picture's edges.
    private(set) var routes: [Route?]
    private(set) var width = 0.0
    private(set) var height = 0.0

    private let picture: ModelPicture
    private let neighbours: [[Int]]

    static let gap = 26.0
    static let trackGap = 11.0
    /// Between a box and the first track: there is room for the sign and the number at the line's end.
    static let gutterMargin = 34.0
    static let margin = 24.0

    init(_ picture: ModelPicture) {
        self.picture = picture
        boxes = picture.boxes.map { box in
            let size = PictureText.size(of: box)
            return Rectangle(width: size.width, height: size.height)
        }
        routes = Array(repeating: nil, count: picture.edges.count)
        var neighbours = Array(repeating: Set<Int>(), count: picture.boxes.count)
        for edge in picture.edges where edge.from.box != edge.to.box {
            neighbours[edge.from.box].insert(edge.to.box)
            neighbours[edge.to.box].insert(edge.from.box)
        }
        self.neighbours = neighbours.map { $0.sorted() }
        arrange()
    }

    // MARK: - Parts that hang together

    private mutating func arrange() {
        var parts: [Part] = []
        var seen = Set<Int>()
        for box in boxes.indices where !seen.contains(box) {
            let members = reachable(from: box)
            seen.formUnion(members)
            // Each box is tried as the first; the most compact picture is taken.
            let tried = members.map { Part(columns: columns(from: $0), layout: self) }
            if let best = tried.min(by: { $0.cost < $1.cost }) { parts.append(best) }
        }
        let area = parts.map { ($0.width + Self.gap * 2) * ($0.height + Self.gap * 2) }.reduce(0, +)
        let limit = max(parts.map(\.width).max() ?? 0, (area * 1.7).squareRoot())
        var (x, y, shelf) = (Self.margin, Self.margin, 0.0)
        for part in parts.sorted(by: { ($0.height, $0.width) > ($1.height, $1.width) }) {
            if x > Self.margin, x + part.width > limit + Self.margin {
                (x, y, shelf) = (Self.margin, y + shelf + Self.gap * 2, 0)
            }
            adopt(part, atX: x, y: y)
            width = max(width, x + part.width + Self.margin)
            x += part.width + Self.gap * 2
            shelf = max(shelf, part.height)
            height = max(height, y + part.height + Self.margin)
        }
        width = max(width, Self.margin * 2)
        height = max(height, Self.margin * 2)
    }

    private func reachable(from box: Int) -> [Int] { columns(from: box).flatMap { $0 } }

    /// The boxes by their distance from one.
    private func columns(from box: Int) -> [[Int]] {
        var columns = [[box]]
        var seen: Set<Int> = [box]
        while let last = columns.last {
            let next = last.flatMap { neighbours[$0] }.filter { seen.insert($0).inserted }
            guard !next.isEmpty else { break }
            columns.append(next)
        }
        return columns
    }

    private mutating func adopt(_ part: Part, atX x: Double, y: Double) {
        for (box, place) in part.places {
            boxes[box] = place
            boxes[box].x += x
            boxes[box].y += y
        }
        for (edge, route) in part.routes {
            var route = route
            route.start = (route.start.x + x, route.start.y + y)
            route.end = (route.end.x + x, route.end.y + y)
            route.track += x
            routes[edge] = route
        }
    }

    // MARK: - One part

    /// Boxes that hang together, placed from the origin.
    private struct Part {
        private(set) var places: [Int: Rectangle] = [:]
        private(set) var routes: [Int: Route] = [:]
        private(set) var width = 0.0
        private(set) var height = 0.0

        private var columns: [[Int]]
        private var columnOf: [Int: Int] = [:]
        private let layout: PictureLayout
        private let edges: [(index: Int, edge: ModelPicture.Edge)]

        /// Smaller for less area in a shape like that of a screen, and for shorter lines.
        var cost: Double {
            let lengths = routes.values.map { abs($0.start.y - $0.end.y) + abs($0.start.x - $0.end.x) }.reduce(0, +)
            let side = max(width, height * 1.5)
            return side * side + lengths * 40
        }

        init(columns: [[Int]], layout: PictureLayout) {
            self.columns = columns
            self.layout = layout
            for (index, column) in columns.enumerated() { for box in column { columnOf[box] = index } }
            let members = columnOf
            edges = layout.picture.edges.enumerated()
                .filter { members[$1.from.box] != nil }.map { (index: $0, edge: $1) }
            for box in columns.flatMap({ $0 }) { places[box] = layout.boxes[box] }
            stack()
            for round in 0..<10 { sortColumns(forward: round % 2 == 0) }
            for round in 0..<12 { settle(forward: round % 2 == 0) }
            placeColumns()
        }

        /// One box below the other.
        private mutating func stack() {
            for column in columns {
                var y = 0.0
                for box in column {
                    places[box]?.y = y
                    y += (places[box]?.height ?? 0) + PictureLayout.gap
                }
            }
        }

        private func wish(_ box: Int) -> Double? {
            let around = layout.neighbours[box].compactMap { places[$0]?.middle }
            return around.isEmpty ? nil : around.reduce(0, +) / Double(around.count)
        }

        /// Brings each box near those that it has lines to.
        private mutating func sortColumns(forward: Bool) {
            for index in forward ? Array(columns.indices) : columns.indices.reversed() {
                let wishes = Dictionary(
                    uniqueKeysWithValues: columns[index].map { ($0, wish($0) ?? places[$0]?.middle ?? 0) }
                )
                columns[index].sort { (wishes[$0] ?? 0, $0) < (wishes[$1] ?? 0, $1) }
                var y = 0.0
                for box in columns[index] {
                    places[box]?.y = y
                    y += (places[box]?.height ?? 0) + PictureLayout.gap
                }
            }
        }

        /// Moves the boxes of each column to the height of their neighbours, as far as their order lets them.
        private mutating func settle(forward: Bool) {
            for column in forward ? columns : columns.reversed() {
                var tops: [Double] = []
                var bottom = -Double.infinity
                var shift = 0.0
                for box in column {
                    let height = places[box]?.height ?? 0
                    let wished = (wish(box) ?? places[box]?.middle ?? 0) - height / 2
                    let top = max(wished, bottom + PictureLayout.gap)
                    shift += wished - top
                    tops.append(top)
                    bottom = top + height
                }
                // What was pushed down is evened out over the column.
                shift /= Double(max(column.count, 1))
                for (box, top) in zip(column, tops) { places[box]?.y = top + shift }
            }
        }

        // MARK: - Columns and lines

        private mutating func placeColumns() {
            let top = places.values.map(\.y).min() ?? 0
            for box in places.keys { places[box]?.y -= top }
            var x = 0.0
            for (index, column) in columns.enumerated() {
                let width = column.compactMap { places[$0]?.width }.max() ?? 0
                for box in column {
                    places[box]?.x = x
                    places[box]?.width = width
                }
                x += width
                let tracks = self.tracks(behind: index)
                for (edge, track) in tracks.numbers {
                    routes[edge]?.track = x + PictureLayout.gutterMargin + Double(track) * PictureLayout.trackGap
                }
                let isLast = index == columns.count - 1
                if tracks.count > 0 || !isLast {
                    let room = Double(max(tracks.count - 1, 0)) * PictureLayout.trackGap
                    x += PictureLayout.gutterMargin + room + (isLast ? 0 : PictureLayout.gutterMargin)
                }
            }
            width = x
            height = places.values.map(\.bottom).max() ?? 0
            for (index, edge) in edges { join(index, edge) }
        }

        /// The height at which a line leaves a box.
        private func level(_ end: ModelPicture.End, of edge: ModelPicture.Edge) -> Double {
            let top = places[end.box]?.y ?? 0
            let box = layout.picture.boxes[end.box]
            guard let row = end.row else {
                // Parents and what leads to the whole box arrive at two places of the title.
                return top + PictureText.titleHeight(of: box) / 2 + (edge.isInheritance ? -6 : 6)
            }
            return top + PictureText.middle(ofRow: row, in: box)
        }

        /// Gives the lines that run behind a column a track each: lines whose heights overlap do not share one.
        private mutating func tracks(behind column: Int) -> (numbers: [(edge: Int, track: Int)], count: Int) {
            var spans: [(edge: Int, low: Double, high: Double)] = []
            for (index, edge) in edges {
                guard let from = columnOf[edge.from.box], let to = columnOf[edge.to.box], min(from, to) == column
                else { continue }
                let (start, end) = (level(edge.from, of: edge), level(edge.to, of: edge))
                routes[index] = Route(
                    start: (0, start),
                    track: 0,
                    end: (0, end),
                    startsRight: from == column,
                    endsRight: to == column
                )
                spans.append((index, min(start, end), max(start, end)))
            }
            spans.sort { ($0.high - $0.low, $0.low, $0.edge) < ($1.high - $1.low, $1.low, $1.edge) }
            var taken: [[(low: Double, high: Double)]] = []
            var numbers: [(edge: Int, track: Int)] = []
            for span in spans {
                let free = taken.firstIndex { spans in
                    spans.allSatisfy { $0.high + 6 < span.low || span.high + 6 < $0.low }
                }
                let track = free ?? taken.count
                if free == nil { taken.append([]) }
                taken[track].append((span.low, span.high))
                numbers.append((span.edge, track))
            }
            return (numbers, taken.count)
        }

        private mutating func join(_ index: Int, _ edge: ModelPicture.Edge) {
            guard var route = routes[index], let from = places[edge.from.box], let to = places[edge.to.box] else {
                return
            }
            route.start.x = route.startsRight ? from.x + from.width : from.x
            route.end.x = route.endsRight ? to.x + to.width : to.x
            routes[index] = route
        }
    }
}
