import CoreData
import Expectations
import Foundation
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// Random changes of random models, after which SQL in place and the manager's work object by object must agree.
@Suite("The two ways of a migration")
struct MigrationWaysAgreeTests {
    @Test(arguments: DifferentialSeeds.all)
    func `SQL in place and objects give the same result`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for round in 0..<6 {
            let old = RandomVersions.first(&random)
            let new = RandomVersions.changed(old, &random)
            let (first, second) = (old.sketch, new.sketch)
            let source = ModelSketch.model(first)
            guard NSMigrationPlan(from: source, to: ModelSketch.model(second)).isPossible else { continue }
            let comment = Comment(rawValue: "seed \(seed), round \(round):\n\(first)\n->\n\(second)")
            let store = try AgingStore(.migrating)
            try store.use(ModelSketch.model(first)) { context in
                old.fill(context, &random)
                try context.save()
            }
            let byObjects = Result { try objects(store, first, second) }
            let inPlace = Result { try store.use(ModelSketch.model(second)) { try $0.dump() } }
            switch (inPlace, byObjects) {
            case (.success(let one), .success(let other)): expectEqual(one, other, comment)
            case (.failure, .failure): break
            case (.success, .failure(let error)): Issue.record(error, comment)
            // Object by object, each member gets one of its owners. In place, a store loses nothing silently.
            case (.failure(let error), .success) where error.localizedDescription.contains("several owners"): break
            case (.failure(let error), .success): Issue.record(error, comment)
            }
            let version = (try? inPlace.get()) == nil ? first : second
            try expectEqual(store.problems(ModelSketch.model(version)), [], comment)
        }
    }

    /// The manager's migration of the store, made in another file.
    private func objects(_ store: AgingStore, _ first: String, _ second: String) throws -> [String] {
        let (source, destination) = (ModelSketch.model(first), ModelSketch.model(second))
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.usesStoreSpecificMigrationManager = false
        let place = store.scratch.file("objects.sqlite")
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        defer { if store.kind == .postgreSQL { DatabaseTexts.drop(place) } }
        let type = store.kind.type
        try manager.migrateStore(from: store.url, type: type, mapping: mapping, to: place, type: type)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ModelSketch.model(second))
        try coordinator.addPersistentStore(type: type, at: place)
        defer { for store in coordinator.persistentStores { try? coordinator.remove(store) } }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait { try context.dump() }
    }
}

/// Models with three entities, of which some may inherit from others.
private struct RandomVersions {
    struct Attribute {
        var name: String
        let canonical: String
        var type: String
        var isRequired: Bool
    }

    struct Link {
        var name: String
        let canonical: String
        let owner: Int
        let target: Int
        var isToMany: Bool
        var isOrdered: Bool
        /// The inverse, if the relationship has one.
        var inverse: (name: String, isToMany: Bool, isOrdered: Bool)?
        var isOwnInverse = false
    }

    var names = ["A", "B", "C"]
    /// Whether each entity exists.
    var present = [true, true, true]
    /// The parent of each entity.
    var parents: [Int?] = [nil, nil, nil]
    var attributes: [[Attribute]] = [[], [], []]
    var links: [Link] = []

    static func first(_ random: inout SeededRandom) -> RandomVersions {
        var versions = RandomVersions()
        if Bool.random(using: &random) { versions.parents[1] = 0 }
        for entity in 0..<3 {
            for number in 0..<Int.random(in: 1...3, using: &random) {
                let name = "\(["a", "b", "c"][entity])\(number)"
                let type = ["String", "Int16", "Int32", "Double"].randomElement(using: &random) ?? "String"
                versions.attributes[entity].append(
                    Attribute(name: name, canonical: name, type: type, isRequired: false)
                )
            }
        }
        for number in 0..<Int.random(in: 1...3, using: &random) {
            let isToMany = Bool.random(using: &random)
            let inverseIsToMany = Bool.random(using: &random)
            versions.links.append(
                Link(
                    name: "r\(number)",
                    canonical: "r\(number)",
                    owner: Int.random(in: 0..<3, using: &random),
                    target: Int.random(in: 0..<3, using: &random),
                    isToMany: isToMany,
                    isOrdered: isToMany && Bool.random(using: &random),
                    inverse: Int.random(in: 0..<5, using: &random) == 0
                        ? nil
                        : (
                            name: "i\(number)", isToMany: inverseIsToMany,
                            isOrdered: inverseIsToMany && Bool.random(using: &random)
                        )
                )
            )
        }
        if Int.random(in: 0..<3, using: &random) == 0 {
            // This relationship is its own inverse.
            versions.links.append(
                Link(
                    name: "s",
                    canonical: "s",
                    owner: 0,
                    target: 0,
                    isToMany: Bool.random(using: &random),
                    isOrdered: false,
                    inverse: nil,
                    isOwnInverse: true
                )
            )
        }
        return versions
    }

