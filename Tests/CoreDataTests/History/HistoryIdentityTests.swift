import CoreData
import Expectations
import TestSupport
import Testing

/// Each read of a history makes objects anew, so they are compared by what they stand for.
@Suite("Equal parts of histories")
struct HistoryIdentityTests {
    /// The stores of two databases number their transactions and changes alike.
    @Test func `transactions and changes are the same ones of the same store`() throws {
        let (first, second) = (try Stack.recording(), try Stack.recording())
        for stack in [first, second] {
            try stack.saveCity("Faro", author: "a")
            try stack.saveCity("Beja", author: "b")
        }
        let (own, again, others) = (try first.transactions(), try first.transactions(), try second.transactions())
        expectEqual(own.map(\.transactionNumber), others.map(\.transactionNumber))
        expect(own == again && own.map(\.hash) == again.map(\.hash))
        expect(own[0] !== again[0] && own[0] != own[1])
        expect(zip(own, others).allSatisfy { $0 != $1 })
        expect(!own[0].isEqual("transaction") && !own[0].isEqual(nil))
        expect(own[0].copy() as? NSPersistentHistoryTransaction === own[0])
        let (changes, sameChanges) = (own.flatMap { $0.changes ?? [] }, again.flatMap { $0.changes ?? [] })
        let otherChanges = others.flatMap { $0.changes ?? [] }
        expectEqual(changes.count, 2)
        expectEqual(changes.map(\.changeID), otherChanges.map(\.changeID))
        expect(changes == sameChanges && changes.map(\.hash) == sameChanges.map(\.hash))
        expect(changes[0] !== sameChanges[0] && changes[0] != changes[1])
        expect(zip(changes, otherChanges).allSatisfy { $0 != $1 })
        expect(!changes[0].isEqual(own[0]) && !own[0].isEqual(changes[0]))
        expect(changes[0].copy() as? NSPersistentHistoryChange === changes[0])
        let texts = [own[0].description, changes[0].description]
        expect(texts[0].contains("\(own[0].transactionNumber)") && texts[0].contains("author a"))
        expect(texts[0].contains(own[0].storeID) && texts[1].contains("\(changes[0].changedObjectID)"))
    }
}
