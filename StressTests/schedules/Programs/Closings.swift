import CoreData
import StrataLocks

/// A coordinator is closed while contexts save.
struct Closings: Program {
    static let name = "closings"
    static let summary =
        "a coordinator is closed while contexts save: what was saved is stored, nothing is written after it has closed"
    static let guards: [String] = []
    static let needsFile = true

    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let desk = Desk()

    private final class Desk: Sendable {
        let saved = Locked<[String]>([])
        let atClosing = Locked<[String]?>(nil)
    }

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        _ = try stack.fill(["a"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, desk, place) = (stack, desk, place)
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            let context = stack.context(.mergeByPropertyObjectTrump, named: "writer \(number)")
            return {
                for round in 0..<2 {
                    context.performAndWait {
                        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                        box.setValue("\(number).\(round)", forKey: "name")
                        do {
                            try context.save()
                            desk.saved.withLock { $0.append("\(number).\(round)") }
                        } catch let error as CocoaError where error.code == .persistentStoreOperation {
                            context.rollback()
                        } catch { place.find("a save gives \(error)") }
                    }
                }
            }
        }
        let closer: @Sendable () throws -> Void = {
            try stack.close()
            let names = try place.stack().counts().keys.sorted()
            desk.atClosing.withLock { $0 = names }
        }
        return writers + [closer]
    }

    func judge() throws {
        let stored = try place.stack().counts().keys.sorted()
        let wanted = (["a"] + desk.saved.withLock { $0 }).sorted()
        place.expect(stored == wanted, "\(stored) is stored, and \(wanted) was saved")
        let then = desk.atClosing.withLock { $0 }
        place.expect(then == stored, "when it was closed \(then ?? []) was stored, and at the end \(stored)")
    }
}
