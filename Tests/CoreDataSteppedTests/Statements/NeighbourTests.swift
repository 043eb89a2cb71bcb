import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Statements that hold while other contexts save, delete and merge the same rows")
struct NeighbourTests {
    @Test(arguments: StoreKind.allCases)
    func `there is one object for a row, and its ID changes only when it is permanent (CS-26, 29, 30, 33, 34, 35)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { stack, context, cityID, _ in
            let city = context.object(with: cityID)
            expect(city.isFault)
            try expect(context.existingObject(with: cityID) === city && !city.isFault)
            let request = City.fetchRequest(named: "own")
            try expectEqual(context.fetch(request), [city])
            let (first, second) = (Venue(context: context), Venue(context: context))
            let ids = [first.objectID, second.objectID]
            try context.obtainPermanentIDs(for: [first])
            expect(!first.objectID.isTemporaryID && first.isInserted && second.objectID === ids[1])
            try context.save()
            for (venue, former) in zip([first, second], ids) {
                let id = venue.objectID
                // The former ID does not change, and leads to the object.
                expect(former.isTemporaryID && former != id && context.object(with: former) === venue)
                expect(!id.isTemporaryID && context.object(with: id) === venue)
                expect(stack.coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()) === id)
                context.delete(venue)
            }
            try context.save()
            expectThrows(CocoaError.self) { _ = try context.existingObject(with: ids[0]) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child sees and saves into its parent, and only the root's save writes (CS-40 to 46)`(_ kind: StoreKind)
        throws
    {
        try Neighbours.among(kind) { stack, parent, cityID, _ in
            parent.automaticallyMergesChangesFromParent = true
            let child = parent.child("child")
            let city = try parent.get(cityID, City.self)
            let name = "by the child \(city.population)"
            city.name = "unsaved"
            let newID = try child.performAndWait {
                // CS-44, 45: the child sees the parent's unsaved values and the store's rows.
                let own = try child.get(cityID, City.self)
                expect(own.name == "unsaved" && own.venues.count == 1)
                own.name = name
                let new = City(context: child)
                new.name = "new"
                try expectEqual(child.fetch(City.fetchRequest(named: "new")), [new])
                try child.save()
                expect(!child.hasChanges && new.objectID.isTemporaryID)
                return new.objectID
            }
            expect(city.name == name && city.isUpdated)
            try expect(stack.read(cityID, City.self) { $0.name } != name)
            try parent.save()
            expect(newID.isTemporaryID && !child.performAndWait { child.object(with: newID).objectID.isTemporaryID })
            try expectEqual(stack.read(cityID, City.self) { $0.name }, name)
            try child.performAndWait {
                child.delete(try child.existingObject(with: newID))
                try child.save()
            }
            city.name = "own"
            try parent.save()
            expectThrows(CocoaError.self) { _ = try stack.read(newID, City.self) { $0.name } }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `refreshing shows newer values under the edits, and a rollback drops the edits (CS-61, 64, 65, 67, 69)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { _, context, cityID, venueID in
            let city = try context.get(cityID, City.self)
            let first = city.population
            city.name = "edited"
            context.refresh(city, mergeChanges: true)
            expect(city.name == "edited" && city.population >= first && city.isUpdated)
            let second = city.population
            context.refreshAllObjects()
            expect(city.name == "edited" && city.population >= second)
            context.rollback()
            expect(city.name == "own" && !context.hasChanges)
            context.refresh(city, mergeChanges: false)
            expect(city.isFault && city.population >= second && city.venues.map(\.objectID) == [venueID])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that fails leaves the changes, and one that does not clears the flags (CS-76, 81, 83, 84, 86)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { stack, context, cityID, _ in
            let city = try context.get(cityID, City.self)
            let name = UUID().uuidString
            city.name = name
            let user = User(context: context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .validationMissingMandatoryProperty)
            expect(user.isInserted && city.isUpdated && city.name == name)
            expectEqual(city.changedValues().keys.sorted(), ["name"])
            try expect(stack.read(cityID, City.self) { $0.name } != name)
            context.delete(user)
            let before = city.population
            try context.save()
            expect(!city.hasChanges && city.changedValues().isEmpty && city.population >= before)
            try expectEqual(stack.read(cityID, City.self) { $0.name }, name)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `delete rules reach all related objects (CS-90, 91)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for _ in 0..<Neighbours.rounds {
            let (cityID, venueID) = try Neighbours.prepare(stack)
            let photoIDs = try stack.read(venueID, Venue.self) { $0.photos.map(\.objectID) }
            try Neighbours(stack, cities: [cityID]).around {
                let context = stack.context("tested")
                context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
                try context.performAndWait {
                    context.delete(try context.existingObject(with: venueID))
                    try context.save()
                }
            }
            try expect(stack.read(cityID, City.self) { $0.venues.isEmpty })
            for id in photoIDs { expectThrows(CocoaError.self) { _ = try stack.read(id, Photo.self) { $0.title } } }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the policies decide, and nothing that others have written is lost (CS-98, 100, 101, 105, 106, 108)`(
        _ kind: StoreKind
    ) throws {
        let policies: [NSMergePolicy] = [.error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .rollback]
        for policy in policies {
            try Neighbours.among(kind) { stack, context, cityID, _ in
                context.mergePolicy = policy
                let city = try context.get(cityID, City.self)
                let (name, before) = (UUID().uuidString, city.population)
                for _ in 0..<200 {
                    city.name = name
                    do {
                        try context.save()
                    } catch let error as CocoaError where error.code == .managedObjectMerge {
                        expectEqual(policy.mergeType, .errorMergePolicyType)
                        let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
                        let conflict = try require(conflicts?.first)
                        expect(conflicts?.count == 1 && conflict.sourceObject === city)
                        expect(conflict.newVersionNumber > conflict.oldVersionNumber)
                        context.refresh(city, mergeChanges: true)
                        continue
                    }
                    // With the rollback policy a conflict loses the name, and nothing else does.
                    if city.name == name { break }
                    expectEqual(policy.mergeType, .rollbackMergePolicyType)
                }
                expect(!context.hasChanges && city.population >= before)
                let stored = try stack.read(cityID, City.self) { ($0.name, $0.population) }
                expect(stored.1 >= city.population)
                if policy.mergeType != .rollbackMergePolicyType { expectEqual(stored.0, name) }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `notifications and merges report what happened, in order (CS-119, 121, 129, 131)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { stack, context, cityID, _ in
            let reader = stack.context("reader")
            let log = NotificationLog(.ofContexts, of: context)
            let city = try context.get(cityID, City.self)
            let doomed = City(context: context)
            doomed.name = "doomed"
            try context.save()
            let id = doomed.objectID
            let held = try reader.performAndWait {
                UncheckedSendable([try reader.get(cityID, City.self), try reader.get(id, City.self)])
            }
            reader.performAndWait { expectEqual(held.value.map(\.name), ["own", "doomed"]) }
            log.clear()
            city.name = "told"
            context.delete(doomed)
            try context.save()
            // Changes that a conflict has brought to light may be reported as well.
            expectEqual(log.names.first, .NSManagedObjectContextObjectsDidChange)
            expect(
                log.names.filter { $0 != .NSManagedObjectContextObjectsDidChange } == [
                    .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
                    .NSManagedObjectContextDidSaveObjectIDs,
                ]
            )
            let saved = try require(log.entries.first { $0.name == .NSManagedObjectContextDidSave })
            expect(saved.objects(NSUpdatedObjectsKey) == [city] && saved.objects(NSDeletedObjectsKey) == [doomed])
            reader.performAndWait {
                reader.mergeChanges(fromContextDidSave: saved.notification)
                expect(held.value[0].name == "told" && !reader.hasChanges)
                expect(held.value[1].isDeleted)
            }
            city.name = "own"
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `fetches fold in unsaved changes, and no others' (CS-137 to 139)`(_ kind: StoreKind) throws {
        try Neighbours.among(kind) { _, context, cityID, _ in
            let city = try context.get(cityID, City.self)
            city.name = "pending"
            let added = City(context: context)
            added.name = "own"
            let request = City.fetchRequest(named: "own")
            try expectEqual(context.fetch(request), [added])
            try expectEqual(context.count(for: request), 1)
            request.includesPendingChanges = false
            try expectEqual(context.fetch(request), [city])
            let dictionaries = NSFetchRequest<NSDictionary>(entityName: "City")
            dictionaries.resultType = .dictionaryResultType
            dictionaries.predicate = NSPredicate(format: "name == 'own'")
            dictionaries.propertiesToFetch = ["name"]
            try expectEqual(context.fetch(dictionaries).count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an asynchronous fetch ends once, with the context's own objects (CS-149 to 152, 154)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let (cityID, venueID) = try Neighbours.prepare(stack)
        let neighbours = Neighbours(stack, cities: [cityID], venues: [venueID])
        let (ends, end) = AsyncStream<String>.makeStream()
        let contexts = (0..<Neighbours.rounds).map { stack.context("tested \($0)") }
        try neighbours.around {
            for (number, context) in contexts.enumerated() {
                try context.performAndWait {
                    let request = NSAsynchronousFetchRequest(fetchRequest: City.fetchRequest(named: "own")) { result in
                        let objects = result.finalResult ?? []
                        let isOwn = objects.allSatisfy { $0.managedObjectContext === context && $0.name == "own" }
                        let isWhole = objects.map(\.objectID) == [cityID]
                        end.yield(result.operationError == nil && isOwn ? "\(number % 3 == 0) \(isWhole)" : "wrong")
                    }
                    let result = try context.execute(request) as? NSPersistentStoreAsynchronousResult
                    if number % 3 == 0 { result?.cancel() }
                }
            }
            // The test enters the queues again, so every fetch has time to end among the neighbours.
            for context in contexts { context.performAndWait {} }
        }
        var seen: [String] = []
        for await next in ends {
            seen.append(next)
            if seen.count == Neighbours.rounds { break }
        }
        // A cancelled fetch gives nothing.
        expect(seen.count { $0 == "true false" } == 5 && seen.count { $0 == "false true" } == 10, "\(seen)")
    }

    @Test(arguments: StoreKind.allCases)
    func `undo takes back what was changed here, and nothing that was merged (CS-207, 208, 209)`(_ kind: StoreKind)
        throws
    {
        try Neighbours.among(kind) { _, context, cityID, venueID in
            context.undoManager = UndoManager()
            context.automaticallyMergesChangesFromParent = true
            let (city, venue) = (try context.get(cityID, City.self), try context.get(venueID, Venue.self))
            let before = city.population
            city.name = "changed"
            venue.city = nil
            context.processPendingChanges()
            context.refresh(city, mergeChanges: true)
            context.undo()
            expect(city.name == "own" && venue.city === city && city.venues == [venue] && city.population >= before)
            context.redo()
            expect(city.name == "changed" && venue.city == nil)
            try context.save()
            context.undo()
            try context.save()
            expect(city.name == "own" && venue.city === city && city.population >= before)
        }
    }
}

extension City {
    /// A request for the cities with a name.
    fileprivate static func fetchRequest(named name: String) -> NSFetchRequest<City> {
        let request = NSFetchRequest<City>(entityName: "City")
        request.predicate = NSPredicate(format: "name == %@", name)
        return request
    }
}
