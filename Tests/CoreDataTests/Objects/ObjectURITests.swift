import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials

/// The parts of URIs, which come from outside of the process and may have any form.
@Suite("URIs of objects")
struct ObjectURITests {
    @Test func `a URI has a store, an entity and a key`() throws {
        let stored = try #require(ObjectURI("x-coredata://B7C2/Venue/p12"))
        expectEqual(stored.store, "B7C2")
        expectEqual(stored.entityName, "Venue")
        expect(!stored.isTemporary)
        expectEqual(stored.key, "12")
        let temporary = try #require(ObjectURI("x-coredata:///Venue/tAB-1"))
        expectEqual(temporary.store, "")
        expect(temporary.isTemporary)
        expectEqual(temporary.key, "AB-1")
    }

    @Test func `the name of an entity may be escaped, and need not be in ASCII`() {
        expectEqual(ObjectURI("x-coredata://B7C2/Gr%C3%B6%C3%9Fe/p1")?.entityName, "Größe")
        expectEqual(ObjectURI("x-coredata://B7C2/Größe/p1")?.entityName, "Größe")
        // This is no escape, so the name stays as it is.
        expectEqual(ObjectURI("x-coredata://B7C2/100%/p1")?.entityName, "100%")
    }

    @Test(arguments: [
        "", "x-coredata:", "x-coredata://", "x-coredata://B7C2", "x-coredata://B7C2/", "x-coredata://B7C2/Venue",
        "x-coredata://B7C2/Venue/", "x-coredata://B7C2/Venue/p1/", "x-coredata://B7C2/Venue/q1",
        "x-coredata://B7C2/a/b/p1", "X-COREDATA://B7C2/Venue/p1", "http://B7C2/Venue/p1", " x-coredata://B7C2/Venue/p1",
    ])
    func `other texts are no URIs of objects`(_ text: String) { expect(ObjectURI(text) == nil) }

    @Test func `a key may be missing, and then no object is meant`() throws {
        expectEqual(ObjectURI("x-coredata://B7C2/Venue/p")?.key, "")
        let stack = try Stack(.memory)
        let store = stack.coordinator.persistentStores[0].identifier ?? ""
        expect(stack.coordinator.managedObjectID(for: "x-coredata://\(store)/Venue/p") == nil)
        expect(stack.coordinator.managedObjectID(for: "x-coredata://\(store)/Venue/p1") != nil)
        expect(stack.coordinator.managedObjectID(for: "x-coredata://\(store)/Venue/p-1") == nil)
        expect(stack.coordinator.managedObjectID(for: "x-coredata://\(store)1/Venue/p1") == nil)
        expect(stack.coordinator.managedObjectID(for: "x-coredata:///Venue/t1") == nil)
    }
}
