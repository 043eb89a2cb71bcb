import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

/// Texts for people name the first elements of a long list, and count the others.
@Suite("Texts about many things")
struct LongListTests {
    @Test(arguments: [2, 19, 20, 21, 45])
    func `an error of a save lists twenty values that are not valid, and has all of them`(_ count: Int) throws {
        let context = try Stack(.memory).context()
        try context.performAndWait {
            for number in 0..<count { City(context: context).population = Int64(number) }
            let error = try require(expectThrows(CocoaError.self) { try context.save() })
            expectEqual(error.code, .validationMultipleErrors)
            let details = try require(error.userInfo[NSDetailedErrorsKey] as? [NSError])
            expectEqual(details.count, count)
            expect(details.allSatisfy { $0.code == CocoaError.Code.validationMissingMandatoryProperty.rawValue })
            var lines = ["\(count) values are not valid:"] + details.prefix(20).map { "- " + $0.localizedDescription }
            if count > 20 { lines.append("- and \(count - 20) more, in NSDetailedErrorsKey") }
            expectEqual(error.localizedDescription.components(separatedBy: "\n"), lines)
        }
    }

    @Test func `values of one object, which are one error of its own, count one by one`() throws {
        let pair = GuideModel.entity("Pair", NSManagedObject.self)
        pair.properties = ["left", "right"].map { GuideModel.attribute($0, .string, optional: false) }
        let model = NSManagedObjectModel()
        model.entities = [pair]
        let context = try Stack(.memory, model: model).context()
        try context.performAndWait {
            for _ in 0..<11 { _ = NSEntityDescription.insertNewObject(forEntityName: "Pair", into: context) }
            let error = try require(expectThrows(CocoaError.self) { try context.save() })
            expectEqual((error.userInfo[NSDetailedErrorsKey] as? [NSError])?.count, 22)
            expect(error.localizedDescription.hasPrefix("22 values are not valid:"))
            expect(error.localizedDescription.hasSuffix("- and 2 more, in NSDetailedErrorsKey"))
        }
    }

    @Test(arguments: StoreKind.allCases, [0, 1, 9, 10, 11, 30])
    func `a description names ten members in their order, and says how many there are`(_ kind: StoreKind, _ count: Int)
        throws
    {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let venue = Venue(context: context)
            venue.photos = (0..<count).map { _ in Photo(context: context) }
            try context.save()
            // They are loaded, since a description asks no store.
            expectEqual(venue.photos.count, count)
            let ids = venue.photos.map { "\($0.objectID)" }
            let expected =
                switch count {
                case 0: "empty"
                case ...10: ids.joined(separator: ", ")
                default: "\(count) objects: \(ids.prefix(10).joined(separator: ", ")), …"
                }
            let line = venue.description.split(separator: "\n").first { $0.contains("photos = ") }
            expectEqual(line.map { $0.trimmingCharacters(in: .whitespaces) }, "photos = \(expected)")
        }
    }

    @Test(arguments: [1, 5, 6, 8])
    func `the check of a store names five rows of one problem, and counts the others`(_ count: Int) throws {
        let stack = try Stack(.sqlite)
        try stack.storeCities((1...8).map { "\($0)" })
        try stack.sql("UPDATE ZCITY SET Z_OPT = NULL WHERE Z_PK <= \(count)")
        let named = (1...min(count, 5)).map(String.init).joined(separator: ", ")
        let rest = count > 5 ? " and \(count - 5) more" : ""
        try expectEqual(stack.problems(), ["ZCITY: row\(count == 1 ? "" : "s") \(named)\(rest) without a version"])
    }
}
