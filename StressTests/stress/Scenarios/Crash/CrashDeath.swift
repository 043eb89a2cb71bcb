import CoreData

/// How a life of `crash` is to end.
enum CrashDeath {
    /// By its parent, after so many microseconds.
    case time(Int)
    /// At the n-th operation that changes or secures a file.
    case operation(Int)
    /// At the n-th operation on a file, reads included, so that it may be within a recovery.
    case read(Int)
    /// When a point of the library is reached for the n-th time.
    case named(String, Int)

    /// The points of the library at which a life can end.
    private static var points: [String] {
        FaultPoints.names.filter { name in
            !["fault.", "commit.", "history."].contains { name.hasPrefix($0) }
        }
    }

    /// Whether only a process that migrates can die so.
    var isOfMigration: Bool { kind.hasPrefix("migration.") }

    /// Whether a process that migrates can die so.
    var canBeOfMigration: Bool {
        if case .named = self { return isOfMigration }
        return true
    }

    /// The kinds of deaths.
    static var kinds: [String] { ["time", "operation", "read"] + points }

    /// Draws one.
    ///
    /// - Parameters:
    ///   - kind: The kind that it has to be of; any if `nil`.
    ///   - isHot: Whether the file is as another life left it, so that the death may come while its log is recovered.
    ///   - stream: Where it is drawn from.
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

    /// Reads what `text` has written; `nil` if it is something else.
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

    /// The death in a word, for the command line of the process that is to die.
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

    /// Has this process die so, unless somebody else is to see to it.
    func arm() {
        switch self {
        case .time: break
        case .operation(let number): FaultFileSystem.install(.killing(at: number))
        case .read(let number): FaultFileSystem.install(.killing(at: number, countsReads: true))
        case .named(let point, let number): FaultPoints.kill(at: point, hit: number)
        }
    }
}
