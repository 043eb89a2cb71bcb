import CoreData
import StrataLocks

/// Threads open, use and close coordinators of one file, with one model that nothing has used before.
struct Openings: Program {
    static let name = "openings"
    static let summary =
        "threads open and close coordinators of one file, and use a new model first: all see what was saved before"
    static let guards: [String] = []
    static let needsFile = true

    private let place: Place
    private let model = Box.makeModel()
    private let desk = Shared<Set<String>>([])

    init(_ place: Place) throws {
        self.place = place
        try place.stack().close()
    }

    var bodies: [@Sendable () throws -> Void] {
        let (place, desk, model) = (place, desk, model)
        return (0..<3).map { number in
            {
                for round in 0..<2 {
                    let before = desk.withLock { $0 }
                    let stack = try place.stack(Place.Settings(model: round == 0 ? model : model.copied))
                    let ids = try stack.fill(["\(number).\(round)"])
                    let names = Set(try stack.counts().keys)
                    place.expect(before.isSubset(of: names), "\(names) is seen, and \(before) was saved before")
                    let again = stack.managedObjectID(forURIRepresentation: ids[0].uriRepresentation())
                    place.expect(again == ids[0], "an object has two IDs")
                    desk.withLock { _ = $0.insert("\(number).\(round)") }
                    try stack.close()
                    for store in stack.persistentStores { try stack.remove(store) }
                }
            }
        }
    }

    func judge() throws {
        let log = place.file.path + "-wal"
        place.expect(
            !FileManager.default.fileExists(atPath: log),
            "a log is left after the last coordinator has closed"
        )
        let stored = try place.stack().counts().keys.sorted()
        let wanted = (0..<3).flatMap { number in (0..<2).map { "\(number).\($0)" } }
        place.expect(stored == wanted, "\(stored) is stored")
    }
}

extension NSManagedObjectModel {
    fileprivate var copied: NSManagedObjectModel { copy() as? NSManagedObjectModel ?? self }
}
