import StrataPredicates
import StrataRows

// Plans answered in memory, over the objects of a context.

extension FetchPlan {
    /// The objects that match, with their unsaved changes.
    func matching(_ objects: [NSManagedObject], _ reader: ObjectReader) throws -> [NSManagedObject] {
        guard let predicate else { return objects }
        if timeLimit == nil, let filter = RowFilter(predicate, layout: layout) {
            return try objects.filter { object in
                // Most objects are loaded. Their row is read without counting references.
                if let words = object.readyWords { return filter.matches(words) }
                let row = try reader.row(of: object)
                return withExtendedLifetime(row) { filter.matches(row.unsafe) }
            }
        }
        var evaluator = ResolvedEvaluator(predicate, reader: reader)
        return try evaluating { try objects.filter { try evaluator.evaluate($0) } }
    }

    /// The objects in the plan's order.
    func sorted(_ objects: [NSManagedObject], _ reader: ObjectReader) throws -> [NSManagedObject] {
        guard let sort else { return objects }
        return try sort.sorted(objects, reader: reader)
    }

    /// Merges two sorted lists into one; if objects are equal, those of the first list come first.
    ///
    /// The second list is the short one: each of its objects is put in its place by bisection.
    ///
    /// - Parameters:
    ///   - first: The long list. Its elements stand for objects.
    ///   - second: Objects in order.
    ///   - reader: Reads the objects.
    ///   - element: Makes the element for an object of the second list.
    ///   - object: The object at a position of the first list.
    /// - Returns: The elements for all objects, in order.
    /// - Throws: Errors of reading the properties that the plan sorts by.
    func merged<Element>(
        _ first: [Element],
        with second: [NSManagedObject],
        reader: ObjectReader,
        as element: (NSManagedObject) -> Element,
        object: (Int) -> NSManagedObject
    ) throws -> [Element] {
        guard let sort, !first.isEmpty, !second.isEmpty else { return first + second.map(element) }
        var result: [Element] = []
        result.reserveCapacity(first.count + second.count)
        var position = 0
        for added in second {
            let keys = try sort.keys(of: added, reader: reader)
            var (low, high) = (position, first.count)
            while low < high {
                let middle = (low + high) / 2
                let order = sort.compare(keys, try sort.keys(of: object(middle), reader: reader))
                if order == .orderedAscending { high = middle } else { low = middle + 1 }
            }
            result.append(contentsOf: first[position..<low])
            result.append(element(added))
            position = low
        }
        result.append(contentsOf: first[position...])
        return result
    }
}
