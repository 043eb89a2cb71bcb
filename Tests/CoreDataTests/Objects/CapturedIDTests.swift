import CoreData
import Expectations
import TestSupport
import Testing

/// What a program notices of IDs that become permanent in place.
@Suite("IDs captured before a save")
struct CapturedIDTests {
    @Test(arguments: StoreKind.allCases)
    func `an ID captured before a save is permanent after it, and is still found in collections`(_ kind: StoreKind)
        throws
    {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let captured = city.objectID
            var names = [captured: "Porto"]
            var seen: Set = [captured]
            expect(captured.isTemporaryID)
            try context.save()
            expect(!captured.isTemporaryID && captured == city.objectID)
            expect(names[city.objectID] == "Porto" && seen.contains(city.objectID))
            expect(seen.insert(city.objectID).inserted == false && seen.remove(captured) != nil)
            // Filed under the new ID, and then removed under the old one: both are the same.
            names[city.objectID] = "filed"
            names[captured] = nil
            expect(names.isEmpty)
        }
    }
}
