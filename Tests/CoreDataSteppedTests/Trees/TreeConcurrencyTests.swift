import CoreData
import Expectations
import TestSupport
import Testing

/// Runs `body` on as many threads at once, and waits for all.
private func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        let thread = Thread {
            body(number)
            group.leave()
        }
        group.enter()
        thread.start()
    }
    group.wait()
}

@Suite("Trees: many at once")
struct TreeConcurrencyTests {
    @Test(arguments: ["save", "fetch", "fault"])
    func `a child's save, fetch and fault wait for what the parent is doing (CS-51)`(_ what: String) throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Porto")
        let (parent, child) = stack.pair()
        child.insertCity("Faro")
        let order = Shared<[String]>([])
        let (isBusy, mayEnd, isDone) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let busy: @Sendable () -> Void = {
            isBusy.signal()
            mayEnd.wait()
            order.update { $0.append("parent") }
        }
        parent.perform(busy)
        isBusy.wait()
        child.perform {
            do {
                switch what {
                case "save": try child.save()
                case "fetch": try expectEqual(child.all(City.self).count, 2)
                default: try expectEqual(child.get(id, City.self).name, "Porto")
                }
            } catch { Issue.record(error) }
            order.update { $0.append("child") }
            isDone.signal()
        }
        expect(order.current.isEmpty)
        mayEnd.signal()
        expectEqual(isDone.wait(timeout: .now() + 10), .success)
        expectEqual(order.current, ["parent", "child"])
    }

    @Test func `a busy parent does not keep a child from what it has loaded`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Faro")
        let (parent, child) = stack.pair()
        let fetched: [City] = try child.performAndWait { try child.all(City.self) }
        let (isBusy, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let busy: @Sendable () -> Void = {
            isBusy.signal()
            mayEnd.wait()
        }
        parent.perform(busy)
        isBusy.wait()
        child.performAndWait {
            // A fault that was fetched just now, too: nothing above has changed since.
            expectEqual(fetched.first?.name, "Faro")
            fetched.first?.population = 3
            _ = City(context: child)
            expect(child.hasChanges && child.registeredObject(for: id) === fetched.first)
        }
        mayEnd.signal()
        parent.performAndWait {}
    }

    @Test(arguments: StoreKind.allCases)
    func `eight children save a thousand times each into one parent, and nothing is lost`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("Porto")
        let parent = stack.context("parent")
        let (children, saves) = (8, 1000)
        let failures = Shared<[String]>([])
        onThreads(children) { number in
            let child = parent.child("child \(number)")
            do {
                for save in 0..<saves {
                    try child.performAndWait {
                        let venue = Venue(context: child)
                        venue.name = "\(number)/\(save)"
                        venue.city = try child.get(cityID, City.self)
                        try child.save()
                    }
                }
            } catch {
                failures.update { $0.append("\(error)") }
            }
        }
        expect(failures.current.isEmpty)
        parent.performAndWait { expectEqual(parent.insertedObjects.count, children * saves) }
        try parent.saveAndWait()
        let reader = stack.context()
        try reader.performAndWait {
            let city = try reader.get(cityID, City.self)
            expectEqual(city.venues.count, children * saves)
            expectEqual(Set(city.venues.map { $0.name ?? "" }).count, children * saves)
        }
    }

    @Test func `with the error policy increments of one object by eight children are all counted`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("counter", population: 0)
        let parent = stack.context()
        let (children, rounds) = (8, 50)
        let failures = Shared<[String]>([])
        onThreads(children) { _ in
            let child = parent.child()
            child.parentConflictPolicy = .error
            child.performAndWait {
                do {
                    let city: City = try typed(child.existingObject(with: id))
                    for _ in 0..<rounds {
                        while true {
                            do {
                                city.population += 1
                                try child.save()
                                break
                            } catch let error as CocoaError where error.code == .managedObjectMerge {
                                child.refresh(city, mergeChanges: false)
                            }
                        }
                    }
                } catch {
                    failures.update { $0.append("\(error)") }
                }
            }
        }
        expect(failures.current.isEmpty)
        try expectEqual(parent.look(id, City.self) { $0.population }, Int64(children * rounds))
    }

    @Test(arguments: StoreKind.allCases)
    func `workers, a middle and a writer save at the same time, and every relationship arrives`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let root = stack.context("writer")
        let middle = root.child("middle")
        let (workers, rounds) = (4, 60)
        let failures = Shared<[String]>([])
        let ends = Shared(0)
        onThreads(workers + 3) { number in
            do {
                switch number {
                case workers, workers + 1:
                    let context = number == workers ? middle : root
                    while ends.current < workers { try context.saveAndWait() }
                case workers + 2:
                    while ends.current < workers {
                        // A fresh child each time sees whole units of work only.
                        let reader = middle.child()
                        try reader.performAndWait {
                            for venue in try reader.all(Venue.self) {
                                guard let city = venue.city, city.venues.contains(venue), venue.licence?.venue === venue
                                else { throw Torn(what: "\(venue)") }
                            }
                        }
                    }
                default:
                    defer { ends.update { $0 += 1 } }
                    try work(middle.child("worker \(number)"), number, rounds)
                }
            } catch {
                failures.update { $0.append("\(number): \(error)") }
                if number >= workers { return }
            }
        }
        expect(failures.current.isEmpty, "\(failures.current)")
        for context in [middle, root] { try context.saveAndWait() }
        let reader = stack.context()
        try reader.performAndWait {
            try expectEqual(reader.all(City.self).count, workers * rounds)
            let venues = try reader.all(Venue.self)
            expectEqual(venues.count, workers * rounds)
            for venue in venues {
                expect(venue.city?.name == venue.name && venue.licence?.number == venue.name)
                expect(venue.photos.map(\.title) == ["a", "b"] && venue.tags.count == 1)
            }
            for city in try reader.all(City.self) { expect(city.venues.count == 1 && city.population == 1) }
        }
    }

    /// One worker: each round makes a venue, whose city an earlier save has made, and goes back to what it made before.
    private func work(_ child: NSManagedObjectContext, _ number: Int, _ rounds: Int) throws {
        for round in 0..<rounds {
            try child.performAndWait {
                let name = "\(number)/\(round)"
                let city = City(context: child)
                city.name = name
                let tag = Tag(context: child)
                try child.save()
                let venue = Venue(context: child)
                venue.name = name
                venue.city = city
                venue.licence = Licence(context: child)
                venue.licence?.number = name
                venue.tags = [tag]
                venue.photos = ["a", "b"].map { title in
                    let photo = Photo(context: child)
                    photo.title = title
                    return photo
                }
                try child.save()
                city.population += 1
                try child.save()
                guard city.venues == [venue], venue.city === city, tag.venues == [venue] else { throw Torn(what: name) }
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: "city == %@", city)
                guard try child.fetch(request) == [venue] else { throw Torn(what: "fetch of \(name)") }
            }
        }
    }

    private struct Torn: Error {
        let what: String
    }
}
