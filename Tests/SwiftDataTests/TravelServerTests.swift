import Expectations
import Foundation
import SwiftData
import Testing
import TravelModel
import TravelServer

@Suite("The example of an app and a server that share a model")
struct TravelServerTests {
    private let container: ModelContainer

    init() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("travel-\(UUID().uuidString)/a.store")
        container = try ModelContainer(for: TravelModel.Trip.self, configurations: ModelConfiguration(url: file))
    }

    @Test func `requests store, change, find and delete trips, for all services`() async throws {
        let requests = TravelRequests(TravelService(modelContainer: container))
        let others = TravelRequests(TravelService(modelContainer: container))
        expectEqual(await requests.answer("GET trips"), "200 []")
        let italy = #"{"code":"IT-1","name":"Italy","places":[{"city":"Rome","nights":3},{"city":"Turin","nights":1}]}"#
        expectEqual(await requests.answer("PUT \(italy)"), "204")
        expectEqual(await others.answer("PUT " + #"{"code":"FR-1","name":"France","places":[]}"#), "204")
        expectEqual(
            await others.answer("GET trips"),
            #"200 [{"code":"FR-1","name":"France","places":[]},"# + italy + "]"
        )
        expectEqual(await others.answer("GET trips Rome"), "200 [\(italy)]")
        let shorter = #"{"code":"IT-1","name":"Italy","places":[{"city":"Turin","nights":2}]}"#
        expectEqual(await others.answer("PUT \(shorter)"), "204")
        expectEqual(await requests.answer("GET trips Rome"), "200 []")
        expectEqual(await requests.answer("GET trips Turin"), "200 [\(shorter)]")
        expectEqual(await requests.answer("DELETE IT-1"), "204")
        expectEqual(await requests.answer("DELETE IT-1"), "404")
        expectEqual(await others.answer("GET trips Turin"), "200 []")
        expectEqual(try ModelContext(container).fetchCount(FetchDescriptor<Stop>()), 0)
    }

    @Test func `the server reads what the app has written`() async throws {
        let app = ModelContext(container)
        let trip = TravelModel.Trip(code: "ES-1", name: "Spain")
        trip.stops = [Stop(city: "Madrid", nights: 2), Stop(city: "Toledo")]
        app.insert(trip)
        try app.save()
        expectEqual(trip.nights, 3)
        let requests = TravelRequests(TravelService(modelContainer: container))
        expectEqual(
            await requests.answer("GET trips Toledo"),
            #"200 [{"code":"ES-1","name":"Spain","places":[{"city":"Madrid","nights":2},{"city":"Toledo","nights":1}]}]"#
        )
    }

    @Test(arguments: [
        ("PUT {", "400"), ("PUT {\"code\":\"A\"}", "400"), ("POST trips", "405"), ("", "405"), ("GET", "405"),
    ])
    func `requests that are none are refused`(_ request: String, _ answer: String) async {
        expectEqual(await TravelRequests(TravelService(modelContainer: container)).answer(request), answer)
    }
}
