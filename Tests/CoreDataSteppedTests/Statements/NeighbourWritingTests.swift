import CoreData
import Expectations
import TestSupport
import Testing

/// Statements about conflicts when several contexts write at once.
@Suite("What several contexts write at the same time")
struct NeighbourWritingTests {
    private static let rounds = 20

    @Test(arguments: StoreKind.allCases)
    func `if contexts insert one value at once, one saves it, and the others get an error (CS-113, 114)`(
        _ kind: StoreKind
    )
        async throws
    {
        let stack = try Stack(kind)
        let saved = Shared(0)
        let told = Shared(0)
        for round in 0..<Self.rounds {
            await withTaskGroup(of: Void.self) { group in
                for writer in 0..<4 {
                    group.addTask {
                        let context = stack.context("writer \(writer)")
                        await context.perform {
                            let user = User(context: context)
                            user.email = "\(round)@example.com"
                            do {
                                try context.save()
                                saved.update { $0 += 1 }
                            } catch {
                                expectEqual(error.cocoaCode, .managedObjectConstraintMerge)
                                let info = (error as? CocoaError)?.userInfo[NSPersistentStoreSaveConflictsErrorKey]
                                let conflicts = info as? [NSConstraintConflict] ?? []
                                expectEqual(conflicts.map(\.constraint), [["email"]])
                                expectEqual(conflicts.first?.databaseObject?.objectID.isTemporaryID, false)
                                expectEqual(conflicts.first?.conflictingObjects, [user])
                                expect(user.isInserted && user.objectID.isTemporaryID)
                                told.update { $0 += 1 }
                            }
                        }
                    }
                }
            }
        }
        expect(saved.current == Self.rounds && told.current == 3 * Self.rounds)
        try expectEqual(stack.count("User"), Self.rounds)
    }

    @Test(arguments: StoreKind.allCases)
    func `under object-trump contexts that insert one value at once end with one row (CS-115)`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        for round in 0..<Self.rounds {
            await withTaskGroup(of: Void.self) { group in
                for writer in 0..<4 {
                    group.addTask {
                        let context = stack.context(.objectTrump, "writer \(writer)")
                        await context.perform {
                            let user = User(context: context)
                            user.email = "\(round)@example.com"
                            user.name = "writer \(writer)"
                            #expect(throws: Never.self) { try context.save() }
                            expect(!context.hasChanges)
                        }
                    }
                }
            }
        }
        let reader = stack.context("reader")
        let users = try reader.performAndWait { try reader.all(User.self).map { "\($0.email) \($0.name ?? "")" } }
        expectEqual(users.count, Self.rounds)
        expect(users.allSatisfy { $0.contains("writer") })
    }

    @Test(arguments: StoreKind.allCases)
    func `detectConflicts(for:) finds when two contexts each rely on the other's object (CS-111)`(
        _ kind: StoreKind
    ) async throws {
        let stack = try Stack(kind)
        let doctors = try ["first", "second"].map { try stack.storeCity($0, population: 1) }
        let conflicts = Shared(0)
        for _ in 0..<Self.rounds {
            await withTaskGroup(of: Void.self) { group in
                for own in 0..<2 {
                    group.addTask {
                        let context = stack.context("doctor \(own)")
                        await context.perform {
                            do {
                                let mine = try context.get(doctors[own], City.self)
                                let other = try context.get(doctors[1 - own], City.self)
                                // A doctor goes off duty only if the other one is on duty.
                                guard mine.population == 1, other.population == 1 else { return }
                                mine.population = 0
                                context.detectConflicts(for: other)
                                try context.save()
                            } catch {
                                expectEqual(error.cocoaCode, .managedObjectMerge)
                                conflicts.update { $0 += 1 }
                            }
                        }
                    }
                }
            }
            let onDuty = try doctors.map { try stack.read($0, City.self) { $0.population } }.reduce(0, +)
            // One of the doctors is always on duty.
            expectEqual(onDuty, 1)
            for id in doctors { try stack.change(id, City.self) { city, _ in city.population = 1 } }
        }
        expect(conflicts.current <= Self.rounds)
    }
}
