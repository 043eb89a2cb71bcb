import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Checking a store's history")
struct HistoryVerificationTests {
    private let stack: Stack

    /// Venues of a city that come, change and go.
    init() throws {
        stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        let city = try stack.saveCity()
        var venues: [NSManagedObjectID] = []
        for index in 0..<4 {
            venues.append(
                try stack.write { context in
                    let venue = index % 2 == 0 ? Venue(context: context) : Bar(context: context)
                    venue.name = "\(index)"
                    venue.city = try context.existingObject(with: city) as? City
                    return venue
                }
            )
        }
        try stack.change(venues[0], Venue.self) { venue, _ in venue.city = nil }
        try stack.change(venues[1], Venue.self) { venue, context in context.delete(venue) }
    }

    private func problems() throws -> [String] { try stack.verificationProblems() }

    @Test
    func `a history that leads to the rows is sound, whole or purged`() throws {
        try expectEqual(problems(), [])
        _ = try stack.coordinator.result(.deleteHistory(before: try stack.transactions()[3]))
        try expectEqual(problems(), [])
        try stack.saveCity()
        try expectEqual(problems(), [])
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        try expectEqual(problems(), [])
    }

    @Test(arguments: [
        ("INSERT INTO ZCITY (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT 2, Z_ENT, 1, 'x' FROM ZCITY", "without an insertion"),
        ("DELETE FROM ZVENUE WHERE Z_PK = 3", "missing although in the history"),
        ("DELETE FROM ACHANGE WHERE ZCHANGETYPE = 2", "missing although in the history"),
        ("UPDATE ACHANGE SET ZCHANGETYPE = 2 WHERE ZENTITYPK = 3 AND ZCHANGETYPE = 0", "deleted according"),
        ("UPDATE ACHANGE SET ZCHANGETYPE = 0 WHERE ZCHANGETYPE = 1", "inserted although there"),
        ("UPDATE ACHANGE SET ZCHANGETYPE = 9 WHERE Z_PK = 1", "of no kind"),
        (
            "UPDATE ACHANGE SET ZENTITY = (SELECT MAX(ZENTITY) FROM ACHANGE WHERE ZENTITYPK = 2) WHERE ZENTITYPK = 3",
            "of another entity"
        ),
        ("DELETE FROM ATRANSACTION WHERE Z_PK = 3", "of no transaction"),
        ("DELETE FROM ATRANSACTIONSTRING", "no text of"),
        ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_ENT = 16002", "counter of TRANSACTION"),
        // Here all insertions are lost, so that none of them shows where the history begins.
        ("DELETE FROM ACHANGE WHERE ZCHANGETYPE = 0", "without an insertion"),
        ("DELETE FROM ACHANGE WHERE ZENTITYPK = 1 AND ZCHANGETYPE = 0", "without an insertion"),
        (
            "DELETE FROM ACHANGE; DELETE FROM ATRANSACTION; DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000",
            "without an insertion"
        ),
        ("DELETE FROM ACHANGE WHERE ZCHANGETYPE = 1", "changed without an update"),
    ])
    func `what does not fit is named`(_ damage: String, _ problem: String) throws {
        try stack.sql(damage)
        let problems = try problems()
        expect(problems.contains { $0.contains(problem) }, "\(problems)")
    }

    @Test
    func `a member that leaves a row which is gone is no change of that row`() throws {
        let venueID = try stack.write { context in
            let venue = Venue(context: context)
            venue.name = "doomed"
            venue.tags = [TestSupport.Tag(context: context)]
            return venue
        }
        let stale = stack.context()
        let venue = try stale.performAndWait {
            let venue = try require(try stale.existingObject(with: venueID) as? Venue)
            expectEqual(venue.tags.count, 1)
            return UncheckedSendable(venue)
        }
        try stack.change(venueID, Venue.self) { venue, context in context.delete(venue) }
        try stale.performAndWait {
            venue.value.tags = []
            try stale.save()
        }
        try expectEqual(problems(), [])
    }

    @Test
    func `rows from before the history was begun are taken as they are`() throws {
        let older = try Stack(.sqlite, model: HistoryModels.guide())
        let id = try older.saveCity()
        try older.coordinator.remove(older.store)
        try older.coordinator.addPersistentStore(type: .sqlite, at: older.storeURL, options: Stack.tracking)
        let found = try require(older.coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()))
        try older.change(found, City.self) { city, _ in city.name = "new" }
        try older.saveCity()
        try expectEqual(older.verificationProblems(), [])
    }
}
