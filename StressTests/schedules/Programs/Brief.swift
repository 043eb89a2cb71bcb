/// Short drawn programs: a few calls meet, and many orders of them can be tried.
struct Brief: Program {
    static let name = "brief"
    static let summary = "the same for two to three contexts with one to three calls each, many of which are tried"
    static let guards: [String] = []
    static let isDrawn = true
    static let weight = 6

    private let drawn: Drawn

    init(_ place: Place) throws { drawn = try Drawn(place, contexts: 2...3, calls: 1...3) }

    var bodies: [@Sendable () throws -> Void] { drawn.bodies }
    var listing: [String] { drawn.listing }
    var mayExpire: Bool { drawn.mayExpire }
    var callNumbers: [Int] { drawn.callNumbers }

    func judge() throws { try drawn.judge() }
}
