import CoreData

extension BatchProgram {
    // MARK: - Inserts

    func insert(_ place: Int, _ stream: inout SeededStream) throws -> String? {
        let policy = stream.pick(BatchOracle.Policy.allCases)
        var given = (0..<stream.pick([0, 1, 3, 8, 40])).map { _ in fresh(&stream) }
        var victims = oracle.codes.keys.sorted()
        for index in given.indices where stream.chance(0.15) {
            if policy == .error || policy == .storeTrump, index > 0, stream.chance(0.3) {
                // The code of an earlier row in the same request.
                given[index].code = given[stream.below(index)].code
            } else if !victims.isEmpty {
                given[index].code = victims.remove(at: stream.below(victims.count))
            }
        }
        let request = request(for: given, contexts[place], &stream)
        request.resultType = stream.pick([.statusOnly, .objectIDs, .count])
        note("inserts \(given.count) rows with codes \(given.map(\.code)) under \(policy)")
        let context = contexts[place]
        let expected = oracle.insert(given, policy)
        let result: Any?
        do {
            context.performAndWait { context.mergePolicy = Self.mergePolicy(policy) }
            defer { context.performAndWait { context.mergePolicy = NSMergePolicy.error } }
            let done: NSBatchInsertResult? = try execute(request, place)
            result = done?.result
        } catch let error as CocoaError where error.code == .managedObjectConstraintMerge {
            count("refused")
            return expected == nil ? nil : "an insert is refused that is to succeed: \(describe(error))"
        } catch { return "an insert gave \(describe(error))" }
        guard let (new, changed) = expected else { return "an insert succeeds that is to be refused" }
        if let trouble = try learnIDs() { return trouble }
        count("rows", new.count + changed.count)
        switch request.resultType {
        case .statusOnly: return result as? Bool == true ? nil : "the status of an insert is \(result ?? "nothing")"
        case .count: return compare(result, new.count + changed.count, "insert")
        case .objectIDs:
            let told = (result as? [NSManagedObjectID] ?? []).map { keys[$0] ?? -1 }
            guard told.starts(with: new), Set(told.dropFirst(new.count)) == Set(changed) else {
                return "an insert tells the IDs of \(told), expected were \(new) and \(changed)"
            }
            return nil
        }
    }

    private func fresh(_ stream: inout SeededStream) -> BatchOracle.Given {
        BatchOracle.Given(
            code: oracle.freshCode(),
            value: Int64(1 + stream.below(100)),
            region: Int64(1 + stream.below(9)),
            crate: stream.chance(0.5) ? oracle.crates.sorted().first : nil
        )
    }

    /// An insert request in one of its three forms.
    private func request(
        for given: [BatchOracle.Given],
        _ context: NSManagedObjectContext,
        _ stream: inout SeededStream
    ) -> NSBatchInsertRequest {
        let crateIDs = crateIDs
        func dictionary(_ row: BatchOracle.Given) -> [String: Any] {
            var values: [String: Any] = ["code": row.code, "value": row.value, "region": row.region]
            values["crate"] = row.crate.flatMap { crateIDs[$0] }
            return values
        }
        var rest = given[...]
        // A handler gives its rows only once, so it cannot be used if the request may be executed again.
        switch fault == nil ? stream.below(3) : 0 {
        case 0: return NSBatchInsertRequest(entityName: "Parcel", objects: given.map(dictionary))
        case 1:
            return NSBatchInsertRequest(entityName: "Parcel") { (values: NSMutableDictionary) in
                guard let row = rest.popFirst() else { return true }
                for (name, value) in dictionary(row) { values[name] = value }
                return false
            }
        default:
            return NSBatchInsertRequest(entityName: "Parcel") { (object: NSManagedObject) in
                guard let row = rest.popFirst() else { return true }
                guard let parcel = object as? Parcel else { return true }
                (parcel.code, parcel.value, parcel.region) = (row.code, row.value, row.region)
                // The value is an object here, where a dictionary has an ID.
                parcel.crate = row.crate.flatMap { crateIDs[$0] }.flatMap { context.object(with: $0) as? Crate }
                return false
            }
        }
    }

