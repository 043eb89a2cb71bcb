import CoreData

/// The graph as a context shows it, by the URIs of the objects.
struct GraphPicture: Equatable {
    struct Entry: Equatable {
        var values: [Int64]
        var label: String?
        var parent: URL?
        var children: Set<URL>
        var marks: Set<URL>
    }

    private(set) var nodes: [URL: Entry] = [:]
    private(set) var marks: [URL: Set<URL>] = [:]

    /// Takes the objects from fetches.
    ///
    /// - Parameters:
    ///   - context: The context to fetch in.
    ///   - prefetches: Whether memberships are read for many nodes at a time.
    /// - Throws: Errors of the fetches.
    init(_ context: NSManagedObjectContext, prefetches: Bool = false) throws {
        let nodes = NSFetchRequest<Node>(entityName: "Node")
        let marks = NSFetchRequest<Mark>(entityName: "Mark")
        if prefetches {
            nodes.relationshipKeyPathsForPrefetching = ["children", "marks"]
            marks.relationshipKeyPathsForPrefetching = ["nodes"]
        }
        self.init(try context.fetch(nodes), try context.fetch(marks))
    }

    /// Takes these objects.
    init(_ nodes: [Node], _ marks: [Mark]) {
        func uris(_ objects: Set<some NSManagedObject>) -> Set<URL> {
            Set(objects.map { $0.objectID.uriRepresentation() })
        }
        for node in nodes {
            self.nodes[node.objectID.uriRepresentation()] = Entry(
                values: [node.serial, node.first, node.second],
                label: node.label,
                parent: node.parent?.objectID.uriRepresentation(),
                children: uris(node.children),
                marks: uris(node.marks)
            )
        }
        for mark in marks { self.marks[mark.objectID.uriRepresentation()] = uris(mark.nodes) }
    }

    /// How this differs from the wanted picture, in one sentence; `nil` if it does not.
    func difference(from wanted: GraphPicture) -> String? {
        guard self != wanted else { return nil }
        for (uri, entry) in wanted.nodes where nodes[uri] != entry {
            return "shows \(nodes[uri].map { "\($0)" } ?? "nothing") for \(uri.lastPathComponent), stored is \(entry)"
        }
        for uri in nodes.keys where wanted.nodes[uri] == nil { return "shows \(uri.lastPathComponent), which has gone" }
        for (uri, members) in wanted.marks where marks[uri] != members {
            return
                "shows \(marks[uri]?.count ?? -1) nodes of mark \(uri.lastPathComponent), stored are \(members.count)"
        }
        return "shows other marks than are stored"
    }
}
