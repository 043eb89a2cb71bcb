import CoreData
import Expectations
import StrataSQLiteStore
import TestSupport
import Testing

@Suite("What is at fault")
struct FailureTests {
    private func failure(_ body: () throws -> Void) -> CoreDataFailure? {
        let error = #expect(throws: (any Error).self, performing: body)
        return error.flatMap { CoreDataFailure($0) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a wrong key, a wrong type and a wrong token are the request's`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        context.performAndWait {
            for format in ["nonsense == 1", "population == 'many'", "name MATCHES '('"] {
                let request = NSFetchRequest<City>(entityName: "City")
                request.predicate = NSPredicate(format: format)
                expectEqual(failure { _ = try context.fetch(request) }, .request, "\(format)")
            }
            let request = NSFetchRequest<City>(entityName: "Town")
            expectEqual(failure { _ = try context.fetch(request) }, .request)
            let token = NSPersistentHistoryToken(transactionNumbers: ["elsewhere": 1])
            let history = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
            expectEqual(failure { _ = try context.execute(history) }, .request)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `validation, what is not there, and duplicates of one's own are the data's`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        try stack.delete(id)
        let context = stack.context()
        context.performAndWait {
            _ = User(context: context)
            expectEqual(failure { try context.save() }, .data)
            _ = User(context: context)
            expectEqual(failure { try context.save() }, .data)
            context.rollback()
        }
        context.performAndWait {
            expectEqual(failure { _ = try context.existingObject(with: id) }, .data)
            for _ in 0..<2 { User(context: context).email = "a@b" }
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error.flatMap { CoreDataFailure($0) }, .data)
            expectEqual(error?.localizedDescription.contains("others have saved"), false)
            expectEqual(error?.localizedDescription.contains("a@b"), false)
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSConstraintConflict]
            expectEqual(conflicts?.first?.constraintValues["email"] as? String, "a@b")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what others have saved meanwhile is a conflict`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        _ = try stack.store(User.self) { user, _ in user.email = "a@b" }
        let context = stack.context()
        try context.performAndWait {
            try context.get(id, City.self).population = 5
            try stack.change(id, City.self) { city, _ in city.population = 6 }
            expectEqual(failure { try context.save() }, .conflict)
            context.rollback()
            User(context: context).email = "a@b"
            expectEqual(failure { try context.save() }, .conflict)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a time limit is a deadline`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.storeCity(String(repeating: "a", count: 60))
        let context = stack.context()
        context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name MATCHES '(a+)+b'")
            request.evaluationTimeLimit = 0.05
            expectEqual(failure { _ = try context.fetch(request) }, .deadline)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a store that was removed, or may not be written, is the environment's`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        let store = try require(stack.coordinator.persistentStores.first)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.population = 3
            store.isReadOnly = true
            expectEqual(failure { try context.save() }, .environment)
            expectEqual(failure { _ = try context.execute(NSBatchDeleteRequest(objectIDs: [id])) }, .environment)
            try stack.coordinator.remove(store)
            expectEqual(failure { try context.save() }, .environment)
        }
    }

    @Test func `a file that is no store is the environment's, and a timeout a deadline`() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("letter.txt")
        try Data("Dear reader, this is no database at all, however long it may be.".utf8).write(to: url)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        expectEqual(failure { try coordinator.addPersistentStore(type: .sqlite, at: url) }, .environment)
        expectEqual(CoreDataFailure(CocoaError(.persistentStoreTimeout)), .deadline)
    }

    @Test func `a migration that waits for another one meets a deadline, and one that has no place the environment`()
        throws
    {
        let scratch = try ScratchFolder()
        let url = scratch.file("store.sqlite")
        let turn = try MigrationTurn(of: url, timeout: 1)
        expectEqual(failure { _ = try MigrationTurn(of: url, timeout: 0.01) }, .deadline)
        withExtendedLifetime(turn) {}
        let nowhere = scratch.file("missing").appendingPathComponent("store.sqlite")
        expectEqual(failure { _ = try MigrationTurn(of: nowhere, timeout: 0.01) }, .environment)
    }

    @Test func `of errors that are not the framework's nothing is said`() {
        struct Mine: Error {}
        expectEqual(CoreDataFailure(Mine()), nil)
        expectEqual(CoreDataFailure(CancellationError()), nil)
        expectEqual(CoreDataFailure(CocoaError(.userCancelled)), nil)
        let cause = CocoaError(.managedObjectMerge)
        let incomplete = CocoaError(.persistentStoreIncompleteSave, userInfo: [NSUnderlyingErrorKey: cause])
        expectEqual(CoreDataFailure(incomplete), .conflict)
    }

    @Test func `a parse error quotes the place, and not the whole input`() {
        let front = (0..<100).map { "a\($0) == 'secret'" }.joined(separator: " AND ")
        let text = front + " AND größe >< 2 AND " + front
        let error = expectThrows(PredicateFormatError.self) { try NSPredicate(validating: text) }
        expectEqual(error?.localizedDescription.contains("größe >< 2"), true)
        expect((error?.localizedDescription.count ?? 0) < 250)
        expect(error?.place.hasPrefix("…") == true && error?.place.hasSuffix("…") == true)
    }

    @Test func `an error of several values lists what it counts`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        context.performAndWait {
            for _ in 0..<5 { _ = User(context: context) }
            let error = expectThrows(CocoaError.self) { try context.save() }
            let text = error?.localizedDescription ?? ""
            expect(text.hasPrefix("5 values"))
            expectEqual(text.split(separator: "\n").count, 6)
        }
    }
}
