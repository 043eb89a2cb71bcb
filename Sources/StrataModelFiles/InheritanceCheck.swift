/// Checks that the super-entities of a model form trees.
package enum InheritanceCheck {
    /// The most super-entities of an entity in a file, far more than a store has columns for.
    private static let maximumDepth = 256

    /// - Parameter parents: The name of each entity's super-entity, if it has one.
    /// - Throws: An error for a cycle, and for too deep a tree.
    package static func check(_ parents: [String: String]) throws(ModelError) {
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
