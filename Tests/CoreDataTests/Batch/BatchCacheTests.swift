import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration

@Suite("The row cache and batches")
struct BatchCacheTests {
    @Test
    func `what a read brings that began before a hierarchy was forgotten is not kept`() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let layout = try require(coordinator.managedObjectModel.entitiesByName["City"]).layout
        let root = layout.rootNumber
        func rows() -> [Row] {
            let row = layout.defaults.copy()
            row.setKey(1)
            row.setVersion(1)
            return [row]
        }
        let cache = RowCache()
        let first = cache.beginAccess()
        var old = rows()
        cache.offer(&old, root: root, read: first)
        expect(cache.row(1, root: root) != nil && cache.count == 1)
        let commits = cache.commits
        cache.invalidateAll(root: root)
        expect(cache.row(1, root: root) == nil && cache.count == 0 && cache.commits > commits)
        var late = rows()
        cache.offer(&late, root: root, read: first)
        expect(cache.row(1, root: root) == nil)
        expect(!cache.renew(&late, root: root, read: first))
        // Other hierarchies are not concerned, nor is what was read afterwards.
        expect(cache.renew(&late, root: root + 1, read: first))
        cache.endAccess(first)
        let second = cache.beginAccess()
        var new = rows()
        cache.offer(&new, root: root, read: second)
        expect(cache.row(1, root: root) != nil)
        expect(cache.renew(&new, root: root, read: second))
        cache.endAccess(second)
    }

    @Test
    func `what a read brings that began before all rows were forgotten is not kept`() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let layout = try require(coordinator.managedObjectModel.entitiesByName["City"]).layout
        let root = layout.rootNumber
        func rows(_ version: Int64) -> [Row] {
            let row = layout.defaults.copy()
            row.setKey(1)
            row.setVersion(version)
            return [row]
        }
        let cache = RowCache()
        let read = cache.beginAccess()
        let commits = cache.commits
        cache.removeAll()
        expect(cache.commits > commits)
        var old = rows(1)
        cache.offer(&old, root: root, read: read)
        expect(cache.row(1, root: root) == nil && cache.count == 0)
        expect(!cache.renew(&old, root: root, read: read))
        // A removal from before is not forgotten with the rows.
        let save = cache.beginAccess()
        cache.publish(written: [], removed: [(RowName(root: root, key: 1), 1)], by: save)
        cache.endAccess(save)
        cache.removeAll()
        cache.offer(&old, root: root, read: read)
        expect(cache.row(1, root: root) == nil)
        cache.endAccess(read)
        let second = cache.beginAccess()
        var new = rows(2)
        cache.offer(&new, root: root, read: second)
        expect(cache.row(1, root: root) != nil)
        expect(cache.renew(&new, root: root, read: second))
        cache.endAccess(second)
    }
}
