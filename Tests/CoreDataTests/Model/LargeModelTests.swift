import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Models that are large, as a hostile one would be")
struct LargeModelTests {
    enum Shape: CaseIterable {
        case deep, wide, roots, joins, columns, derived

        /// The lines of a model file.
        var lines: [String] {
            switch self {
            case .deep:
                (0..<250).map { number in
                    let parent = number == 0 ? "" : " parentEntity=\"E\(number - 1)\""
                    return "<entity name=\"E\(number)\"\(parent)>\(Self.attribute("a\(number)"))</entity>"
                }
            case .wide:
                (0..<5000).map { "<entity name=\"E\($0)\"\($0 == 0 ? "" : " parentEntity=\"E0\"")/>" }
            case .roots: (0..<10_000).map { "<entity name=\"E\($0)\"/>" }
            case .joins:
                ["<entity name=\"Hub\">"]
                    + (0..<2000).map { Self.relationship("r\($0)", "E\($0)", "hubs") } + ["</entity>"]
                    + (0..<2000).map {
                        "<entity name=\"E\($0)\">\(Self.relationship("hubs", "Hub", "r\($0)"))</entity>"
                    }
            case .columns:
                ["<entity name=\"E\">"] + (0..<1900).map { Self.attribute("a\($0)") } + ["</entity>"]
            case .derived:
                ["<entity name=\"E\">", Self.attribute("name")]
                    + (0..<1900).map {
                        "<attribute name=\"a\($0)\" attributeType=\"String\" derived=\"YES\" derivationExpression=\"canonical:(name)\"/>"
                    } + ["</entity>"]
            }
        }

        private static func attribute(_ name: String) -> String {
            "<attribute name=\"\(name)\" optional=\"YES\" attributeType=\"String\"/>"
        }

        private static func relationship(_ name: String, _ destination: String, _ inverse: String) -> String {
            "<relationship name=\"\(name)\" toMany=\"YES\" destinationEntity=\"\(destination)\" "
                + "inverseName=\"\(inverse)\" inverseEntity=\"\(destination)\"/>"
        }
    }

    @Test(arguments: Shape.allCases)
    func `take no more than seconds to be put to use`(_ shape: Shape) throws {
        let lines = shape.lines.joined(separator: "\n")
        var statements = 0
        let time = try processorTime {
            let model = try NSManagedObjectModel.parsing(lines)
            expect(!model.entityVersionHashesByName.isEmpty)
            statements = try SQLiteSchema(for: model).statements.count
        }
        expect(statements > 0)
        // Work that grows with the square of the size takes minutes in a debug build; a busy machine takes three times as long as a quiet one.
        expect(time < .seconds(30), "\(shape) took \(time)")
    }

    @Test func `a line of inheritance has the hashes that each entity has alone`() throws {
        let model = try NSManagedObjectModel.parsing(Shape.deep.lines.prefix(5).joined())
        let hashes = model.entityVersionHashesByName

        expectEqual(hashes.count, 5)
        for entity in model.entities { expectEqual(hashes[entity.name ?? ""], entity.versionHash) }
    }
}
