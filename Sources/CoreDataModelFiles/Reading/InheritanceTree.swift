import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

/// Builds the inheritance trees of a model that is being read.
package enum InheritanceTree {
    /// Sets the sub-entities of every entity.
    ///
    /// - Parameters:
    ///   - entities: The entities, with names.
    ///   - parents: The name of each entity's super-entity, if it has one.
    /// - Throws: An error for a super-entity that is not among the entities, a cycle, and too deep a tree.
    package static func connect(_ entities: [NSEntityDescription], parents: [String: String]) throws(ModelError) {
        let byName = EntityFacts.byName(entities) { $0.name }
        var children: [String: [NSEntityDescription]] = [:]
        for entity in entities {
            guard let name = entity.name, let parent = parents[name] else { continue }
            guard byName[parent] != nil else {
                throw ModelError(.invalid, entity: name, "its super-entity \"\(parent)\" is not in the model")
            }
            children[parent, default: []].append(entity)
        }
        try InheritanceCheck.check(parents)
        // All children of a parent are set at once: adding them one by one would take quadratic time.
        for (parent, subentities) in children {
            byName[parent]?.subentities = subentities
        }
    }
}
