import CoreData
import Expectations
import TestSupport
import Testing

/// All stores agree on which values belong to a range.
@Suite("Bounds of ranges")
struct RangeTests {
    private func names(_ format: String, _ stack: Stack) throws -> [String] {
        let context = stack.context()
        return try context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: format)
            return try context.fetch(request).map(\.name).sorted()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a bound belongs to what includes it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for population in Int64(4)...6 { _ = try stack.storeCity("\(population)", population: population) }
        try expectEqual(names("population >= 5", stack), ["5", "6"])
        try expectEqual(names("population > 5", stack), ["6"])
        try expectEqual(names("population <= 5", stack), ["4", "5"])
        try expectEqual(names("population < 5", stack), ["4"])
    }

    // The next code point after U+D7FF is a surrogate, which is no character.
    @Test(arguments: StoreKind.allCases)
    func `a prefix that ends before the surrogates has no others`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for name in ["a", "a\u{D7FF}", "a\u{D7FF}b", "a\u{E000}"] { _ = try stack.storeCity(name) }
        try expectEqual(names("name BEGINSWITH 'a\u{D7FF}'", stack), ["a\u{D7FF}", "a\u{D7FF}b"])
    }
}
