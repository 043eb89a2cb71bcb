/// Work with SwiftData's models, beside the same work with managed objects.
enum ModelWorkload: String, CaseIterable {
    case read = "M1"
    case write = "M2"
    case fetch = "M3"
    case memory = "M4"
    case observation = "M5"

    var name: String { rawValue }

    var summary: String {
        switch self {
        case .read: "read properties of 1,000 models in memory that nobody observes"
        case .write: "write properties of 1,000 changed models in memory that nobody observes"
        case .fetch: "fetch all models, read every property"
        case .memory: "the memory of each model of M3, and of each that was fetched and not read"
        case .observation: "M1 and M2 with @Observable objects that no store has"
        }
    }

    /// Whether it is one piece of work, which a process can do once.
    var isDoneOnce: Bool { [.read, .write, .fetch].contains(self) }

    /// The goal: nanoseconds of one access, or a ratio to managed objects.
    var goal: Double? {
        switch self {
        case .read: 20
        case .write: 30
        case .fetch: 1.5
        case .memory: 1.6
        case .observation: nil
        }
    }
}
