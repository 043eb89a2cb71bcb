import CoreData

extension InterleaveProgram {
    /// Deletes an object.
    ///
    /// Its children then have no parent.
    func delete(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        guard stream.chance(0.5), let (serial, node) = node(place, context, &stream),
            oracle.isClear(serial, in: place), hasOwner(serial, place, context)
        else { return nil }
        note(place, "delete", serial)
        context.delete(node)
        context.processPendingChanges()
        let children = oracle.free(serial, in: place)
        oracle.delete(serial, in: place)
        oracle.entries[place][serial]?.freed = children
        for child in children {
            guard let node = ids[child].flatMap({ context.registeredObject(for: $0) }) as? Node else {
                return "the deletion of \(serial) leaves its child \(child) alone"
            }
            held[place][child] = node
        }
        branches["children-freed", default: 0] += children.count
        return nil
    }

    /// Realises the parent of an object that will lose it, so that it is known on both sides when that was.
    ///
    /// - Returns: Whether the object has no parent, or the parent is there.
    private func hasOwner(_ serial: Int64, _ place: Int, _ context: NSManagedObjectContext) -> Bool {
        guard let parent = oracle.entries[place][serial]?.values[2], parent != 0 else { return true }
        return node(parent, place, context) != nil
    }

    /// Gives an object another parent, or none.
    func relate(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) {
        guard let (child, node) = node(place, context, &stream) else { return }
        let parent = stream.chance(0.3) ? nil : self.node(place, context, &stream)
        guard hasOwner(child, place, context), oracle.relate(child, to: parent?.0 ?? 0, in: place) else { return }
        node.parent = parent?.1
        note(place, "parent \(parent?.0 ?? 0) for", child)
        branches["relates", default: 0] += 1
    }

    /// Reads an object anew, with or without its changes.
    func refresh(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        guard let (serial, node) = node(place, context, &stream), let entry = oracle.entries[place][serial],
            !entry.isInserted, let row = oracle.stored[serial]
        else { return nil }
        // It is not defined what happens if one side of a changed relationship is forgotten.
        let merges = stream.chance(0.5) || entry.changes[2] != nil || oracle.touched[place].contains(serial)
        note(place, merges ? "refresh, merging" : "refresh", serial)
        context.refresh(node, mergeChanges: merges)
        if merges {
            oracle.rebase(serial, row, place)
            if oracle.entries[place][serial]?.isIdle == true { return end() }
            adoptFaults(place)
        } else {
            oracle.entries[place][serial] = nil
            if !node.isFault { return "refresh without merging leaves \(serial) realised" }
        }
        branches["refreshes", default: 0] += 1
        return nil
    }

    /// Compares the objects that a fetch finds.
    func fetch(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        let limit = Int64(stream.below(Int(lastValue) + 1))
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "first >= %@", limit)
        let (certain, open) = oracle.matching(limit, in: place)
        request.fetchBatchSize = run.options.batchSize ?? (stream.chance(0.3) ? 1 + stream.below(4) : 0)
        note(place, "fetch first >=", limit)
        branches["fetches", default: 0] += 1
        do {
            let found = Set(try context.fetch(request).map { serialNumber($0.objectID) })
            guard found.subtracting(open) != certain.subtracting(open) else { return nil }
            return "a fetch finds \(found.sorted()), expected \(certain.sorted())"
        } catch { return "a fetch gave \(describe(error))" }
    }
}
