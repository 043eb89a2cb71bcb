import Foundation
import SwiftData

// The classes of the workloads about SwiftData's models. They have the properties of `Venue` and `City`.

@Model
final class Berth {
    var name: String
    var price: Int16
    var distance: Double
    var createdAt: Date
    var favorite: Bool
    var quay: Quay?

    init(_ sample: VenueSample) {
        name = sample.name
        price = sample.price
        distance = sample.distance
        createdAt = Date(timeIntervalSinceReferenceDate: sample.createdAt)
        favorite = sample.isFavorite
    }
}

@Model
final class Quay {
    var name: String
    var berths: [Berth] = []

    init(name: String) { self.name = name }
}

/// An observable object that no store has, with the same attributes.
@Observable
final class Mooring {
    var name: String
    var price: Int16
    var distance: Double
    var createdAt: Date
    var favorite: Bool

    init(_ sample: VenueSample) {
        name = sample.name
        price = sample.price
        distance = sample.distance
        createdAt = Date(timeIntervalSinceReferenceDate: sample.createdAt)
        favorite = sample.isFavorite
    }
}

/// What the loops over objects in memory read and write.
protocol HeldObject: AnyObject {
    var name: String { get set }
    var price: Int16 { get set }
    var distance: Double { get set }
    var createdAt: Date { get set }
    var favorite: Bool { get set }
}

extension Berth: HeldObject {}
extension Mooring: HeldObject {}
