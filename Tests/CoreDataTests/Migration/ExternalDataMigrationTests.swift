import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

/// Data that a migration moves between rows and files.
@Suite("External data of migrated stores")
struct ExternalDataMigrationTests {
    private static func data(_ isExternal: Bool, _ more: String = "") -> String {
        let place = isExternal ? " allowsExternalBinaryDataStorage=\"YES\"" : ""
        return "<attribute name=\"data\" optional=\"YES\" attributeType=\"Binary\"\(place) \(more)/>"
    }

    private static let name = "<attribute name=\"n\" optional=\"YES\" attributeType=\"String\"/>"

    /// A parent with children, of which each may have data, inside or outside of rows.
    private static func parts(_ parent: Bool?, _ audio: Bool?, _ book: Bool?) -> String {
        let kinds = [("Audio", audio), ("Book", book), ("Chart", nil)]
        return "<entity name=\"Part\" isAbstract=\"YES\">\(name)\(parent.map { data($0) } ?? "")</entity>"
            + kinds.map { kind, isExternal in
                "<entity name=\"\(kind)\" parentEntity=\"Part\">\(isExternal.map { data($0) } ?? "")</entity>"
            }.joined()
    }

    /// Data whose bytes look like the tags of data that is kept outside, and large data.
    private static let values: [Data?] = [
        nil, Data(), Data([1]), Data([1, 2, 3]), Data([7, 8]), Data([2]) + Data(UUID().uuidString.utf8) + Data([0]),
        Data(repeating: 1, count: 300_000), Data(repeating: 7, count: 300_001),
    ]

    private func fill(_ store: AgingStore, _ model: String, _ kinds: [String]) throws {
        try store.use(model) { context in
            for kind in kinds {
                for (number, data) in Self.values.enumerated() {
                    context.insert(kind, ["n": "\(kind) \(number)", "data": data])
                }
            }
            context.insert("Chart", ["n": "chart"])
        }
    }

    private func found(_ store: AgingStore, _ model: String, _ kind: String) throws -> [Data?] {
        try store.use(model) { context in
            try context.all(kind).sorted { "\($0.value(forKey: "n") ?? "")" < "\($1.value(forKey: "n") ?? "")" }
                .map { $0.value(forKey: "data") as? Data }
        }
    }

    private func files(_ store: AgingStore) -> Int {
        let folder = store.scratch.file(".aging_SUPPORT/_EXTERNAL_DATA")
        return ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).count
    }

    @Test(arguments: [true, false], [(true, false), (false, true), (true, true), (false, false)])
    func `m049 m072 m073 data of two children that moves up is the same, wherever each kept it`(
        _ isExternal: Bool,
        _ was: (Bool, Bool)
    ) throws {
        let store = try AgingStore(.migrating)
        try fill(store, Self.parts(nil, was.0, was.1), ["Audio", "Book"])
        let model = Self.parts(isExternal, nil, nil)
        for kind in ["Audio", "Book"] { try expectEqual(found(store, model, kind), Self.values) }
        try expectEqual(found(store, model, "Chart"), [nil])
        try expectEqual(store.problems(model), [])
        if store.kind == .sqlite { expectEqual(files(store), isExternal ? 4 : 0) }
    }

    @Test(arguments: [true, false], [(true, false), (false, true), (true, true), (false, false)])
    func `m049 m072 m073 data of a parent that moves down is the same, wherever each child keeps it`(
        _ wasExternal: Bool,
        _ now: (Bool, Bool)
    ) throws {
        let store = try AgingStore(.migrating)
        try fill(store, Self.parts(wasExternal, nil, nil), ["Audio", "Book"])
        let model = Self.parts(nil, now.0, now.1)
        for kind in ["Audio", "Book"] { try expectEqual(found(store, model, kind), Self.values) }
        try expectEqual(store.problems(model), [])
        if store.kind == .sqlite { expectEqual(files(store), (now.0 ? 2 : 0) + (now.1 ? 2 : 0)) }
    }

    @Test(arguments: [true, false])
    func `m072 m073 m120 what the history keeps of deleted data is the same`(_ isExternal: Bool) throws {
        func model(_ isExternal: Bool) -> String {
            "<entity name=\"Part\">\(Self.name)\(Self.data(isExternal, "preserveAfterDeletion=\"YES\""))</entity>"
        }
        let tracking: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        func kept(_ context: NSManagedObjectContext) throws -> [Data?] {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            let transactions = try require(result?.result as? [NSPersistentHistoryTransaction])
            return transactions.flatMap { $0.changes ?? [] }.filter { $0.changeType == .delete }
                .map { $0.tombstone?["data"] as? Data }
        }
        func delete(_ context: NSManagedObjectContext) throws {
            for data in Self.values {
                let part = context.insert("Part", ["data": data])
                try context.save()
                context.delete(part)
                try context.save()
            }
        }
        let store = try AgingStore(.migrating)
        try store.use(model(!isExternal), tracking) { context in
            try delete(context)
            try expectEqual(kept(context), Self.values)
        }
        try store.use(model(isExternal), tracking) { context in
            try expectEqual(kept(context), Self.values)
            try delete(context)
            try expectEqual(kept(context), Self.values + Self.values)
        }
        try expectEqual(store.problems(model(isExternal)), [])
    }
}
