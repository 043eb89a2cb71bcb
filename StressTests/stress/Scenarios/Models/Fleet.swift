import Foundation
import SwiftData

/// An object that one worker owns: only that one changes it.
@Model
final class Barge {
    @Attribute(.unique) var code: Int
    var name: String
    var level: Int
    var note: String?
    var wharf: Wharf?

    init(code: Int, name: String) {
        self.code = code
        self.name = name
        level = 0
    }
}

/// A place to which the barges of all workers belong.
@Model
final class Wharf {
    var number: Int
    @Relationship(inverse: \Barge.wharf) var barges: [Barge] = []

    init(number: Int) { self.number = number }
}

/// A counter that its worker raises with each save, and that all read.
@Model
final class Beacon {
    var owner: Int
    var count: Int
    var text: String

    init(owner: Int) {
        self.owner = owner
        count = 0
        text = Self.text(0)
    }

    /// The text that belongs to a count.
    static func text(_ count: Int) -> String { "a text that lies outside of the row, for \(count)" }
}

/// The values of a barge, as the oracle keeps them.
struct BargeValues: Equatable {
    var name: String
    var level = 0
    var note: String?
    var wharf: Int?
}

extension Barge {
    /// All values, as the object shows them.
    var shown: BargeValues { BargeValues(name: name, level: level, note: note, wharf: wharf?.number) }

    /// The values without the wharf, which an object without a context does not have any more.
    var shownAlone: BargeValues { BargeValues(name: name, level: level, note: note) }
}
