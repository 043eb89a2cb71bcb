import Foundation
import SwiftData

// Classes with all options, written as in an app. The file imports what it imports there: the transformer's class, which
// Foundation on Linux lacks, comes with SwiftData.

/// A value that a transformer of the app stores.
final class Shade: NSObject {
    let red: Double

    init(red: Double) { self.red = red }

    override func isEqual(_ other: Any?) -> Bool { (other as? Shade)?.red == red }

    override var hash: Int { red.hashValue }
}

final class ShadeTransformer: ValueTransformer {
    override class func allowsReverseTransformation() -> Bool { true }

    override func transformedValue(_ value: Any?) -> Any? { (value as? Shade).map { Data("\($0.red)".utf8) } }

    override func reverseTransformedValue(_ value: Any?) -> Any? {
        (value as? Data).flatMap { Double(String(decoding: $0, as: UTF8.self)) }.map { Shade(red: $0) }
    }
}

@Model final class Book {
    var title: String
    @Attribute(.transformable(by: ShadeTransformer.self)) var cover: Shade?
    @Attribute(.transformable(by: "ShadeTransformer")) var back = Shade(red: 0.5)
    @Attribute(.preserveValueOnDeletion) var number: Int
    @Attribute(.preserveValueOnDeletion) var label: String?
    @Attribute(.ephemeral) var openPage = 4
    @Attribute(.externalStorage) var scan: Data?
    @Attribute(.spotlight, .allowsCloudEncryption, hashModifier: "2") var note = "n"
    @Relationship(deleteRule: .deny, inverse: \Loan.book) var loans: [Loan] = []
    @Relationship(deleteRule: .noAction, inverse: \Mark.book) var marks: [Mark] = []
    @Relationship(maximumModelCount: 2, hashModifier: "2") var readers: [Reader] = []

    init(_ title: String, number: Int) {
        self.title = title
        self.number = number
    }
}

@Model final class Loan {
    var days: Int
    var book: Book?

    init(days: Int) { self.days = days }
}

@Model final class Mark {
    var page: Int
    var book: Book?

    init(page: Int) { self.page = page }
}

@Model final class Reader {
    var name: String

    init(_ name: String) { self.name = name }
}
