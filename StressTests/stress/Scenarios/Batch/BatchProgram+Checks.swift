import CoreData

extension BatchProgram {
    private struct Shown: Equatable {
        var code: Int64
        var value: Int64
        var region: Int64
        var crate: NSManagedObjectID?
        var friend: NSManagedObjectID?
    }

    /// All rows, as one fetch returns them.
    private func stored() throws -> [NSManagedObjectID: Shown] {
        let context = stack.context()
        let request = NSFetchRequest<NSDictionary>(entityName: "Parcel")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["objectID", "code", "value", "region", "crate", "friend"]
        return try context.performAndWait {
            var found: [NSManagedObjectID: Shown] = [:]
            for row in try context.fetch(request) {
                guard let id = row["objectID"] as? NSManagedObjectID, let code = row["code"] as? Int64,
                    let value = row["value"] as? Int64, let region = row["region"] as? Int64
                else { throw StressError("a row is incomplete: \(row)") }
                found[id] = Shown(
                    code: code,
                    value: value,
                    region: region,
                    crate: row["crate"] as? NSManagedObjectID,
                    friend: row["friend"] as? NSManagedObjectID
                )
            }
            return found
        }
    }

    private func expected(_ row: BatchOracle.Row) -> Shown {
        Shown(
            code: row.code,
            value: row.value,
            region: row.region,
            crate: row.crate.flatMap { crateIDs[$0] },
            friend: row.friend.flatMap { ids[$0] }
        )
    }

    /// Learns the IDs of new rows.
    func learnIDs() throws -> String? {
        let codes = oracle.codes
        for (id, shown) in try stored() {
            guard let key = codes[shown.code] else { return "there is a row with code \(shown.code)" }
            if let known = ids[key], known != id { return "row \(key) has changed its ID from \(known) to \(id)" }
            ids[key] = id
            keys[id] = key
        }
        return nil
    }

    /// Compares the stored rows with the oracle.
    func checkStore() throws -> String? {
        let stored = try stored()
        for (key, row) in oracle.rows {
            guard let id = ids[key], let shown = stored[id] else { return "row \(key) is missing" }
            if shown != expected(row) { return "row \(key) is stored as \(shown), expected was \(expected(row))" }
        }
        if stored.count != oracle.rows.count { return "\(stored.count) rows are stored, not \(oracle.rows.count)" }
        let context = stack.context()
        let numbers = try context.performAndWait {
            Set(try context.fetch(NSFetchRequest<Crate>(entityName: "Crate")).map(\.number))
        }
        return numbers == oracle.crates
            ? nil : "crates \(numbers.sorted()) are stored, expected were \(oracle.crates.sorted())"
    }

    /// Compares the objects of contexts with the oracle.
    func checkContexts() throws -> String? {
        for place in contexts.indices where place != Self.follower {
            let context = contexts[place]
            let trouble: String? = context.performAndWait {
                for (key, entry) in oracle.entries[place] {
                    guard let parcel = held[place][key] else { continue }
                    let shown = [parcel.code, parcel.value, parcel.region]
                    let wanted = [entry.base.code, entry.value, entry.base.region]
                    if shown != wanted { return "context \(place) shows \(shown) for row \(key), expected \(wanted)" }
                }
                return nil
            }
            if let trouble { return trouble }
        }
        return try checkFollower()
    }

    /// Checks that a context that follows shows what is stored: at once if it has executed the batch, otherwise after
    /// its next turn.
    private func checkFollower() throws -> String? {
        let place = Self.follower
        let context = contexts[place]
        let trouble: String? = context.performAndWait {
            for (key, parcel) in held[place] {
                guard let row = oracle.rows[key] else {
                    let isGone = parcel.isDeleted || parcel.managedObjectContext == nil
                    if !isGone { return "a context that follows still has row \(key), which has gone" }
                    held[place][key] = nil
                    continue
                }
                let shown = Shown(
                    code: parcel.code,
                    value: parcel.value,
                    region: parcel.region,
                    crate: parcel.crate?.objectID,
                    friend: parcel.friend?.objectID
                )
                if shown != expected(row) {
                    return "a context that follows shows \(shown) for row \(key), expected was \(expected(row))"
                }
                let admirers = Set(parcel.admirers.compactMap { keys[$0.objectID] })
                let wanted = Set(oracle.rows.filter { $1.friend == key }.keys)
                if admirers != wanted {
                    return
                        "a context that follows shows admirers \(admirers.sorted()) of row \(key), expected were \(wanted.sorted())"
                }
            }
            return context.hasChanges ? "a context that follows has changes of its own" : nil
        }
        if let trouble { return trouble }
        oracle.entries[place] = oracle.entries[place].filter { oracle.rows[$0.key] != nil }
        return try load(oracle.rows.keys.sorted(), place)
    }
}
