import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Texts that look the same")
struct SpellingTests {
    @Test(arguments: StoreKind.allCases)
    func `a text in another spelling of the same letters is a change, and saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("\u{E9}")
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "e\u{301}"
            expectEqual(Array(city.changedValues().keys), ["name"])
            try context.save()
        }
        try expectEqual(stack.read(id, City.self) { $0.name.unicodeScalars.count }, 2)
    }
}
