import CoreData

/// Several contexts bring one deleted row back at the same time.
struct Revivals: Program {
    static let name = "revivals"
    static let summary = "contexts whose policy keeps their changes bring back one deleted row: all of them succeed"
    static let guards = ["no-revival-check"]

    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let contexts: [NSManagedObjectContext]
    private let id: NSManagedObjectID

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        let id = try stack.fill(["x"])[0]
        self.id = id
        contexts = (0..<3).map { [stack] in stack.context(.mergeByPropertyObjectTrump, named: "\($0)") }
        for (number, context) in contexts.enumerated() {
            context.performAndWait { context.object(with: id).setValue(number == 0 ? "new" : "x", forKey: "name") }
            context.performAndWait { context.object(with: id).count += number }
        }
        let context = stack.context()
        try context.performAndWait {
            context.delete(context.object(with: id))
            try context.save()
        }
    }

    var bodies: [@Sendable () throws -> Void] {
        contexts.map { context in { try context.performAndWait { if context.hasChanges { try context.save() } } } }
    }

    func judge() throws {
        let counts = try stack.counts()
        place.expect(counts.count == 1, "the boxes are \(counts), not one")
        place.expect([1, 2].contains(counts.values.first), "the changes of the contexts are lost: \(counts)")
    }
}
