import CoreData
import Expectations
import Foundation
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataSQLiteStore

@Suite("Health checks on a full volume")
struct FullVolumeTests {
    private let full = DiskSpace.Room(size: 1 << 30, available: 0)

    private func check(_ store: NSPersistentStore, _ room: DiskSpace.Room?) throws {
        let rows = try store.rows
        try require(rows as? SQLiteEngine).check(timeout: 20) { _ in room }
    }

    @Test func `a store that may be written to fails the check with the error of a save`() throws {
        let stack = try Stack(.sqlite)
        defer { withExtendedLifetime(stack) {} }
        let store = stack.coordinator.persistentStores[0]
        for available in [0, 1000] as [Int64] {
            let room = DiskSpace.Room(size: 1 << 30, available: available)
            let error = try require(expectThrows(CocoaError.self) { try check(store, room) })
            expectEqual(error.code, .fileWriteOutOfSpace)
            expectEqual(CoreDataFailure(error), .environment)
            expectEqual(error.userInfo[NSFilePathErrorKey] as? String, stack.storeURL.path)
            expect(error.localizedDescription.contains("no space left on the volume"), "\(error.localizedDescription)")
        }
    }

    @Test func `the folder that is measured is that of the file, also behind a link`() throws {
        let stack = try Stack(.sqlite)
        let link = stack.folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: stack.folder)
        let url = link.appendingPathComponent("store.sqlite")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
        let rows = try store.rows
        var folders: [String] = []
        try require(rows as? SQLiteEngine).check(timeout: 20) {
            folders.append($0)
            return nil
        }
        expectEqual(folders, [stack.storeURL.resolvingSymlinksInPath().deletingLastPathComponent().path])
        withExtendedLifetime(coordinator) {}
    }

    @Test func `room, and a file system that does not say how much it has, pass`() throws {
        let stack = try Stack(.sqlite)
        defer { withExtendedLifetime(stack) {} }
        let store = stack.coordinator.persistentStores[0]
        try check(store, nil)
        try check(store, DiskSpace.Room(size: 0, available: 0))
        try check(store, DiskSpace.Room(size: 1 << 30, available: 1 << 20))
    }

    @Test func `stores that are not written to need no room`() throws {
        let stack = try Stack(.sqlite)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let options: [AnyHashable: Any] = [NSReadOnlyPersistentStoreOption: true]
        try check(coordinator.addPersistentStore(type: .sqlite, at: stack.storeURL, options: options), full)
        withExtendedLifetime(coordinator) {}
        let null = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try check(null.addPersistentStore(type: .sqlite, at: URL(fileURLWithPath: "/dev/null")), full)
        withExtendedLifetime(null) {}
    }

    @Test func `the sizes of file systems are measured`() throws {
        let room = try require(DiskSpace.room(in: FileManager.default.temporaryDirectory.path))
        expect(room.available >= 0 && room.available <= room.size && !room.isUsedUp)
        expectEqual(DiskSpace.room(in: "/nowhere/at/all")?.size, nil)
        // A file system without blocks.
        expectEqual(DiskSpace.room(in: "/proc")?.isUsedUp, false)
    }
}
