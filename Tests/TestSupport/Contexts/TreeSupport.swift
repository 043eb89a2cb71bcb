import CoreData

extension NSManagedObjectContext {
    /// A child context with a private queue.
    package func child(_ name: String? = nil) -> NSManagedObjectContext {
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = self
        child.name = name
        return child
    }

    /// Saves this context, inside its scope.
    package func saveAndWait() throws { try performAndWait { try save() } }

    /// The names of all cities that a fetch in this context finds, sorted.
    package func cityNames() throws -> [String] {
        try performAndWait { try all(City.self).map(\.name).sorted() }
    }

    /// Inserts a city into this context.
    @discardableResult
    package func insertCity(_ name: String, population: Int64 = 0) -> NSManagedObjectID {
        performAndWait {
            let city = City(context: self)
            city.name = name
            city.population = population
            return city.objectID
        }
    }

    /// Changes an object in this context, without saving.
    package func edit<Object: NSManagedObject>(
        _ id: NSManagedObjectID,
        _ type: Object.Type,
        _ body: (Object) throws -> Void
    )
        throws
    {
        try performAndWait { try body(try typed(existingObject(with: id))) }
    }

    /// The value that `body` reads from an object in this context.
    package func look<Object: NSManagedObject, Value>(
        _ id: NSManagedObjectID,
        _ type: Object.Type,
        _ body: (Object) throws -> Value
    ) throws -> Value {
        try performAndWait { try body(try typed(existingObject(with: id))) }
    }
}

extension Stack {
    /// A root, a middle and a leaf.
    package func chain() -> (root: NSManagedObjectContext, middle: NSManagedObjectContext, leaf: NSManagedObjectContext)
    {
        let root = context("root")
        let middle = root.child("middle")
        return (root, middle, middle.child("leaf"))
    }

    /// A root and one child.
    package func pair() -> (parent: NSManagedObjectContext, child: NSManagedObjectContext) {
        let parent = context("parent")
        return (parent, parent.child("child"))
    }
}
