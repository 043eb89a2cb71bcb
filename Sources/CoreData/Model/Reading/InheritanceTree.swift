import StrataPredicates

/// Makes the inheritance trees of a model that is being read.
enum InheritanceTree {
    /// How many super-entities an entity may have in a file, which is far more than a store has columns for.
    private static let maximumDepth = 256

    /// Sets the sub-entities of every entity.
    ///
    /// - Parameters:
    ///   - entities: The entities, with names.
    ///   - parents: The name of each entity's super-entity, if it has one.
    /// - Throws: An error for a super-entity that is not among the entities, a cycle, and too deep a tree.
    static func connect(_ entities: [NSEntityDescription], parents: [String: String]) throws(ModelError) {
        let byName = EntityFacts.byName(entities) { $0.name }
        var children: [String: [NSEntityDescription]] = [:]
        for entity in entities {
            guard let name = entity.name, let parent = parents[name] else { continue }
            guard byName[parent] != nil else {
                throw ModelError(.invalid, entity: name, "its super-entity \"\(parent)\" is not in the model")
            }
            children[parent, default: []].append(entity)
        }
        try check(parents)
        // Each parent's at once: adding them one by one would take time in the square of their number.
        for (parent, subentities) in children {
            byName[parent]?.subentities = subentities
        }
    }

    private static func check(_ parents: [String: String]) throws(ModelError) {
        var depths: [String: Int] = [:]
        for name in parents.keys.sorted() {
            var path: [String] = []
            var seen = Set<String>()
            var next: String? = name
            while let current = next, depths[current] == nil {
                guard seen.insert(current).inserted else {
                    throw ModelError(.invalid, entity: current, "it inherits from itself (an inheritance cycle)")
                }
                path.append(current)
                next = parents[current]
            }
            var depth = next.flatMap { depths[$0] } ?? -1
            for current in path.reversed() {
                depth += 1
                depths[current] = depth
            }
            guard depth <= maximumDepth else {
                throw ModelError(.invalid, entity: name, "it has more than \(maximumDepth) super-entities")
            }
        }
    }
}
