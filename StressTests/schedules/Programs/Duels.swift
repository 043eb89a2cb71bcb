/// Two contexts with one call each: each call meets each other one.
struct Duels: Program {
    static let name = "duels"
    static let summary = "each call of a drawn program beside each other one, in all orders with one change of threads"
    static let guards: [String] = []
    static let isSearched = true

    private let drawn: Drawn

    init(_ place: Place) throws {
        let all = DrawnCall.allCases
        let number = Int(place.seed % UInt64(all.count * all.count))
        drawn = try Drawn(place, all[number % all.count], all[number / all.count])
    }

    var bodies: [@Sendable () throws -> Void] { drawn.bodies }
    var listing: [String] { drawn.listing }
    var mayExpire: Bool { drawn.mayExpire }

    func judge() throws { try drawn.judge() }
}
