import CoreData
import TestSupport
import Testing

/// A row that somebody has deleted comes back when a policy lets memory win.
///
/// It must not pass for what it was before. Found by `stress interleave`.
@Suite("Rows that come back after they were deleted")
struct RevivedRowTests {
    /// A stored venue, and contexts that have read it.
    private struct Scene {
        let stack: Stack
        let id: NSManagedObjectID

        init(_ kind: StoreKind) throws {
            let stack = try Stack(kind)
            let context = stack.context()
            id = try context.performAndWait {
                let venue = Venue(context: context)
                venue.name = "first"
                try context.save()
                return venue.objectID
            }
            self.stack = stack
        }

        func set(_ name: String) throws {
            let context = stack.context()
            try context.performAndWait {
                try context.get(id, Venue.self).name = name
                try context.save()
            }
        }

        func delete() throws {
            let context = stack.context()
            try context.performAndWait {
                context.delete(try context.get(id, Venue.self))
                try context.save()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save upon a version before the deletion is a conflict, not a lost update`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let reviving = scene.stack.context()
        reviving.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        try reviving.performAndWait { try reviving.get(scene.id, Venue.self).name = "revived" }
        try scene.set("second")
        // Has what will be, counted from what the other context has read, the version of the revived row.
        let late = scene.stack.context()
        try late.performAndWait { try late.get(scene.id, Venue.self).price = 5 }
        try scene.delete()
        try reviving.performAndWait { try reviving.save() }
        try late.performAndWait {
            let conflicts = try late.versionConflictsOfSave()
            #expect(conflicts.contains { $0.sourceObject.objectID == scene.id })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a context that had seen later versions shows the row that came back`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let reviving = scene.stack.context()
        reviving.mergePolicy = NSMergePolicy.overwrite
        try reviving.performAndWait { try reviving.get(scene.id, Venue.self).name = "revived" }
        for round in 0..<4 { try scene.set("later \(round)") }
        let watching = scene.stack.context()
        try watching.performAndWait {
            let venue = try watching.get(scene.id, Venue.self)
            #expect(venue.name == "later 3")
            try scene.delete()
            try reviving.performAndWait { try reviving.save() }
            watching.refresh(venue, mergeChanges: false)
            #expect(venue.name == "revived")
        }
    }
}
