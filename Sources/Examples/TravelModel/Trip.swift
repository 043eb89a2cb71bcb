import Foundation
import SwiftData

// The file of the app: it is the same on Apple's platforms and here, and so is the store that is made with it.

/// A trip, with the places where it stops.
@Model
public final class Trip {
    /// The text by which travellers name the trip.
    @Attribute(.unique) public var code: String
    /// The name that is shown.
    public var name: String
    /// The day on which it begins; `nil` if that is open.
    public var start: Date?
    /// The places, in any order.
    @Relationship(deleteRule: .cascade, inverse: \Stop.trip) public var stops: [Stop] = []

    /// The number of nights at all places.
    public var nights: Int { stops.reduce(0) { $0 + $1.nights } }

    /// Makes a trip without places.
    public init(code: String, name: String, start: Date? = nil) {
        self.code = code
        self.name = name
        self.start = start
    }
}

/// A place where a trip stops for some nights.
@Model
public final class Stop {
    /// The name of the place.
    public var city: String
    /// The number of nights.
    public var nights: Int
    /// The trip; `nil` if it is part of none.
    public var trip: Trip?

    /// Makes a place that is part of no trip.
    public init(city: String, nights: Int = 1) {
        self.city = city
        self.nights = nights
    }
}
