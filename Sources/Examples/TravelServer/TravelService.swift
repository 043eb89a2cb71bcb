import Foundation
import SwiftData
import TravelModel

/// A trip as clients send and get it.
package struct TripRecord: Codable, Equatable, Sendable {
    /// A place where the trip stops.
    package struct Place: Codable, Equatable, Sendable {
        package var city: String
        package var nights: Int
    }

    package var code: String
    package var name: String
    package var places: [Place]

    init(_ trip: Trip) {
        (code, name) = (trip.code, trip.name)
        places = trip.stops.map { Place(city: $0.city, nights: $0.nights) }.sorted { $0.city < $1.city }
    }
}

/// The requests of clients, answered with the app's classes.
///
/// It has a context and a queue of its own. Objects stay inside; records leave it. A server has several of these, and their
/// contexts follow each other's saves.
@ModelActor
package actor TravelService {
    /// The trips that stop in a city, or all, in the order of their names.
    package func trips(in city: String? = nil) throws -> [TripRecord] {
        var descriptor = FetchDescriptor<Trip>(sortBy: [SortDescriptor(\.name), SortDescriptor(\.code)])
        if let city { descriptor.predicate = #Predicate { trip in trip.stops.contains { $0.city == city } } }
        return try modelContext.fetch(descriptor).map { TripRecord($0) }
    }

    /// Stores a trip in place of the one with its code.
    ///
    /// If the save fails, then nothing has changed.
    package func put(_ record: TripRecord) throws {
        do {
            let code = record.code
            let known = FetchDescriptor<Trip>(predicate: #Predicate { $0.code == code })
            let trip = try modelContext.fetch(known).first ?? Trip(code: code, name: record.name)
            modelContext.insert(trip)
            trip.name = record.name
            for stop in trip.stops { modelContext.delete(stop) }
            trip.stops = record.places.map { Stop(city: $0.city, nights: $0.nights) }
            try modelContext.save()
        } catch {
            modelContext.rollback()
            throw error
        }
    }

    /// Deletes the trip with a code.
    ///
    /// - Returns: Whether there was one.
    package func delete(_ code: String) throws -> Bool {
        let known = FetchDescriptor<Trip>(predicate: #Predicate { $0.code == code })
        guard let trip = try modelContext.fetch(known).first else { return false }
        modelContext.delete(trip)
        try modelContext.save()
        return true
    }
}
