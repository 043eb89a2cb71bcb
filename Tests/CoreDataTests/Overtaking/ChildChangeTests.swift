import CoreData
import Expectations
import TestSupport
import Testing

@Suite("A child's save is reported once")
struct ChildChangeTests {
    @Test(arguments: StoreKind.allCases)
    func `the next message of a child's changes is of its next save`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (_, child) = stack.pair()
        var changes = child.changes.makeAsyncIterator()
        for round in 0..<50 {
            // If a save were reported twice, then the waiting iterator would get only the first report here, and the
            // second one in the next round.
            async let id = child.perform {
                let city = City(context: child)
                city.name = "city \(round)"
                try child.save()
                return city.objectID
            }
            let change = try require(await changes.next())
            let inserted = try await id
            expectEqual(change.insertedObjectIDs, [inserted])
        }
    }
}
