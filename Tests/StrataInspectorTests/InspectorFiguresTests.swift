import CoreData
import Expectations
import Foundation
import StrataSQLiteStore
import TestSupport
import Testing

@testable import StrataInspector

@Suite("How large a store is, for the inspector")
struct InspectorFiguresTests {
    private func facts(_ url: URL) throws -> [String: String] {
        var facts: [String: String] = [:]
        for row in InspectCommand.rows(try StoreFigures(of: url)) { facts[row[0]] = row[1] }
        return facts
    }

    @Test func `inspect says the sizes of file and log, and nothing of a history that is not there`() throws {
        let stack = try Stack(.sqlite)
        _ = try stack.storeCity()
        try stack.coordinator.remove(stack.coordinator.persistentStores[0])
        let size = try require(
            FileManager.default.attributesOfItem(atPath: stack.storeURL.path)[.size] as? NSNumber
        ).intValue
        let facts = try facts(stack.storeURL)
        expect(facts["File"] == "\(size / 1024) KiB" && facts["Log"] == "0 bytes")
        expect(facts["History"] == nil && facts["External data"] == nil && facts["Oldest version read"] == nil)
    }

    @Test func `inspect says the size of external data`() throws {
        let model = GuideModel.make()
        model.entitiesByName["Venue"]?.attributesByName["map"]?.allowsExternalBinaryDataStorage = true
        let stack = try Stack(.sqlite, model: model)
        _ = try stack.store(Venue.self) { venue, _ in venue.map = Data(count: 1_000_000) }
        try stack.coordinator.remove(stack.coordinator.persistentStores[0])
        try expectEqual(facts(stack.storeURL)["External data"], "976 KiB in 1 file")
    }

    @Test func `inspect says how long the history is, and how far its consumers have read`() throws {
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: [NSPersistentHistoryTrackingKey: true])
        for name in ["Porto", "Faro", "Braga"] { _ = try stack.storeCity(name) }
        let uuid = try require(stack.coordinator.persistentStores.first?.identifier)
        try stack.coordinator.setPersistentHistoryToken(
            NSPersistentHistoryToken(transactionNumbers: [uuid: 2]),
            forConsumer: "index"
        )
        try stack.coordinator.remove(stack.coordinator.persistentStores[0])
        let facts = try facts(stack.storeURL)
        expectEqual(facts["History"], "3 transactions (1 to 3)")
        expectEqual(facts["Consumer"]?.hasPrefix("index has read up to 2, 1 behind, last seen 20"), true)
    }

    @Test func `inspect counts the transactions that consumers have not read, and no holes`() throws {
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: [NSPersistentHistoryTrackingKey: true])
        for name in ["Porto", "Faro", "Braga", "Beja"] { _ = try stack.storeCity(name) }
        let uuid = try require(stack.coordinator.persistentStores.first?.identifier)
        try stack.coordinator.setPersistentHistoryToken(
            NSPersistentHistoryToken(transactionNumbers: [uuid: 1]),
            forConsumer: "index"
        )
        let picking = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        picking.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        picking.fetchRequest?.predicate = NSPredicate(format: "transactionNumber IN {2, 3}")
        _ = try stack.coordinator.result(picking)
        try stack.coordinator.remove(stack.coordinator.persistentStores[0])
        let facts = try facts(stack.storeURL)
        expectEqual(facts["History"], "2 transactions (1 to 4)")
        expectEqual(facts["Consumer"]?.hasPrefix("index has read up to 1, 1 behind, last seen 20"), true)
    }
}
