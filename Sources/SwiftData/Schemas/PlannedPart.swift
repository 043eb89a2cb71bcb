import CoreData
import Foundation

/// The classes of a store that has some classes of a schema, in each version of a migration plan.
struct PlannedPart {
    /// The name of the configuration that the models have for the store.
    let name: String
    /// The version hashes that the store has now; empty if there is no store yet.
    let stored: [String: Data]
    /// The names of the classes that the store has in the last version.
    let classes: Set<String>
    /// Whether the version of the store was found among the versions so far.
    private var isFound = false

    init(name: String, stored: [String: Data], classes: Set<String>) {
        (self.name, self.stored, self.classes) = (name, stored, classes)
    }

    /// Adds the configuration of the store to the model of a version; the versions come in their order.
    mutating func add(to model: NSManagedObjectModel) {
        model.setEntities(members(of: model), forConfigurationName: name)
    }

    private mutating func members(of model: NSManagedObjectModel) -> [NSEntityDescription] {
        let (hashes, stored) = (model.entityVersionHashesByName, model.hashesByPresentRule(of: stored))
        if !isFound, !stored.isEmpty, stored.allSatisfy({ hashes[$0.key] == $0.value }) {
            isFound = true
            return model.entities.filter { stored[$0.name ?? ""] != nil }
        }
        // Classes keep their names from version to version. Those that are related, or inherit from each other, are
        // in one store.
        let names = classes.union(stored.keys)
        var open = model.entities.filter { names.contains($0.name ?? "") }
        var members: Set<String> = []
        while let entity = open.popLast() {
            guard members.insert(entity.name ?? "").inserted else { continue }
            open += entity.subentities + [entity.superentity].compactMap(\.self)
            open += entity.relationshipsByName.values.compactMap(\.destinationEntity)
        }
        return model.entities.filter { members.contains($0.name ?? "") }
    }
}
