import CoreData

/// One step of a save in `crash`, as its ledger records it.
struct CrashStep {
    /// The kind of step.
    ///
    /// The target is another save, and stands for all its objects that are there.
    enum Kind: Character {
        /// The save's own nodes are inserted, and the save is counted.
        case insert = "n"
        /// The save's own marks are inserted, by a batch.
        case insertMarks = "b"
        /// The target's nodes are deleted.
        case delete = "d"
        /// The target's marks are deleted.
        case deleteMarks = "e"
        /// The target's nodes take the save's number.
        case update = "u"
        /// The save's first node becomes the parent of the target's nodes.
        case adopt = "p"
        /// The target's first node becomes the parent of the save's nodes.
        case follow = "q"
        /// A mark of the save is inserted, on the target's nodes.
        case mark = "m"
        /// The target's marks go to the save's nodes, and to no others.
        case move = "r"
        /// The target's only mark gets the save's image.
        case picture = "x"
    }

    let kind: Kind
    let target: Int64

    init(_ kind: Kind, _ target: Int64) { (self.kind, self.target) = (kind, target) }

    /// Parses what `text` returns; `nil` if it is something else.
    init?(_ text: String) {
        guard let kind = text.first.flatMap(Kind.init), let target = Int64(text.dropFirst()) else { return nil }
        self.init(kind, target)
    }

    /// The step as one word.
    var text: String { "\(kind.rawValue)\(target)" }

    /// The number of objects that a save inserts.
    static func size(of save: Int64) -> Int { 1 + Int(save % 17) }

    /// Whether a save is a batch request, and not a save of a context.
    static func isBatch(_ save: Int64) -> Bool { save % 5 == 0 }

    /// Data that identifies its save, and is large enough to be kept in a file.
    static func image(_ save: Int64) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: save % 251), count: 140_000)
    }
}
