import CoreData
import Expectations
import TestSupport
import Testing

@Suite("The history token of a save")
struct SavedTokenTests {
    private func token(_ entry: NotificationLog.Entry) -> NSPersistentHistoryToken? {
        entry.notification.userInfo?["newChangeToken"] as? NSPersistentHistoryToken
    }

    @Test func `did-save has the token after what was saved`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        let context = stack.context()
        let log = NotificationLog(
            [.NSManagedObjectContextDidSave, .NSManagedObjectContextDidSaveObjectIDs],
            of: context
        )
        try context.performAndWait {
            for name in ["Porto", "Faro"] {
                log.clear()
                City(context: context).name = name
                try context.save()
                try expectEqual(log.entries.map { token($0) }, [stack.currentToken, stack.currentToken])
            }
        }
        let last = try require(log.entries.last.flatMap { token($0) })
        try expect(stack.transactions(after: last).isEmpty)
        try stack.saveCity("later")
        try expectEqual(stack.transactions(after: last).count, 1)
    }

    @Test func `the token names the stores that were not written as well`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        try stack.saveCity()
        let other = try stack.coordinator.addPersistentStore(
            type: .sqlite,
            at: stack.folder.appendingPathComponent("other.sqlite"),
            options: Stack.tracking
        )
        let context = stack.context()
        let log = NotificationLog([.NSManagedObjectContextDidSave], of: context)
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Faro"
            context.assign(city, to: other)
            try context.save()
        }
        try expectEqual(log.entries.first.flatMap { token($0) }, stack.currentToken)
        try expectEqual(stack.currentToken.transactionNumbers.count, 2)
    }

    @Test func `there is none where nothing was recorded`() throws {
        let (plain, recording) = (try Stack(.sqlite), try Stack.recording(HistoryModels.guide(), .sqlite))
        let context = plain.context()
        let empty = recording.context()
        let logs = [context, empty].map { NotificationLog([.NSManagedObjectContextDidSave], of: $0) }
        try context.performAndWait {
            City(context: context).name = "Porto"
            try context.save()
        }
        try empty.saveAndWait()
        for log in logs {
            expectEqual(log.entries.count, 1)
            expect(log.entries.allSatisfy { token($0) == nil })
        }
    }
}