    private static func mergePolicy(_ policy: BatchOracle.Policy) -> NSMergePolicy {
        switch policy {
        case .error: .error
        case .storeTrump: .mergeByPropertyStoreTrump
        case .rollback: .rollback
        case .objectTrump: .mergeByPropertyObjectTrump
        case .overwrite: .overwrite
        }
    }

    // MARK: - Updates

    func update(_ place: Int, _ stream: inout SeededStream) throws -> String? {
        let (condition, predicate) = condition(&stream)
        let request = NSBatchUpdateRequest(entityName: "Parcel")
        request.predicate = predicate
        request.resultType = stream.pick([
            .statusOnlyResultType, .updatedObjectIDsResultType, .updatedObjectsCountResultType,
        ])
        let change: BatchOracle.Change
        /// Whether the new value is a relationship to a row that has gone.
        var leadsNowhere = false
        switch stream.below(5) {
        case 0:
            change = .addToValue(3)
            request.propertiesToUpdate = ["value": NSExpression(format: "value + 3")]
        case 1:
            let (value, region) = (Int64(stream.below(100)), Int64(1 + stream.below(9)))
            change = .set(value: value, region: region)
            request.propertiesToUpdate = ["value": value, "region": region]
        case 2:
            change = .addToCode(10)
            request.propertiesToUpdate = ["code": NSExpression(format: "code + 10")]
        case 3:
            let crate = stream.chance(0.7) ? crateIDs.keys.sorted().randomElement(using: &stream) : nil
            change = .crate(crate)
            leadsNowhere = crate.map { !oracle.crates.contains($0) } ?? false
            request.propertiesToUpdate = ["crate": crate.flatMap { crateIDs[$0] } ?? NSNull()]
        default:
            let friend = stream.chance(0.7) ? ids.keys.sorted().randomElement(using: &stream) : nil
            change = .friend(friend)
            leadsNowhere = friend.map { oracle.rows[$0] == nil } ?? false
            request.propertiesToUpdate = ["friend": friend.flatMap { ids[$0] } ?? NSNull()]
        }
        note("updates \(condition): \(change)")
        let expected = leadsNowhere ? nil : oracle.update(condition, change)
        let result: Any?
        do {
            let done: NSBatchUpdateResult? = try execute(request, place)
            result = done?.result
        } catch let error as CocoaError where error.code == .managedObjectConstraintMerge && !leadsNowhere {
            count("refused")
            return expected == nil ? nil : "an update is refused that is to succeed: \(describe(error))"
        } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity && leadsNowhere {
            count("refused")
            return nil
        } catch { return "an update gave \(describe(error))" }
        // If no row matches, then it is left open whether the missing destination is noticed.
        if leadsNowhere, oracle.matching(condition).isEmpty { return nil }
        guard let expected else { return "an update succeeds that is to be refused" }
        count("rows", expected.count)
        switch request.resultType {
        case .statusOnlyResultType:
            return result as? Bool == true ? nil : "the status of an update is \(result ?? "nothing")"
        case .updatedObjectsCountResultType: return compare(result, expected.count, "update")
        case .updatedObjectIDsResultType:
            return compare(result, expected, "update", NSUpdatedObjectsKey)
        }
    }

    /// The rows that a batch applies to: none, few, half or all.
    private func condition(_ stream: inout SeededStream) -> (BatchOracle.Condition, NSPredicate?) {
        let region = Int64(1 + stream.below(9))
        switch stream.below(6) {
        case 0: return (.all, stream.chance(0.5) ? nil : NSPredicate(value: true))
        case 1: return (.none, NSPredicate(format: "code < 0"))
        case 2: return (.region(region), NSPredicate(format: "region == %@", region))
        case 3: return (.upTo(region), NSPredicate(format: "region <= %@", region))
        case 4: return (.ofFriendIn(region), NSPredicate(format: "friend.region == %@", region))
        default: return (.withoutCrate, NSPredicate(format: "crate == nil"))
        }
    }

    // MARK: - Deletions

