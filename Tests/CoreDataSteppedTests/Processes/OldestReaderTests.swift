#if os(Linux)

import Expectations
import CoreData
import Foundation
import StrataSQLite
import TestSupport
import Testing

/// `strata inspect` reports the reader that keeps the log of a store from growing shorter.
@Suite("The oldest version that is being read")
struct OldestReaderTests {
    @Test func `inspect names the process that reads the oldest version`() async throws {
        let folder = try SharedFolder(.sqlite, signals: "pinned", "release")
        let store = folder.store
        async let reader = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try await store.contextWithCity()
            try await context.perform {
                try context.setQueryGenerationFrom(.current)
                _ = try context.city()
            }
            let writer = NSManagedObjectContext(.privateQueue)
            writer.persistentStoreCoordinator = context.persistentStoreCoordinator
            try await writer.perform {
                writer.makeCity("Ulm")
                try writer.save()
            }
            store.signal("pinned")
            store.wait(for: "release")
            try await context.perform { _ = try context.city() }
        }
        await store.arrival(of: "pinned")
        let found = OldestReader.find(at: store.url.path)
        store.signal("release")
        _ = await reader
        let oldest = try require(found)
        expect(oldest.frames < oldest.newestFrames)
        expect(oldest.holders.count == 1 && oldest.holders.first?.processID != getpid())
        expectEqual(OldestReader.find(at: store.url.path), nil)
    }
}

#endif
