import CoreData
import Expectations
import StrataInspector
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations

@Suite("Models of classes")
struct ClassModelTests {
    private static func guide() throws -> NSManagedObjectModel {
        try NSManagedObjectModel(for: Bar.self, Town.self, versionIdentifier: "1.0")
    }

    /// The statements for a model, which can be changed afterwards.
    private static func schema(_ model: NSManagedObjectModel) throws -> [String] {
        try SQLiteSchema(for: try require(NSManagedObjectModel(byMerging: [model]))).statements
    }

    // MARK: - The same as a file

    @Test("a model of classes equals the same model from a file: hashes, tables and all the rest")
    func equalsFile() throws {
        let model = try Self.guide()
        let file = try NSManagedObjectModel.parsing(
            """
            <entity name="Place" representedClassName="ModelClassesTests.Place" isAbstract="YES" versionHashModifier="2">
                <attribute name="name" attributeType="String" minValueString="2" maxValueString="40" regularExpressionString="[A-Za-z ]*"/>
                <attribute name="sortName" optional="YES" attributeType="String" derived="YES" derivationExpression="canonical:(name)"/>
                <attribute name="code" optional="YES" attributeType="UUID" preserveAfterDeletion="YES"/>
                <attribute name="price" attributeType="Double" defaultValueString="12.5" minValueString="0" maxValueString="1000" indexed="YES"/>
                <attribute name="stars" attributeType="Integer 16" defaultValueString="2"/>
                <attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
                <attribute name="opened" optional="YES" attributeType="Date" minDateTimeInterval="0" elementID="since"/>
                <attribute name="hours" attributeType="Transformable" valueTransformerName="Codable.ModelClassesTests.Hours"/>
                <attribute name="winterHours" optional="YES" attributeType="Transformable" valueTransformerName="Codable.ModelClassesTests.Hours"/>
                <attribute name="tags" attributeType="Transformable"/>
                <attribute name="address" optional="YES" attributeType="Composite" composite="Address"/>
                <attribute name="scratch" optional="YES" transient="YES" attributeType="Integer 32"/>
                <attribute name="floor" optional="YES" attributeType="Integer 16"/>
                <relationship name="city" optional="YES" maxCount="1" deletionRule="Deny" destinationEntity="City" inverseName="places" inverseEntity="City"/>
                <relationship name="near" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Place" inverseName="near" inverseEntity="Place"/>
                <fetchIndex name="byPrice" partialIndexPredicate="price &gt; 0">
                    <fetchIndexElement property="price" type="Binary" order="descending"/>
                    <fetchIndexElement property="name" type="Binary" order="ascending"/>
                </fetchIndex>
                <uniquenessConstraints>
                    <uniquenessConstraint><constraint value="code"/></uniquenessConstraint>
                    <uniquenessConstraint><constraint value="name"/><constraint value="city"/></uniquenessConstraint>
                </uniquenessConstraints>
            </entity>
            <entity name="Bar" representedClassName="ModelClassesTests.Bar" parentEntity="Place" elementID="Pub">
                <attribute name="beers" attributeType="Integer 32" defaultValueString="3"/>
            </entity>
            <entity name="City" representedClassName="ModelClassesTests.Town">
                <attribute name="name" attributeType="String"/>
                <relationship name="places" toMany="YES" minCount="1" maxCount="9" deletionRule="Cascade" ordered="YES" \
            destinationEntity="Place" inverseName="city" inverseEntity="Place"/>
                <relationship name="twin" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="City"/>
                <fetchedProperty name="bars" optional="YES">
                    <fetchRequest name="f" entity="Bar" predicateString="city == $FETCH_SOURCE AND beers &gt; 2"/>
                </fetchedProperty>
            </entity>
            <composite name="Address">
                <attribute name="street" attributeType="String" defaultValueString="Main"/>
                <attribute name="number" optional="YES" attributeType="Integer 16"/>
                <attribute name="spot" optional="YES" attributeType="Composite" composite="Spot"/>
            </composite>
            <composite name="Spot">
                <attribute name="x" attributeType="Double" defaultValueString="0"/>
                <attribute name="y" attributeType="Double" defaultValueString="0"/>
                <attribute name="stars" attributeType="Integer 16" defaultValueString="0"/>
            </composite>
            <configuration name="Guide"><memberEntity name="Place"/></configuration>
            """,
            attributes: "userDefinedModelVersionIdentifier=\"1.0\""
        )

        for name in ["Place", "Bar", "City"] {
            let (mine, theirs) = (try model.entity(name), try file.entity(name))
            expectEqual(mine.versionHash, theirs.versionHash)
            for property in theirs.ownProperties where property.name != "hours" {
                let found = try require(mine.propertiesByName[property.name])
                expectEqual(found, property, "\(name).\(property.name)")
            }
            expectEqual(mine.ownProperties.count, theirs.ownProperties.count)
            expectEqual(mine.indexes, theirs.indexes)
        }
        expectEqual(model.versionChecksum, file.versionChecksum)
        expectEqual(model.versionIdentifiers, file.versionIdentifiers)
        expectEqual(model.entities(forConfigurationName: "Guide")?.map(\.name), ["Place"])
        // The default value of a transformable attribute has no place in a file.
        model.entitiesByName["Place"]?.attributesByName["hours"]?.defaultValue = nil
        expectEqual(model, file)
        try expectEqual(Self.schema(model), Self.schema(file))
        try expectEqual(model.entity("Place").userInfo as? [String: String], ["color": "red"])
        try expect(
            model.entity("Place").relationshipsByName["near"]?.userInfo as? [String: String] == ["kind": "peer"]
        )
    }

