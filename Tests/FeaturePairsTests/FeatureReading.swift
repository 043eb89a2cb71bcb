import CoreData
import TestSupport

extension FeatureOperation {
    /// Kinds of fetches: they change nothing, and their answers are those of the reference.
    static let readings: [FeatureOperation] = [
        reading("questions") { world in
            let context = world.context
            for question in FeatureQuestion.all(world.reference.seen.records[world.focus], world.focus) {
                let request = NSFetchRequest<NSManagedObject>(entityName: question.entity)
                request.predicate = question.predicate
                let (count, fetched) = try context.performAndWait {
                    (try context.count(for: request), try context.fetch(request).count)
                }
                let wanted = question.isTrue ? 1 : 0
                if count != wanted || fetched != wanted {
                    throw FeatureDifference("\(question.predicate) counts \(count) and finds \(fetched)")
                }
            }
        },
        reading("prefetching") { world in
            try world.fetch {
                $0.relationshipKeyPathsForPrefetching = ["parts", "tags.marked", "owner.belongings", "friends"]
            }
        },
        reading("refetching") { world in try world.fetch { $0.shouldRefreshRefetchedObjects = true } },
        reading("a batched fetch") { world in try world.fetch { $0.fetchBatchSize = 2 } },
        reading("whole objects") { world in try world.fetch { $0.returnsObjectsAsFaults = false } },
        reading("IDs") { world in
            let context = world.context
            let count = try context.performAndWait {
                let request = NSFetchRequest<NSManagedObjectID>(entityName: "Item")
                request.resultType = .managedObjectIDResultType
                request.predicate = NSPredicate(format: "serial == %d", world.focus)
                return try context.fetch(request).count
            }
            if count != (world.reference.seen.records[world.focus] == nil ? 0 : 1) {
                throw FeatureDifference("\(count) IDs")
            }
        },
        FeatureOperation("dictionaries") { world in
            guard world.reference.pending.isEmpty else { return false }
            let request = NSFetchRequest<NSDictionary>(entityName: "Item")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["serial", "number", "owner.serial"]
            request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
            let context = world.context
            let rows = try context.performAndWait {
                try context.fetch(request).map { row in
                    ["serial", "number", "owner.serial"].map { "\(row[$0] ?? "-")" }.joined(separator: " ")
                }
            }
            let wanted = world.reference.stored.all("Item").map { serial in
                let owner = world.reference.stored.links(serial, "owner").first.map(String.init) ?? "-"
                return "\(serial) \(world.reference.stored.records[serial]?.values["number"] ?? "-") \(owner)"
            }
            if rows != wanted { throw FeatureDifference("dictionaries \(rows), expected \(wanted)") }
            return true
        },
        reading("rows") { world in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
            request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
            let batches = world.context.rows(for: request, batchSize: 2)
            let (found, done) = (Shared<Result<[Int], any Error>>(.success([])), DispatchSemaphore(value: 0))
            Task {
                do {
                    var serials: [Int] = []
                    for try await batch in batches { serials += batch.compactMap { $0["serial"] as? Int } }
                    let all = serials
                    found.update { $0 = .success(all) }
                } catch { found.update { $0 = .failure(error) } }
                done.signal()
            }
            if done.wait(timeout: .now() + 30) != .success { throw FeatureDifference("rows do not end") }
            let serials = try found.current.get()
            let wanted = world.reference.stored.all("Item")
            if serials != wanted { throw FeatureDifference("rows of \(serials), expected \(wanted)") }
        },
        reading("an asynchronous fetch") { world in
            let wanted = world.reference.seen.all("Item")
            let serials = try world.fetchAsynchronously(isCancelled: false)
            if serials != wanted { throw FeatureDifference("it finds \(serials), expected \(wanted)") }
        },
        reading("a cancelled fetch") { world in
            let serials = try world.fetchAsynchronously(isCancelled: true)
            if !serials.isEmpty { throw FeatureDifference("a cancelled fetch finds \(serials)") }
        },
    ]

    private static func reading(_ name: String, _ read: @escaping @Sendable (FeatureWorld) throws -> Void)
        -> FeatureOperation
    {
        FeatureOperation(name) { world in
            try read(world)
            return true
        }
    }
}

extension FeatureWorld {
    /// Fetches all items, and compares their values.
    fileprivate func fetch(_ setUp: (NSFetchRequest<NSManagedObject>) -> Void) throws {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
        request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
        setUp(request)
        let rows = try context.performAndWait {
            try context.fetch(request).map { item in
                let parts = item.value(forKey: "parts") as? NSOrderedSet
                let values = ["serial", "number"].map { "\(item.value(forKey: $0) ?? "-")" }
                return "\(values.joined(separator: " ")) \(parts?.count ?? -1)"
            }
        }
        let wanted = reference.seen.all("Item").map { serial in
            let number = reference.seen.records[serial]?.values["number"] ?? "-"
            return "\(serial) \(number) \(reference.seen.links(serial, "parts").count)"
        }
        if rows != wanted { throw FeatureDifference("the fetch finds \(rows), expected \(wanted)") }
    }

    /// Fetches all items without the thread, and waits for them.
    fileprivate func fetchAsynchronously(isCancelled: Bool) throws -> [Int] {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
        request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
        let (found, done) = (Shared<Result<[Int], any Error>>(.success([])), DispatchSemaphore(value: 0))
        let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in
            let serials = (result.finalResult ?? []).map { $0.value(forKey: "serial") as? Int ?? -1 }
            let outcome: Result<[Int], any Error> = result.operationError.map { .failure($0) } ?? .success(serials)
            found.update { $0 = outcome }
            done.signal()
        }
        try context.performAndWait {
            let result = try context.execute(fetch) as? NSAsynchronousFetchResult<NSManagedObject>
            if isCancelled { result?.cancel() }
        }
        if done.wait(timeout: .now() + 30) != .success { throw FeatureDifference("an asynchronous fetch does not end") }
        return try found.current.get()
    }
}

/// A condition on an item, and whether it holds.
struct FeatureQuestion {
    let entity: String
    let predicate: NSPredicate
    let isTrue: Bool

    /// Questions about attributes and relationships; some hold, and some do not.
    static func all(_ item: FeatureState.Record?, _ serial: Int) -> [FeatureQuestion] {
        func asked(_ format: String, _ arguments: [Any], _ isTrue: Bool, of entity: String = "Item")
            -> FeatureQuestion
        {
            let predicate = NSPredicate(format: "serial == %d AND (\(format))", argumentArray: [serial] + arguments)
            return FeatureQuestion(entity: entity, predicate: predicate, isTrue: isTrue && item != nil)
        }
        let (number, text) = (Int(item?.values["number"] ?? "") ?? -1, item?.values["text"])
        let (parts, tags) = (item?.links["parts"] ?? [], item?.links["tags"] ?? [])
        let owner = item?.links["owner"]?.first
        return [
            asked("number == %@", [number], true, of: "Thing"), asked("number > %@", [number], false),
            asked("text == %@", [text ?? "none"], text != nil), asked("text == nil", [], text == nil),
            asked("owner.serial == %@", [owner ?? -1], owner != nil),
            asked("ANY parts.serial == %@", [parts.last ?? -1], !parts.isEmpty),
            asked("parts.@count == %@", [parts.count], true),
            asked("SUBQUERY(tags, $t, $t.serial == %@).@count == 1", [tags.last ?? -1], !tags.isEmpty),
            asked("NONE tags.serial == %@", [tags.first ?? -1], tags.isEmpty),
            asked("owner.belongings.@count > 0", [], owner != nil),
        ]
    }
}
