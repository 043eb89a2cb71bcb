#if Schedules
import CoreData
import StrataLocks

/// A coordinator follows what another one, and another program, write into its file.
struct Remotes: Program {
    static let name = "remotes"
    static let summary =
        "a coordinator follows the saves of another one: after it has caught up, its contexts show what was saved before"
    static let guards: [String] = []
    static let needsFile = true

    private static let rounds = 3
    private let place: Place
    private let stacks: [NSPersistentStoreCoordinator]
    private let ids: [NSManagedObjectID]
    private let context: NSManagedObjectContext
    private let follower: RemoteChangeFollower
    private let saved = Shared(0)

    init(_ place: Place) throws {
        self.place = place
        stacks = try (0..<2).map { _ in try place.stack(Place.Settings(postsChanges: true)) }
        ids = try stacks[0].fill(["a", "b"])
        let context = stacks[1].context(named: "follower")
        self.context = context
        try context.performAndWait {
            context.userInfo["boxes"] = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Box")).filter {
                $0.count == 0
            }
        }
        follower = try stacks[1].followRemoteChanges(into: [context])
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stacks, ids, place, saved, follower, context) = (stacks, ids, place, saved, follower, context)
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            let context = stacks[number].context(.mergeByPropertyObjectTrump, named: "writer \(number)")
            let uri = ids[number].uriRepresentation()
            return {
                guard let id = stacks[number].managedObjectID(forURIRepresentation: uri) else { return }
                for round in 1...Self.rounds {
                    try context.performAndWait {
                        context.object(with: id).count = round
                        try context.save()
                    }
                    if number == 0 { saved.withLock { $0 = round } }
                }
            }
        }
        let watchers: [@Sendable () throws -> Void] = (0..<2).map { _ in
            {
                ScheduledTask.run {
                    for _ in 0..<2 {
                        let before = saved.withLock { $0 }
                        do { try await follower.catchUp() } catch { place.find("catching up fails: \(error)") }
                        let shown = await context.perform { Self.shown(in: context)["a"] ?? -1 }
                        place.expect(shown >= before, "\(shown) is shown after \(before) was saved elsewhere")
                    }
                }
            }
        }
        return writers + watchers
    }

    private static func shown(in context: NSManagedObjectContext) -> [String: Int] {
        let boxes = context.registeredObjects.filter { !$0.isDeleted && !$0.isFault }
        return Dictionary(boxes.map { ($0.name, $0.count) }) { $0 + $1 }
    }

    private var shownLater: [String: Int] { context.performAndWait { [context] in Self.shown(in: context) } }

    func judge() throws {
        let stored = try place.stack().counts()
        place.expect(stored == ["a": Self.rounds, "b": Self.rounds], "\(stored) is stored")
        // Nobody asks it to catch up here: it has to have been notified of the last save. The file takes a moment to do so.
        for _ in 0..<300 where shownLater["a"] != stored["a"] { usleep(10_000) }
        place.expect(shownLater["a"] == stored["a"], "\(shownLater) is shown in the end, and \(stored) is stored")
        follower.stop()
    }
}
#endif