    @Test("the text that is written of a model compiles to the same model, all that a file can say")
    func generated() throws {
        let file = try ModelFixtures.everythingModel()
        let model = try Everything.model()

        expectEqual(model.entityVersionHashesByName, file.entityVersionHashesByName)
        try expectEqual(Self.schema(model), Self.schema(file))
        for entity in model.entities {
            let other = try file.entity(try require(entity.name))
            entity.managedObjectClassName = other.managedObjectClassName
            other.ownProperties.compactMap { $0 as? NSAttributeDescription }.forEach { attribute in
                // The class of a transformable value need not be in the program.
                if attribute.type == .transformable { attribute.attributeValueClassName = nil }
            }
            expectEqual(entity.userInfo as? [String: String], other.userInfo as? [String: String])
        }
        expectEqual(model, file)
    }

    @Test("the text is still what is written")
    func text() throws {
        let scratch = try ScratchFolder()
        let contents = scratch.file("everything.xml")
        let xml = "<model userDefinedModelVersionIdentifier=\"3.1\">\(ModelFixtures.everything)</model>"
        try Data(xml.utf8).write(to: contents)
        var lines: [String] = []
        let code = StrataCommand.run(["model", contents.path, "--as", "swift"]) {
            lines.append($0)
        } complain: { _ in
        }

        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Generated/Everything.swift")
        expectEqual(code, .success)
        expectEqual(lines.joined(separator: "\n") + "\n", (try String(contentsOf: file, encoding: .utf8)))
    }

    // MARK: - Objects

    @Test("objects of a model of classes are saved and read", arguments: StoreKind.allCases)
    func objects(_ kind: StoreKind) throws {
        let scratch = try ScratchFolder()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try Self.guide())
        try coordinator.addPersistentStore(
            ofType: kind.type.rawValue,
            configurationName: nil,
            at: kind == .memory ? nil : scratch.file("guide.sqlite"),
            options: nil
        )
        defer {
            for store in coordinator.persistentStores { try? coordinator.remove(store) }
            DatabaseTexts.drop(scratch.file("guide.sqlite"))
        }
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let oslo = Town(context: context)
            oslo.name = "Oslo"
            let bar = Bar(context: context)
            bar.name = "Anker"
            expect(bar.price == 12.5 && bar.stars == .two && bar.beers == 3)
            expect(bar.hours == Hours(opens: 9, closes: 17) && bar.winterHours == nil)
            expect(bar.address == nil && bar.floor == 0)
            bar.address = Address()
            expectEqual(bar.address, Address(street: "Main", number: nil, spot: nil))
            bar.city = oslo
            bar.hours = Hours(opens: 10, closes: 12)
            bar.winterHours = Hours(opens: 1, closes: 2)
            bar.tags = ["a", "b"]
            bar.address = Address(street: "Storgata", number: 7, spot: Spot(x: 1, y: 2, stars: .three))
            bar.openedOn = Date(timeIntervalSinceReferenceDate: 5)
            try context.save()
        }
        try context.performAndWait {
            context.reset()
            let request = NSFetchRequest<Place>(entityName: "Place")
            request.predicate = NSPredicate(format: "address.street == 'Storgata' AND address.spot.x == 1")
            let bar = try require(try context.fetch(request).first as? Bar)
            expect(bar.hours == Hours(opens: 10, closes: 12) && bar.winterHours == Hours(opens: 1, closes: 2))
            expect(bar.tags == ["a", "b"] && bar.stars == .two)
            expectEqual(bar.address, Address(street: "Storgata", number: 7, spot: Spot(x: 1, y: 2, stars: .three)))
            expect(bar.city?.places == [bar] && bar.city?.bars == [bar])
            expectEqual(bar.openedOn, Date(timeIntervalSinceReferenceDate: 5))
            if kind != .memory { expectEqual(bar.sortName, "anker") }
            bar.address = nil
            bar.winterHours = nil
            try context.save()
            context.refresh(bar, mergeChanges: false)
            expect(bar.address == nil && bar.winterHours == nil)
            request.predicate = NSPredicate(format: "address == nil")
            try expectEqual(context.fetch(request), [bar])
        }
    }

    @Test("limits, deletion rules and counts take effect")
    func rules() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try Self.guide())
        try coordinator.addPersistentStore(ofType: NSInMemoryStoreType, configurationName: nil, at: nil, options: nil)
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        context.performAndWait {
            let oslo = Town(context: context)
            oslo.name = "Oslo"
            let bar = Bar(context: context)
            bar.tags = []
            bar.city = oslo
            func code() -> CocoaError.Code? {
                do {
                    try context.save()
                    return nil
                } catch { return (error as? CocoaError)?.code }
            }
            bar.name = "x"
            expectEqual(code()?.rawValue, NSValidationStringTooShortError)
            bar.name = "12"
            expectEqual(code()?.rawValue, NSValidationStringPatternMatchingError)
            bar.name = "Anker"
            bar.price = -1
            expectEqual(code()?.rawValue, NSValidationNumberTooSmallError)
            bar.price = 1
            expectEqual(code(), nil)
            context.delete(bar)
            expectEqual(code()?.rawValue, NSValidationRelationshipDeniedDeleteError)
        }
    }
}
