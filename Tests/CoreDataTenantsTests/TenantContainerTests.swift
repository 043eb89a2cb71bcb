import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

/// The stores of tenants in a folder: which are there, which are open, and what they hold.
@Suite("Tenants")
struct TenantContainerTests {
    private let scratch: ScratchFolder
    private let model = TenantSupport.model()
    private var folder: TenantFolder { TenantFolder(scratch.file("tenants")) }

    init() throws { scratch = try ScratchFolder() }

    private func container(_ change: (inout TenantContainer.Settings) -> Void = { _ in }) -> TenantContainer {
        var settings = TenantContainer.Settings()
        change(&settings)
        return TenantContainer(managedObjectModel: model, at: folder, settings: settings)
    }

    /// Waits until nothing is being opened or closed.
    private func settle(_ tenants: TenantContainer) async throws {
        try await TenantSupport.wait {
            let figures = tenants.statistics()
            return figures.opening == 0 && figures.closing == 0
        }
    }

    // MARK: - Data

    @Test func `each tenant has the data that were saved for it, also after its store was closed`() async throws {
        let tenants = container()
        do {
            let (acme, zeta) = (try await tenants.create("acme"), try tenants.createAndWait("zeta"))
            try TenantSupport.add("a1", "a2", to: acme)
            try TenantSupport.add("z1", to: zeta)
        }
        tenants.closeIdleStores()
        try await settle(tenants)
        expectEqual(tenants.statistics().open, 0)
        expectEqual(tenants.statistics().closed, 2)
        let (acme, zeta) = (try tenants.tenantAndWait("acme"), try await tenants.tenant("zeta"))
        expectEqual(try TenantSupport.texts(acme), ["a1", "a2"])
        expectEqual(try TenantSupport.texts(zeta), ["z1"])
        expectEqual(acme.name, "acme")
        expectEqual(try tenants.names(), ["acme", "zeta"])
    }

    @Test func `a tenant that is not there is an error, and makes no file`() async throws {
        let tenants = container()
        expectEqual(await TenantSupport.code { _ = try await tenants.tenant("acme") }, 260)
        expectEqual(await TenantSupport.code { _ = try tenants.tenantAndWait("acme") }, 260)
        expectEqual(await TenantSupport.code { try await tenants.destroy("acme") }, 260)
        expectEqual(try tenants.names(), [])
        expect(!FileManager.default.fileExists(atPath: folder.url.path))
        expectEqual(tenants.statistics().failed, 2)
        // A failure is not remembered.
        let acme = try await tenants.create("acme")
        expectEqual(try TenantSupport.texts(acme), [])
    }

    @Test func `a tenant is made once`() async throws {
        let tenants = container()
        do { try TenantSupport.add("a1", to: try await tenants.create("acme")) }
        expectEqual(await TenantSupport.code { _ = try await tenants.create("acme") }, 516)
        tenants.closeIdleStores()
        try await settle(tenants)
        expectEqual(await TenantSupport.code { _ = try tenants.createAndWait("acme") }, 516)
        // Another container of the process, or of another process, has not made it either.
        let others = container()
        expectEqual(await TenantSupport.code { _ = try await others.create("acme") }, 516)
        expectEqual(try TenantSupport.texts(try await others.tenant("acme")), ["a1"])
    }

    @Test func `no name leads out of the folder, and each name has a separate file`() async throws {
        let tenants = container()
        let names = [
            "../out", "a/b", ".", "..", "A", "a", "ä", "a%2fb", "a b", "a.sqlite", "名前", "-wal", "a\\b", "a\nb",
            String(repeating: "x", count: 60), String(repeating: "é", count: 30),
        ]
        for name in names {
            let tenant = try await tenants.create(name)
            try TenantSupport.add(name, to: tenant)
        }
        expectEqual(try tenants.names(), names.sorted())
        for name in names { expectEqual(try TenantSupport.texts(try await tenants.tenant(name)), [name]) }
        let outside = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
        expectEqual(outside, ["tenants"])
        for bad in ["", String(repeating: "x", count: 61), "a\0b", String(repeating: "é", count: 31)] {
            expectEqual(await TenantSupport.code { _ = try await tenants.create(bad) }, 514)
            expectEqual(await TenantSupport.code { _ = try await tenants.tenant(bad) }, 514)
            expectEqual(await TenantSupport.code { try await tenants.destroy(bad) }, 514)
        }
    }

