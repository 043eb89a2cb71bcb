#if Schedules
import CoreData
import StrataLocks

/// Tasks change counters with `await`, while another one follows the results of a request.
struct Tasks: Program {
    static let name = "tasks"
    static let summary = "tasks await blocks of contexts, saves and live results: nothing is lost, and all of them end"
    static let guards: [String] = []

    private static let rounds = 2
    private let place: Place
    private let stack: NSPersistentStoreCoordinator
    private let ids: [NSManagedObjectID]

    init(_ place: Place) throws {
        self.place = place
        stack = try place.stack()
        ids = try stack.fill(["a", "b"])
    }

    var bodies: [@Sendable () throws -> Void] {
        let (stack, ids, place) = (stack, ids, place)
        let writers: [@Sendable () throws -> Void] = (0..<2).map { number in
            let context = stack.context(named: "writer \(number)")
            return {
                ScheduledTask.run {
                    for round in 0..<Self.rounds {
                        await Self.add(context, ids[(number + round) % 2], "\(number).\(round)", place)
                    }
                }
            }
        }
        let follower = stack.context(named: "follower")
        let observer: @Sendable () throws -> Void = {
            ScheduledTask.run {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
                request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
                var last = 0
                do {
                    for try await snapshot in follower.results(for: request) {
                        let count = snapshot.objectIDs.count
                        if count < last { place.find("the results are \(last), then \(count)") }
                        last = count
                        if count == 2 + 2 * Self.rounds { break }
                    }
                } catch { place.find("the results end: \(error)") }
            }
        }
        return writers + [observer]
    }

    /// Adds one to a counter and inserts a box, as often as others are first.
    private static func add(
        _ context: NSManagedObjectContext,
        _ id: NSManagedObjectID,
        _ name: String,
        _ place: Place
    ) async {
        for _ in 0..<100 {
            do {
                return try await context.perform {
                    do {
                        try context.existingObject(with: id).count += 1
                        let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
                        box.setValue(name, forKey: "name")
                        try context.save()
                    } catch {
                        context.rollback()
                        context.refreshAllObjects()
                        throw error
                    }
                }
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                continue
            } catch { return place.find("a task fails: \(error)") }
        }
        place.find("100 attempts were in vain")
    }

    func judge() throws {
        let counts = try place.isInMemory ? stack.counts() : place.stack().counts()
        place.expect(counts.values.reduce(0, +) == 2 * Self.rounds, "the counts are \(counts)")
        place.expect(counts.count == 2 + 2 * Self.rounds, "the boxes are \(counts.keys.sorted())")
    }
}
#endif