    func delete(_ place: Int, _ stream: inout SeededStream) throws -> String? {
        let (condition, predicate) = condition(&stream)
        var doomed = oracle.matching(condition)
        let request: NSBatchDeleteRequest
        switch stream.below(3) {
        case 0:
            // Some of these rows may have gone already.
            doomed = Set(ids.keys.sorted().filter { _ in stream.chance(0.2) })
            note("deletes the IDs of \(doomed.sorted())")
            request = NSBatchDeleteRequest(objectIDs: doomed.sorted().compactMap { ids[$0] })
            doomed.formIntersection(oracle.rows.keys)
        case 1:
            let fetch = NSFetchRequest<Parcel>(entityName: "Parcel")
            fetch.predicate = predicate
            fetch.sortDescriptors = [NSSortDescriptor(key: "code", ascending: false)]
            fetch.fetchLimit = 1 + stream.below(5)
            let order = doomed.sorted { (oracle.rows[$0]?.code ?? 0) > (oracle.rows[$1]?.code ?? 0) }
            doomed = Set(order.prefix(fetch.fetchLimit))
            note("deletes the last \(fetch.fetchLimit) of \(condition)")
            request = NSBatchDeleteRequest(fetchRequest: fetch)
        default:
            let fetch = NSFetchRequest<Parcel>(entityName: "Parcel")
            fetch.predicate = predicate
            note("deletes \(condition)")
            request = NSBatchDeleteRequest(fetchRequest: fetch)
        }
        request.resultType = stream.pick([.resultTypeStatusOnly, .resultTypeObjectIDs, .resultTypeCount])
        oracle.delete(doomed)
        return try execute(request, place, doomed, [])
    }

    func deleteCrates(_ place: Int, _ stream: inout SeededStream) throws -> String? {
        guard stream.chance(0.3) else { return nil }
        let gone = stream.pick(crateIDs.keys.sorted())
        let fetch = NSFetchRequest<Crate>(entityName: "Crate")
        fetch.predicate = NSPredicate(format: "number == %@", gone)
        let request = NSBatchDeleteRequest(fetchRequest: fetch)
        request.resultType = stream.pick([.resultTypeStatusOnly, .resultTypeObjectIDs, .resultTypeCount])
        let crates = oracle.crates.intersection([gone])
        let doomed = oracle.deleteCrates([gone])
        note("deletes crate \(gone)")
        return try execute(request, place, doomed, crates)
    }

    private func execute(
        _ request: NSBatchDeleteRequest,
        _ place: Int,
        _ doomed: Set<Int64>,
        _ crates: Set<Int64>
    ) throws -> String? {
        let result: Any?
        do {
            let done: NSBatchDeleteResult? = try execute(request, place)
            result = done?.result
        } catch { return "a deletion gave \(describe(error))" }
        count("rows", doomed.count)
        switch request.resultType {
        case .resultTypeStatusOnly:
            return result as? Bool == true ? nil : "the status of a deletion is \(result ?? "nothing")"
        case .resultTypeCount: return compare(result, doomed.count + crates.count, "deletion")
        case .resultTypeObjectIDs:
            let all = result as? [NSManagedObjectID] ?? []
            let ofCrates = Set(crates.compactMap { crateIDs[$0] })
            guard ofCrates.isSubset(of: all) else { return "a deletion does not tell the crate that it deletes" }
            return compare(all.filter { !ofCrates.contains($0) }, doomed, "deletion", NSDeletedObjectsKey)
        }
    }

    // MARK: - Results

    private func compare(_ result: Any?, _ expected: Int, _ what: String) -> String? {
        let count = result as? Int ?? -1
        return count == expected ? nil : "the count of an \(what) is \(count), expected was \(expected)"
    }

    private func compare(_ result: Any?, _ expected: Set<Int64>, _ what: String, _ key: String) -> String? {
        let all = result as? [NSManagedObjectID] ?? []
        let told = all.map { keys[$0] ?? -1 }
        guard told.count == expected.count, Set(told) == expected else {
            return "the IDs of an \(what) are those of \(told.sorted()), expected were \(expected.sorted())"
        }
        lastResult = (key, all, expected)
        return nil
    }
}
