import CoreData

/// How a life of `crash` ends.
enum CrashDeath {
    /// Its parent kills it, after so many microseconds.
    case time(Int)
    /// It dies at the n-th operation that changes or secures a file.
    case operation(Int)
    /// It dies at the n-th operation on a file. Reads count, so this may be during a recovery.
    case read(Int)
    /// It dies when a point of the library is reached for the n-th time.
    case named(String, Int)

    /// The points of the library at which a life can end.
    private static var points: [String] {
        FaultPoints.names.filter { name in
            !["fault.", "commit.", "history."].contains { name.hasPrefix($0) }
        }
    }

    /// Whether only a migrating process can die this way.
    var isOfMigration: Bool { kind.hasPrefix("migration.") }

    /// Whether a migrating process can die this way.
    var canBeOfMigration: Bool {
        if case .named = self { return isOfMigration }
        return true
    }

    /// The kinds of deaths.
    static var kinds: [String] { ["time", "operation", "read"] + points }

    /// Draws a death.
    ///
    /// - Parameters:
    ///   - kind: The kind of the death; any if `nil`.
    ///   - isHot: Whether another life has left the file as it is, so that the death may come while its log is
    ///     recovered.
    ///   - stream: The source of the draw.
    init(_ kind: String?, isHot: Bool, _ stream: inout SeededStream) {
        repeat { self.init(isHot: isHot || kind == "read", &stream) } while kind != nil && self.kind != kind
    }

    private var kind: String {
        switch self {
        case .time: "time"
        case .operation: "operation"
        case .read: "read"
        case .named(let point, _): point
        }
    }

    private init(isHot: Bool, _ stream: inout SeededStream) {
        let points = Self.points
        if !points.isEmpty, stream.chance(1.0 / 3) {
            let point = stream.pick(points)
            self = .named(point, 1 + stream.below(point.hasPrefix("save") ? 12 : 4))
        } else if isHot, stream.chance(0.4) {
            self = .read(1 + stream.below(120))
        } else if stream.chance(0.5) {
            self = .operation(1 + stream.below(400))
        } else {
            self = .time(20_000 + stream.below(150_000))
        }
    }

    /// Parses what `text` returns; `nil` if it is something else.
    init?(_ text: String) {
        let parts = text.split(separator: ":").map(String.init)
        guard parts.count == 2, let number = Int(parts[1]) else { return nil }
        switch parts[0] {
        case "time": self = .time(number)
        case "operation": self = .operation(number)
        case "read": self = .read(number)
        default: self = .named(parts[0], number)
        }
    }

    /// The death as one word, for the command line of the process that dies.
    var text: String {
        switch self {
        case .time(let number), .operation(let number), .read(let number), .named(_, let number): "\(kind):\(number)"
        }
    }

    /// The figure that counts such deaths.
    var figure: String {
        switch self {
        case .time: "killed-by-time"
        case .operation: "killed-at-point"
        case .read: "killed-early"
        case .named: "killed-at-name"
        }
    }

    /// Prepares this process to die this way, unless its parent kills it.
    func arm() {
        switch self {
        case .time: break
        case .operation(let number): FaultFileSystem.install(.killing(at: number))
        case .read(let number): FaultFileSystem.install(.killing(at: number, countsReads: true))
        case .named(let point, let number): FaultPoints.kill(at: point, hit: number)
        }
    }
}
