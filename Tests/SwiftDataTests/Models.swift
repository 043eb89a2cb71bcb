import Foundation
import SwiftData

// The classes that the suites of this target keep, written as in an app.

enum Rank: String, Codable { case low, high }
enum Mood: Codable { case calm, tense, glad }
struct Spot: Codable, Equatable {
    var city: String
    var floor: Int?
    let tags: [String]
}

@Model class Crew {
    @Attribute(.unique) var name: String
    var sailors: [Sailor] = []

    init(name: String) { self.name = name }
}

@Model
final class Sailor {
    #Index<Sailor>([\.name], [\.rank, \.name])
    #Unique<Sailor>([\.badge])

    var name: String
    var badge: Int
    private(set) var years: Int = 3
    var born: Date?
    var rank: Rank = Rank.low
    var mood: Mood = Mood.calm
    var oldMood: Mood?
    var spot: Spot?
    var words: [String] = []
    var crew: Crew?
    @Relationship(deleteRule: .cascade) var knots: [Knot] = []
    @Transient var visits = 0
    var shout: String { name.uppercased() }

    init(_ name: String, badge: Int) {
        self.name = name
        self.badge = badge
    }

    func age(by years: Int) { self.years += years }
}

@Model final class Knot {
    var number: Int

    init(number: Int) { self.number = number }
}

/// All types of attributes.
@Model final class Values {
    var int8: Int8
    var int16: Int16?
    var int32: Int32
    var int64: Int64
    var word: UInt32
    var double: Double
    var float: Float
    var truth: Bool
    var text: String
    var date: Date
    var data: Data
    var uuid: UUID
    var decimal: Decimal
    var url: URL
    var numbers: [Int]
    var names: Set<String>
    var table: [String: Int]

    init() {
        int8 = -8
        int16 = 16
        int32 = .min
        int64 = .max
        word = .max
        double = -0.5
        float = 0.25
        truth = true
        text = "ä \u{1F600}"
        date = Date(timeIntervalSinceReferenceDate: 1.5)
        data = Data([0, 255])
        uuid = UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF")!
        decimal = Decimal(string: "12345678901234567890.5")!
        url = URL(string: "https://example.org/a?b=c")!
        numbers = [3, 1]
        names = ["a", "b"]
        table = ["x": 1]
    }
}

// An app's classes, of which Tests/Fixtures has a model with the hashes of the store that SwiftData has made.

@Model final class CartModel {
    @Attribute(.unique) var id: String
    var storeId: String
    var profileId: String?
    @Relationship(deleteRule: .cascade) var items: [CartItemModel]
    var status: String
    var createdAt: Date
    var updatedAt: Date
    var metadataJSON: Data?
    var displayName: String?
    var context: String?
    var storeImageURLString: String?
    var minSubtotalAmount: Decimal?
    var minSubtotalCurrencyCode: String?
    var maxItemCount: Int?

    init(id: String) {
        self.id = id
        storeId = ""
        items = []
        status = ""
        createdAt = .distantPast
        updatedAt = .distantPast
    }
}

@Model final class CartItemModel {
    @Attribute(.unique) var id: String
    var productId: String
    var quantity: Int
    var unitPriceAmount: Decimal
    var unitPriceCurrencyCode: String
    var totalPriceAmount: Decimal
    var totalPriceCurrencyCode: String
    @Relationship(deleteRule: .cascade) var modifiers: [CartItemModifierModel]
    var imageURLString: String?
    var availableStock: Int?

    init(id: String) {
        self.id = id
        productId = ""
        quantity = 0
        unitPriceAmount = 0
        unitPriceCurrencyCode = ""
        totalPriceAmount = 0
        totalPriceCurrencyCode = ""
        modifiers = []
    }
}

@Model final class CartItemModifierModel {
    @Attribute(.unique) var id: String
    var name: String
    var priceDeltaAmount: Decimal
    var priceDeltaCurrencyCode: String

    init(id: String) {
        self.id = id
        name = ""
        priceDeltaAmount = 0
        priceDeltaCurrencyCode = ""
    }
}
