import TestSupport
import Testing

@testable import CoreData

@Suite("Trees: blocks of a parent that wait for a child")
struct TreeWaitingTests {
    @Test(.timeLimit(.minutes(1)))
    func `waiting for a child that is merging, inside its parent's block, stops the program with the chain`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let id = try stack.storeCity("before")
            let (parent, child) = stack.pair()
            try child.performAndWait {
                child.automaticallyMergesChangesFromParent = true
                child.retainsRegisteredObjects = true
                let name = try child.get(id, City.self).name
                #expect(name == "before")
            }
            try parent.performAndWait {
                try parent.get(id, City.self).name = "after"
                try parent.save()
                // The child has begun to merge what was saved, and has to wait for this block.
                while !WaitGraph.waitingNow.contains(where: { $0.contains("\"child\" waits for") }) { sched_yield() }
                child.performAndWait {}
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("CoreData: deadlock: "), "\(text)")
        #expect(text.contains("private-queue context \"child\" waits for private-queue context \"parent\""), "\(text)")
    }

    @Test func `a block of a parent that leaves the child its turn comes to what it wants`() async throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("before")
        let (parent, child) = stack.pair()
        try child.performAndWait {
            child.automaticallyMergesChangesFromParent = true
            child.retainsRegisteredObjects = true
            let name = try child.get(id, City.self).name
            #expect(name == "before")
        }
        let name = try await parent.perform {
            try parent.get(id, City.self).name = "after"
            try parent.save()
            // Waits for nobody: the child's queue comes to it after the merge.
            return Task { try await child.perform { try child.get(id, City.self).name } }
        }
        #expect(try await name.value == "after")
    }
}
