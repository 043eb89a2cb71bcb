import CoreData

extension InterleaveProgram {
    /// Compares the stored rows with the oracle, and checks their versions.
    ///
    /// A fetch of dictionaries reads the file, past the row cache. On SQLite, the file itself is read as well, which
    /// is faster.
    ///
    /// - Parameter fetches: Whether to make the fetch.
    /// - Returns: The fault; `nil` if there is none.
    /// - Throws: Errors of reading.
    func checkStore(_ fetches: Bool) throws -> String? {
        if fetches, let trouble = compare(try fetchedRows(), "fetched") { return trouble }
        guard let rows = try file?.rows() else { return nil }
        return compare(rows.mapValues(\.values), "stored") ?? checkVersions(rows.mapValues(\.version))
    }

    /// All rows, fetched in a context without objects.
    func fetchedRows() throws -> [Int64: [Int64]] {
        let context = reader
        let request = NSFetchRequest<NSDictionary>(entityName: "Node")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["serial", "first", "second", "parent"]
        return try context.performAndWait {
            var found: [Int64: [Int64]] = [:]
            for row in try context.fetch(request) {
                guard let serial = row["serial"] as? Int64, let first = row["first"] as? Int64,
                    let second = row["second"] as? Int64
                else { throw StressError("a row is incomplete: \(row)") }
                found[serial] = [first, second, serialNumber((row["parent"] as? NSManagedObjectID))]
            }
            return found
        }
    }

    private func compare(_ found: [Int64: [Int64]], _ name: String) -> String? {
        for (serial, row) in oracle.stored where found[serial] != row.values {
            let shown = found[serial].map { "\($0)" } ?? "nothing"
            return "object \(serial) is \(name) as \(shown), expected was \(row.values)"
        }
        if let other = found.keys.first(where: { oracle.stored[$0] == nil }) {
            return "object \(other) is \(name), which should be gone"
        }
        return nil
    }

    /// Checks that a row's version advances when the row is written, and only then, even if the row has gone and come
    /// back.
    private func checkVersions(_ found: [Int64: Int64]) -> String? {
        for (serial, version) in found {
            let wanted = oracle.stored[serial]?.version ?? 0
            if let last = versions[serial] {
                if last.wanted != wanted, version <= last.stored {
                    return "object \(serial) was written, but its version went from \(last.stored) to \(version)"
                }
                if last.wanted == wanted, version != last.stored {
                    return "object \(serial) was not written, but its version went from \(last.stored) to \(version)"
                }
            }
            versions[serial] = (wanted, version)
        }
        return nil
    }

    /// The number of an object by its ID: 0 for no ID, -1 for an unknown one.
    func serialNumber(_ id: NSManagedObjectID?) -> Int64 {
        guard let id else { return 0 }
        if let known = serials[id] { return known }
        // An object gets another ID when it is saved.
        return serials.first { $0.key.latest == id }?.value ?? -1
    }
}