    /// The same model with some changes, most of which can be inferred.
    static func changed(_ old: RandomVersions, _ random: inout SeededRandom) -> RandomVersions {
        var new = old
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let entity = Int.random(in: 0..<3, using: &random)
            switch Int.random(in: 0..<14, using: &random) {
            case 0: new.names[entity] = old.names[entity] + "x"
            case 1:
                new.attributes[entity].append(
                    Attribute(name: "n\(entity)", canonical: "n\(entity)", type: "String", isRequired: false)
                )
            case 2 where !new.attributes[entity].isEmpty: new.attributes[entity].removeLast()
            case 3 where !new.attributes[entity].isEmpty: new.attributes[entity][0].name += "y"
            case 4:
                for index in new.attributes[entity].indices where new.attributes[entity][index].type == "Int16" {
                    new.attributes[entity][index].type = "Int64"
                }
            case 5 where !new.attributes[entity].isEmpty: new.attributes[entity][0].isRequired = true
            case 6 where !new.links.isEmpty:
                let index = Int.random(in: new.links.indices, using: &random)
                new.links[index].isToMany = true
                new.links[index].isOrdered = Bool.random(using: &random)
            case 7 where !new.links.isEmpty:
                new.links[Int.random(in: new.links.indices, using: &random)].name += "z"
            case 8 where !new.links.isEmpty:
                let index = Int.random(in: new.links.indices, using: &random)
                new.links[index].inverse?.isToMany = true
                new.links[index].inverse?.isOrdered = Bool.random(using: &random)
            case 9: new.parents[1] = nil
            case 10 where !new.links.isEmpty:
                let index = Int.random(in: new.links.indices, using: &random)
                (new.links[index].isToMany, new.links[index].isOrdered) = (false, false)
            case 11 where !new.links.isEmpty:
                new.links.remove(at: Int.random(in: new.links.indices, using: &random))
            case 12:
                new.present[2] = false
                new.links.removeAll { $0.owner == 2 || $0.target == 2 }
            case 13 where !new.links.isEmpty:
                new.links[Int.random(in: new.links.indices, using: &random)].inverse = nil
            default: break
            }
        }
        // This makes the names unique, even if chance has given one twice.
        for entity in 0..<3 {
            var seen: Set<String> = []
            new.attributes[entity] = new.attributes[entity].filter { seen.insert($0.name).inserted }
        }
        return new
    }

    /// The model in the form that ``ModelSketch`` takes.
    ///
    /// The root entities have an attribute `n`, which names objects.
    var sketch: String {
        (0..<3).filter { present[$0] }.map { entity in
            let original = ["A", "B", "C"][entity]
            var head = names[entity]
            if let parent = parents[entity] { head += "(\(names[parent]))" }
            // The identifier comes after the name and its parent.
            let renamed = names[entity] == original ? "" : "{\(original)}"
            var properties = parents[entity] == nil ? ["n String"] : []
            properties += attributes[entity].map { attribute in
                let identifier = attribute.name == attribute.canonical ? "" : "{\(attribute.canonical)}"
                let fallback = attribute.type == "String" ? "=none" : "=7"
                return
                    "\(attribute.name)\(identifier) \(attribute.type)\(attribute.isRequired ? "!\(fallback)" : "")"
            }
            for link in links {
                let arrow = link.isToMany ? link.isOrdered ? "=>>" : "->>" : "->"
                if link.owner == entity {
                    let identifier = link.name == link.canonical ? "" : "{\(link.canonical)}"
                    properties.append(
                        "\(link.name)\(identifier) \(arrow) \(names[link.target])\(link.inverse.map { "/\($0.name)" } ?? (link.isOwnInverse ? "/\(link.name)" : ""))"
                    )
                }
                if let inverse = link.inverse, link.target == entity {
                    let arrow = inverse.isToMany ? inverse.isOrdered ? "=>>" : "->>" : "->"
                    properties.append("\(inverse.name) \(arrow) \(names[link.owner])/\(link.name)")
                }
            }
            return "\(head)\(renamed): \(properties.joined(separator: ", "))"
        }.joined(separator: "\n")
    }

    /// Makes some objects of each entity, with values and relationships.
    ///
    /// Some of these are missing.
    func fill(_ context: NSManagedObjectContext, _ random: inout SeededRandom) {
        var objects: [[NSManagedObject]] = [[], [], []]
        for entity in 0..<3 {
            for number in 0..<Int.random(in: 0...5, using: &random) {
                let object = context.make(names[entity], "\(names[entity])\(number)")
                for attribute in attributes[entity] where Int.random(in: 0..<4, using: &random) > 0 {
                    let value = Int.random(in: 0..<100, using: &random)
                    object.setValue(
                        attribute.type == "String" ? "v\(value)" as Any : value as Any,
                        forKey: attribute.name
                    )
                }
                objects[entity].append(object)
            }
        }
        for link in links {
            let targets = objects[link.target]
            for object in objects[link.owner] where !targets.isEmpty && Int.random(in: 0..<4, using: &random) > 0 {
                let chosen = targets.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))
                if !link.isToMany {
                    object.setValue(chosen.first, forKey: link.name)
                } else if link.isOrdered {
                    object.setValue(NSOrderedSet(array: Array(chosen)), forKey: link.name)
                } else {
                    object.setValue(Set(chosen), forKey: link.name)
                }
            }
        }
    }
}
