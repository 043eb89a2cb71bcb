import Foundation
import SwiftData

// Classes of the suites about custom stores, written as in an app.

@Model final class Binder {
    var title: String
    @Relationship(deleteRule: .cascade, inverse: \Slip.binder) var notes: [Slip] = []

    init(title: String) { self.title = title }
}

@Model class Slip {
    var text: String
    var rank: Rank = Rank.low
    var spot: Spot?
    var words: [String] = []
    var written: Date?
    var size: Double = 1.5
    var binder: Binder?
    @Relationship(inverse: \Sticker.notes) var labels: [Sticker] = []

    init(_ text: String) { self.text = text }
}

@Model final class Memo: Slip {
    var place: String = "here"

    init(_ text: String, at place: String) {
        self.place = place
        super.init(text)
    }
}

@Model final class Sticker {
    var name: String
    var notes: [Slip] = []
    @Attribute(.transformable(by: "NSSecureUnarchiveFromData")) var color: NSString?

    init(_ name: String) { self.name = name }
}

@Model final class Page {
    var number: Int

    init(number: Int) { self.number = number }
}