    @Test func `names that differ only in the form of their letters are two tenants`() async throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        let tenants = container { $0.mostIdle = 1 }
        do {
            let first = try await tenants.create(composed)
            try TenantSupport.add("a", to: first)
            expectEqual(await TenantSupport.code { _ = try await tenants.tenant(decomposed) }, 260)
            let second = try tenants.createAndWait(decomposed)
            try TenantSupport.add("b", "c", to: second)
            expectEqual(try TenantSupport.texts(first), ["a"])
            expectEqual(try TenantSupport.texts(second), ["b", "c"])
            expect(first.name.utf8.elementsEqual(composed.utf8) && second.name.utf8.elementsEqual(decomposed.utf8))
            expectEqual([tenants.statistics().open, tenants.statistics().inUse], [2, 2])
        }
        try await settle(tenants)
        expectEqual(tenants.statistics().open, 1, "the other one was idle for longer")
        // One of them can go while the other is in use.
        let first = try await tenants.tenant(composed)
        try await tenants.destroy(decomposed)
        expectEqual(try TenantSupport.texts(first), ["a"])
        expectEqual(try tenants.names().map { Array($0.utf8) }, [Array(composed.utf8)])
        let report = try await tenants.migrate()
        expectEqual(report.unchanged.count, 1)
    }

    @Test func `other files of the folder are no tenants`() async throws {
        let tenants = container()
        _ = try await tenants.create("acme")
        for file in ["README", "B.sqlite", "%41.txt", "%.sqlite", "a%2Fb.sqlite", ".sqlite", "x.sqlite-journal"] {
            try Data("x".utf8).write(to: folder.url.appendingPathComponent(file))
        }
        expectEqual(try tenants.names(), ["acme"])
    }

    // MARK: - Opening

    @Test func `a store is opened once for all that ask at the same time`() async throws {
        _ = try await container().create("acme")
        let tenants = container()
        let handles = try await withThrowingTaskGroup(of: Tenant.self) { group in
            for _ in 0..<50 { group.addTask { try await tenants.tenant("acme") } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        expectEqual(handles.count, 50)
        expect(handles.allSatisfy { $0.container === handles[0].container })
        let figures = tenants.statistics()
        expectEqual([figures.opened, figures.open, figures.inUse, figures.failed], [1, 1, 1, 0])
    }

    @Test func `of those that make a tenant at the same time one succeeds, and the others get its error`() async throws
    {
        let tenants = container()
        let codes = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<20 { group.addTask { await TenantSupport.code { _ = try await tenants.create("acme") } } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        expectEqual(codes.filter { $0 == nil }.count, 1)
        expectEqual(codes.filter { $0 == 516 }.count, 19)
    }

    @Test func `one that asks for a tenant while another makes it gets it`() throws {
        let gate = OpeningGate(folder)
        let tenants = TenantContainer(managedObjectModel: model, at: gate)
        let first = onThread { try TenantSupport.add("a1", to: try tenants.createAndWait("acme")) }
        try wait { gate.isAsked }
        let second = onThread { _ = try tenants.tenantAndWait("acme") }
        // This one finds the tenant made.
        let third = onThread {
            do {
                _ = try tenants.createAndWait("acme")
                Issue.record("it was made twice")
            } catch let error as CocoaError where error.code == .fileWriteFileExists {}
        }
        try wait { tenants.waitingCount("acme") >= 3 }
        gate.open()
        for thread in [first, second, third] { try thread.join() }
        expectEqual(tenants.statistics().opened, 1)
    }

    @Test func `one that asks for a missing tenant does not fail the one that makes it afterwards`() throws {
        let gate = OpeningGate(folder)
        let tenants = TenantContainer(managedObjectModel: model, at: gate)
        let code = Locked<Int?>(nil)
        let first = onThread {
            do { _ = try tenants.tenantAndWait("acme") } catch { code.withLock { $0 = (error as NSError).code } }
        }
        try wait { gate.isAsked }
        let second = onThread { try TenantSupport.add("a1", to: try tenants.createAndWait("acme")) }
        try wait { tenants.waitingCount("acme") >= 2 }
        gate.open(2)
        for thread in [first, second] { try thread.join() }
        expectEqual(code.withLock { $0 }, 260)
        gate.open()
        expectEqual(try TenantSupport.texts(try tenants.tenantAndWait("acme")), ["a1"])
    }

    @Test func `a blocked caller gives up after its patience, and the store is then idle`() throws {
        _ = try container().createAndWait("acme")
        let gate = OpeningGate(folder)
        var settings = TenantContainer.Settings()
        settings.patience = .milliseconds(50)
        let tenants = TenantContainer(managedObjectModel: model, at: gate, settings: settings)
        do {
            _ = try tenants.tenantAndWait("acme")
            Issue.record("it did not wait")
        } catch let error as CocoaError where error.code == .persistentStoreTimeout {
            expectEqual(CoreDataFailure(error), .deadline)
        }
        gate.open()
        try wait { tenants.statistics().open == 1 && tenants.statistics().inUse == 0 }
    }

    @Test func `the container of a tenant is set up before its store is opened`() async throws {
        struct Refused: Error {}
        let seen = Locked<[String]>([])
        let tenants = TenantContainer(managedObjectModel: model, at: folder) { container, name in
            seen.withLock { $0.append(name) }
            if name == "bad" { throw Refused() }
            container.persistentStoreDescriptions[0].setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
            // The store is opened before the caller goes on, whatever this says.
            container.persistentStoreDescriptions[0].shouldAddStoreAsynchronously = true
        }
        let acme = try await tenants.create("acme")
        try TenantSupport.add("a1", to: acme)
        expect(acme.container.persistentStoreCoordinator.currentPersistentHistoryToken(fromStores: nil) != nil)
        do {
            _ = try await tenants.create("bad")
            Issue.record("it was opened")
        } catch is Refused {}
        expectEqual(try tenants.names(), ["acme"])
        expectEqual(seen.withLock { $0 }, ["acme", "bad"])
    }

    // MARK: - Idle stores

    @Test func `beyond the most idle stores the one that was idle for longest is closed`() async throws {
        let names = ["a", "b", "c", "d"]
        do { for name in names { _ = try await container().create(name) } }
        let tenants = container { $0.mostIdle = 2 }
        func use(_ name: String) async throws { _ = try await tenants.tenant(name).name }
        for name in ["a", "b"] { try await use(name) }
        try await use("a")
        expectEqual(tenants.statistics().opened, 2)
        // b was idle for longer than a, though a was opened first.
        try await use("c")
        try await settle(tenants)
        expectEqual([tenants.statistics().open, tenants.statistics().closed], [2, 1])
        try await use("a")
        expectEqual(tenants.statistics().opened, 3)
        try await use("b")
        expectEqual(tenants.statistics().opened, 4)
    }

    @Test func `a store in use is not closed, however many there are`() async throws {
        let tenants = container {
            $0.mostIdle = 0
            $0.idleTime = .zero
        }
        var handles: [Tenant] = []
        for index in 0..<12 { handles.append(try await tenants.create("t\(index)")) }
        let again = try await tenants.tenant("t3")
        for (index, handle) in handles.enumerated() { try TenantSupport.add("\(index)", to: handle) }
        expectEqual([tenants.statistics().open, tenants.statistics().inUse], [12, 12])
        tenants.closeIdleStores()
        expectEqual(tenants.statistics().open, 12)
        handles = []
        try await TenantSupport.wait { tenants.statistics().closed == 11 }
        try await settle(tenants)
        expectEqual([tenants.statistics().open, tenants.statistics().inUse], [1, 1])
        expectEqual(try TenantSupport.texts(again), ["3"])
        expectEqual(try TenantSupport.texts(try await tenants.tenant("t7")), ["7"])
        try await tenants.close()
    }

    @Test func `an idle store is closed after its time`() async throws {
        let tenants = container { $0.idleTime = .milliseconds(30) }
        do { _ = try await (tenants.create("a"), tenants.create("b")) }
        try await TenantSupport.wait { tenants.statistics().closed == 2 }
        // The clock runs for the next ones too.
        do { _ = try await tenants.tenant("a") }
        try await TenantSupport.wait { tenants.statistics().closed == 3 }
    }

    @Test func `one that asks while the store is closed gets it opened again`() async throws {
        let tenants = container { $0.mostIdle = 0 }
        do { try TenantSupport.add("0", to: try await tenants.create("acme")) }
        for round in 1...40 { try TenantSupport.add("\(round)", to: try await tenants.tenant("acme")) }
        expectEqual(try TenantSupport.texts(try await tenants.tenant("acme")).count, 41)
        try await settle(tenants)
        let figures = tenants.statistics()
        expectEqual(figures.opened, figures.closed + figures.open)
    }

    @Test func `contexts of a store that was closed keep their changes and get an error`() async throws {
        let tenants = container { $0.mostIdle = 0 }
        let context: NSManagedObjectContext
        do {
            let acme = try await tenants.create("acme")
            context = acme.container.newBackgroundContext()
        }
        try await settle(tenants)
        let code: Int? = context.performAndWait {
            let note = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
            note.setValue("late", forKey: "text")
            do {
                try context.save()
                return nil
            } catch {
                return (error as NSError).code
            }
        }
        expectEqual(code, 134_070)
        expect(context.performAndWait { context.hasChanges })
        expectEqual(try TenantSupport.texts(try await tenants.tenant("acme")), [])
    }

    @Test func `many threads use few tenants, and no save is lost`() async throws {
        let tenants = container {
            $0.mostIdle = 1
            $0.mostAtOnce = 2
        }
        for index in 0..<4 { _ = try await tenants.create("t\(index)") }
        let threads = (0..<8).map { thread in
            onThread {
                for round in 0..<12 {
                    let tenant = try tenants.tenantAndWait("t\((thread + round) % 4)")
                    try TenantSupport.add("\(thread) \(round)", to: tenant)
                }
            }
        }
        for thread in threads { try thread.join() }
        var found: [String] = []
        for index in 0..<4 { found += try TenantSupport.texts(try await tenants.tenant("t\(index)")) }
        expectEqual(found.sorted(), (0..<8).flatMap { thread in (0..<12).map { "\(thread) \($0)" } }.sorted())
        try await settle(tenants)
        let figures = tenants.statistics()
        expect(figures.open <= 2)
        expectEqual(figures.opened, figures.closed + figures.open)
    }

    // MARK: - Destroying

    @Test func `a tenant that is used is not destroyed`() async throws {
        let tenants = container()
        let acme = try await tenants.create("acme")
        try TenantSupport.add("a1", to: acme)
        expectEqual(await TenantSupport.code { try await tenants.destroy("acme") }, 134_070)
        expectEqual(try TenantSupport.texts(acme), ["a1"])
        expectEqual(try tenants.names(), ["acme"])
    }

    @Test func `a tenant is destroyed with its files, and can be made again`() async throws {
        let tenants = container()
        do {
            let acme = try await tenants.create("acme")
            try TenantSupport.add("a1", data: Data(repeating: 1, count: 300_000), to: acme)
            try TenantSupport.add("z1", to: try await tenants.create("zeta"))
        }
        try await tenants.destroy("acme")
        expectEqual(try tenants.names(), ["zeta"])
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        expect(!files.contains { $0.contains("acme") }, "\(files)")
        expectEqual(await TenantSupport.code { _ = try await tenants.tenant("acme") }, 260)
        let acme = try await tenants.create("acme")
        expectEqual(try TenantSupport.texts(acme), [])
        expectEqual(try TenantSupport.texts(try await tenants.tenant("zeta")), ["z1"])
    }

    @Test func `a tenant whose object was released is not in use any more`() async throws {
        let tenants = container()
        for round in 0..<50 {
            _ = try await tenants.create("t\(round)")
            expectEqual(tenants.statistics().inUse, 0)
            try await tenants.destroy("t\(round)")
            _ = try tenants.createAndWait("t\(round)")
            try await tenants.destroy("t\(round)")
        }
        expectEqual(try tenants.names(), [])
    }

    // MARK: - Closing

    @Test func `after the end no tenant is given out, and what was saved is there`() async throws {
        let tenants = container()
        let acme = try await tenants.create("acme")
        do { _ = try await tenants.create("idle") }
        try TenantSupport.add("a1", to: acme)
        try await tenants.close()
        expectEqual(tenants.statistics().open, 0)
        expectEqual(await TenantSupport.code { _ = try await tenants.tenant("acme") }, 134_070)
        expectEqual(await TenantSupport.code { _ = try await tenants.create("new") }, 134_070)
        expectEqual(await TenantSupport.code { try await tenants.destroy("idle") }, 134_070)
        expectEqual(await TenantSupport.code { _ = try await tenants.migrate() }, 134_070)
        expectEqual(await TenantSupport.code { try TenantSupport.add("late", to: acme) }, 134_070)
        try await tenants.close()
        expectEqual(try TenantSupport.texts(try await container().tenant("acme")), ["a1"])
    }

    @Test func `those who wait for a store get an error when all is closed`() async throws {
        _ = try await container().create("acme")
        let gate = OpeningGate(folder)
        let tenants = TenantContainer(managedObjectModel: model, at: gate)
        let code = Locked<Int?>(nil)
        let caller = onThread {
            do { _ = try tenants.tenantAndWait("acme") } catch { code.withLock { $0 = (error as NSError).code } }
        }
        try await TenantSupport.wait { gate.isAsked }
        async let closing: Void = tenants.close()
        try await TenantSupport.wait { tenants.isClosed }
        gate.open()
        try await closing
        try caller.join()
        expectEqual(code.withLock { $0 }, 134_070)
        try await settle(tenants)
    }
}
