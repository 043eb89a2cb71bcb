import Foundation
import SwiftData
import TravelModel
import TravelServer

// travel-server FILE: answers requests from the standard input with the store that the app has made.
guard CommandLine.arguments.count == 2 else {
    print("usage: travel-server FILE")
    exit(64)
}
let file = URL(fileURLWithPath: CommandLine.arguments[1])
let container = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(url: file))
let requests = TravelRequests(TravelService(modelContainer: container))
while let line = readLine() { print(await requests.answer(line)) }
