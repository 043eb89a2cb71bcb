#if canImport(SwiftDataPostgreSQL)
import Expectations
import Foundation
import SwiftDataPostgreSQL
import TestSupport
import Testing

@Suite("SwiftData: configurations on PostgreSQL", .enabled(if: Place.hasDatabase))
struct PostgreSQLConfigurationTests {
    private let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString)/a.store")

    @Test func `some classes are in a database, and the others in a file`() throws {
        let database = ModelConfiguration(
            "shared",
            schema: Schema([Knot.self]),
            postgreSQL: TestDatabase.url(for: file)
        )
        let local = ModelConfiguration("local", schema: Schema([Crate.self]), url: file)
        let container = try ModelContainer(for: Knot.self, Crate.self, configurations: database, local)
        let context = ModelContext(container)
        let (knot, crate) = (Knot(number: 1), Crate(name: "a"))
        crate.parcels = [Parcel("b", code: 1)]
        context.insert(knot)
        context.insert(crate)
        try context.save()
        expectEqual(try TestDatabase.texts("SELECT count(*)::text FROM knot", in: file), ["1"])
        expectEqual(
            container.configurationName(forStoreIdentifier: crate.persistentModelID.storeIdentifier ?? ""),
            "local"
        )
        let again = ModelContext(try ModelContainer(for: Knot.self, Crate.self, configurations: database, local))
        expectEqual(try again.fetch(FetchDescriptor<Knot>()).map(\.number), [1])
        expectEqual(try again.fetch(FetchDescriptor<Crate>()).first?.parcels.map(\.label), ["b"])
        try again.container.erase()
        expectEqual(try ModelContext(again.container).fetchCount(FetchDescriptor<Knot>()), 0)
    }

    @Test func `a database that may not be written to refuses the save`() throws {
        let url = TestDatabase.url(for: file)
        let writer = ModelContext(
            try ModelContainer(for: Knot.self, configurations: ModelConfiguration(postgreSQL: url))
        )
        writer.insert(Knot(number: 1))
        try writer.save()
        let configuration = ModelConfiguration(postgreSQL: url, allowsSave: false)
        let context = ModelContext(try ModelContainer(for: Knot.self, configurations: configuration))
        try require(try context.fetch(FetchDescriptor<Knot>()).first).number = 2
        do {
            try context.save()
            Issue.record("nothing was thrown")
        } catch {}
        expectEqual(try ModelContext(writer.container).fetch(FetchDescriptor<Knot>()).map(\.number), [1])
    }

    @Test func `the URL of a database in place of a file is refused with a hint`() throws {
        do {
            let configuration = ModelConfiguration(url: TestDatabase.url(for: file))
            _ = try ModelContainer(for: Knot.self, configurations: configuration)
            Issue.record("nothing was thrown")
        } catch SwiftDataError.loadIssueModelContainer {}
    }
}
#endif
