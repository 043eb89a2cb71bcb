import CoreData
import Expectations
import Foundation
import SwiftData
import Testing

@Suite("SwiftData: undo")
struct UndoTests {
    private func context(_ place: Place) throws -> (ModelContext, CoreData.UndoManager, Sailor) {
        let context = ModelContext(try place.container())
        let sailor = Sailor("Ada", badge: 1)
        context.insert(sailor)
        try context.save()
        let manager = CoreData.UndoManager()
        context.undoManager = manager
        return (context, manager, sailor)
    }

    @Test(arguments: Place.allCases)
    func `the changes between two calls of processPendingChanges are one step`(_ place: Place) throws {
        let (context, manager, sailor) = try context(place)
        expect(!manager.canUndo)
        sailor.name = "Eva"
        sailor.crew = Crew(name: "Night")
        context.processPendingChanges()
        sailor.name = "Eve"
        manager.undo()
        expectEqual([sailor.name, sailor.crew?.name], ["Eva", "Night"])
        expect(manager.canUndo && manager.canRedo)
        manager.undo()
        expectEqual([sailor.name, sailor.crew?.name], ["Ada", nil])
        expect(!manager.canUndo && !context.hasChanges)
        manager.redo()
        manager.redo()
        expectEqual([sailor.name, sailor.crew?.name], ["Eve", "Night"])
        try context.save()
        let read = try ModelContext(context.container).fetch(FetchDescriptor<Sailor>()).first
        expectEqual([read?.name, read?.crew?.name], ["Eve", "Night"])
    }

    @Test(arguments: Place.allCases)
    func `a group of steps is undone at once`(_ place: Place) throws {
        let (context, manager, sailor) = try context(place)
        manager.beginUndoGrouping()
        for name in ["b", "c"] {
            sailor.name = name
            context.processPendingChanges()
        }
        manager.setActionName("Rename")
        manager.endUndoGrouping()
        expectEqual(manager.undoActionName, "Rename")
        manager.undo()
        expectEqual(sailor.name, "Ada")
        manager.redo()
        expectEqual(sailor.name, "c")
    }

    @Test(arguments: Place.allCases)
    func `an object whose insertion is undone leaves the context, and redo brings it back`(_ place: Place) throws {
        let (context, manager, sailor) = try context(place)
        let knot = Knot(number: 7)
        sailor.knots = [knot]
        manager.undo()
        expect(knot.modelContext == nil && sailor.knots.isEmpty)
        expectEqual(knot.number, 7)
        expect(!context.hasChanges)
        manager.redo()
        expect(knot.modelContext === context && sailor.knots.first === knot)
        knot.number = 8
        try context.save()
        expectEqual(try ModelContext(context.container).fetch(FetchDescriptor<Knot>()).map(\.number), [8])
    }

    @Test(arguments: Place.allCases)
    func `a deletion is undone, whether it was saved or not`(_ place: Place) throws {
        let (context, manager, sailor) = try context(place)
        context.delete(sailor)
        context.processPendingChanges()
        manager.undo()
        expect(!sailor.isDeleted && !context.hasChanges)
        context.delete(sailor)
        try context.save()
        expect(sailor.modelContext == nil)
        manager.undo()
        expect(sailor.modelContext === context)
        expectEqual(sailor.years, 3)
        try context.save()
        expectEqual(try ModelContext(context.container).fetch(FetchDescriptor<Sailor>()).map(\.name), ["Ada"])
    }

    @Test(arguments: Place.allCases)
    func `the manager of the main context works in the main actor`(_ place: Place) async throws {
        let container = try place.container()
        try await MainActor.run {
            let context = container.mainContext
            context.autosaveEnabled = false
            context.undoManager = CoreData.UndoManager()
            let sailor = Sailor("Ada", badge: 1)
            context.insert(sailor)
            context.processPendingChanges()
            context.undoManager?.undo()
            expect(sailor.modelContext == nil && !context.hasChanges)
            context.undoManager?.redo()
            try context.save()
            expectEqual(try context.fetchCount(FetchDescriptor<Sailor>()), 1)
        }
    }

    @Test(arguments: Place.allCases)
    func `a roll-back empties the manager`(_ place: Place) throws {
        let (context, manager, sailor) = try context(place)
        sailor.name = "Eva"
        context.processPendingChanges()
        context.rollback()
        expect(!manager.canUndo)
        expectEqual(sailor.name, "Ada")
    }
}
