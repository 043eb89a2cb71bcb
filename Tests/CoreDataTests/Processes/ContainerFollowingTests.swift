import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Containers that cannot follow")
struct ContainerFollowingTests {
    /// A container in a separate folder, which is to follow changes, and the reports of its coordinator.
    private func container(_ folder: SharedFolder, _ descriptions: [NSPersistentStoreDescription])
        -> (container: NSPersistentContainer, reports: Shared<[String]>)
    {
        let reports = Shared<[String]>([])
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        container.persistentStoreDescriptions = descriptions
        container.followsRemoteChanges = true
        container.persistentStoreCoordinator.unreportableErrorHandler = { error, doing in
            reports.update { $0.append("\(doing): \(error.localizedDescription)") }
        }
        return (container, reports)
    }

    private func description(_ folder: SharedFolder, _ name: String, isTracked: Bool?) -> NSPersistentStoreDescription {
        let url = URL(fileURLWithPath: folder.store.folder).appendingPathComponent(name)
        let description = NSPersistentStoreDescription(url: url)
        if let isTracked { description.setOption(NSNumber(value: isTracked), forKey: NSPersistentHistoryTrackingKey) }
        return description
    }

    @Test func `a store that cannot be followed, since an option is switched off, is reported`() throws {
        let folder = try SharedFolder(.sqlite)
        let (container, reports) = container(folder, [description(folder, "a.sqlite", isTracked: false)])
        var failures = 0
        container.loadPersistentStores { _, error in failures += error == nil ? 0 : 1 }
        expect(failures == 0 && container.remoteChangeFollower == nil)
        expectEqual(reports.current.count, 1)
        expectEqual(reports.current.first?.contains("NSPersistentHistoryTrackingKey"), true)
    }

    @Test func `nothing is reported as long as one of the stores can be followed`() throws {
        let folder = try SharedFolder(.sqlite)
        let off = description(folder, "a.sqlite", isTracked: false)
        let (container, reports) = container(folder, [off, description(folder, "b.sqlite", isTracked: nil)])
        container.loadPersistentStores { _, error in expect(error == nil) }
        expect(container.remoteChangeFollower != nil)
        expect(reports.current.isEmpty)
    }

    @Test func `stores that are added in the background are waited for before anything is reported`() async throws {
        let folder = try SharedFolder(.sqlite)
        let descriptions = ["a.sqlite", "b.sqlite"].map { description(folder, $0, isTracked: false) }
        for description in descriptions { description.shouldAddStoreAsynchronously = true }
        let (container, reports) = container(folder, descriptions)
        let (loaded, load) = AsyncStream.makeStream(of: Void.self)
        container.loadPersistentStores { _, _ in load.yield() }
        var count = 0
        for await _ in loaded {
            count += 1
            if count == 2 { break }
        }
        expectEqual(reports.current.count, 1)
    }
}
