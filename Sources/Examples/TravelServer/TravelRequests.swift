import Foundation
import SwiftData

/// Reads requests and writes answers, one in each line.
///
/// It stands in place of a web framework.
///
///     GET trips
///     GET trips Rome
///     PUT {"code":"IT-1","name":"Italy","places":[{"city":"Rome","nights":3}]}
///     DELETE IT-1
package struct TravelRequests: Sendable {
    private let service: TravelService

    package init(_ service: TravelService) { self.service = service }

    /// The answer to a request: a status as in HTTP, and a text.
    package func answer(_ line: String) async -> String {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = words.count > 1 ? words[1] : ""
        do {
            switch words.first {
            case "GET" where rest == "trips" || rest.hasPrefix("trips "):
                let city = String(rest.dropFirst("trips ".count))
                let encoder = JSONEncoder()
                encoder.outputFormatting = .sortedKeys
                let trips = try await service.trips(in: city.isEmpty ? nil : city)
                return "200 " + String(decoding: try encoder.encode(trips), as: UTF8.self)
            case "PUT":
                try await service.put(try JSONDecoder().decode(TripRecord.self, from: Data(rest.utf8)))
                return "204"
            case "DELETE": return try await service.delete(rest) ? "204" : "404"
            default: return "405"
            }
        } catch is DecodingError {
            return "400"
        } catch {
            return "500 \(error.localizedDescription)"
        }
    }
}
