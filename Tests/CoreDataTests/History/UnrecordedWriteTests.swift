import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Writes that a history would miss")
struct UnrecordedWriteTests {
    /// A store without a history, which contains a city.
    private func stack() throws -> (stack: Stack, city: NSManagedObjectID) {
        let stack = try Stack(.sqlite, model: HistoryModels.guide())
        return (stack, try stack.saveCity("Porto"))
    }

    @Test
    func `a save is refused once another process has begun a history, and loses nothing`() throws {
        let (stack, id) = try stack()
        let context = stack.context()
        try context.performAndWait { () throws in
            let city = try require(try context.existingObject(with: id) as? City)
            city.name = "new"
            let other = try stack.secondStack()
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .persistentStoreSave)
            expectEqual(error?.localizedDescription.contains("NSPersistentHistoryTrackingKey"), true)
            expect(city.hasChanges && city.name == "new")
            expect(stack.store.isReadOnly)
            // The store contains nothing that the history lacks.
            try expect(other.transactions().isEmpty)
            try expectEqual(stack.column("SELECT ZNAME FROM ZCITY"), ["Porto"])
        }
        // The store can be read nevertheless.
        try expect(stack.verificationProblems().isEmpty)
        let reader = stack.context()
        try reader.performAndWait { () throws in
            try expectEqual(reader.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name), ["Porto"])
        }
    }

    @Test
    func `a batch is refused once another process has begun a history`() throws {
        let (stack, _) = try stack()
        _ = try stack.secondStack()
        let context = stack.context()
        try context.performAndWait { () throws in
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["name": "new"]
            let error = expectThrows(CocoaError.self) { try context.execute(update) }
            expectEqual(error?.code, .persistentStoreSave)
        }
        try expectEqual(stack.column("SELECT ZNAME FROM ZCITY"), ["Porto"])
    }

    @Test
    func `tables of others that are no history keep no context from saving`() throws {
        let (stack, _) = try stack()
        try stack.sql("CREATE TABLE FOREIGN_NOTES (TEXT VARCHAR)")
        try stack.saveCity("Braga")
        try stack.saveCity("Faro")
        try expectEqual(stack.column("SELECT ZNAME FROM ZCITY ORDER BY 1"), ["Braga", "Faro", "Porto"])
    }
}
