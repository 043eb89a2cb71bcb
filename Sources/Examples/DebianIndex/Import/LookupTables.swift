import CoreData

/// The objects to which packages are related: their IDs, by the values that make each of them unique.
///
/// These tables are small, so one context completes them before the packages come. After that, the importing contexts
/// only refer to them, and cannot make the same section twice.
struct LookupTables: Sendable {
    let sections: [String: NSManagedObjectID]
    let maintainers: [String: NSManagedObjectID]
    let names: [String: NSManagedObjectID]

    private static let rowsPerSave = 2000

    /// Adds the objects of `survey` that the store lacks, and returns the IDs of all.
    static func complete(
        for survey: Survey,
        in context: NSManagedObjectContext,
        retrying: Retrying
    ) async throws -> LookupTables {
        LookupTables(
            sections: try await retrying {
                try await complete(Section.self, by: { $0.name }, with: survey.sections, in: context) { section, name in
                    section.name = name
                }
            },
            maintainers: try await retrying {
                try await complete(Maintainer.self, by: { $0.email }, with: survey.maintainers.keys, in: context) {
                    maintainer,
                    email in
                    maintainer.email = email
                    maintainer.domain = Maintainer.domain(ofAddress: email)
                    maintainer.name = survey.maintainers[email] ?? email
                }
            },
            names: try await retrying {
                try await complete(PackageName.self, by: { $0.name }, with: survey.names, in: context) { record, name in
                    record.name = name
                }
            }
        )
    }

    private static func complete<Object: NSManagedObject & SendableMetatype>(
        _ type: Object.Type,
        by key: @escaping @Sendable (Object) -> String?,
        with keys: some Collection<String> & Sendable,
        in context: NSManagedObjectContext,
        fill: @escaping @Sendable (Object, String) -> Void
    ) async throws -> [String: NSManagedObjectID] {
        try await context.perform {
            defer { context.reset() }
            context.reset()
            let known = try ids(of: type, by: key, in: context)
            // The order is fixed, so that two runs over one index give the same keys to the same rows.
            let missing = keys.filter { known[$0] == nil }.sorted()
            guard !missing.isEmpty else { return known }

            for start in stride(from: 0, to: missing.count, by: rowsPerSave) {
                for value in missing[start..<min(start + rowsPerSave, missing.count)] {
                    fill(Object(context: context), value)
                }
                try context.save()
                context.reset()
            }
            return try ids(of: type, by: key, in: context)
        }
    }

    private static func ids<Object: NSManagedObject & SendableMetatype>(
        of type: Object.Type,
        by key: (Object) -> String?,
        in context: NSManagedObjectContext
    ) throws -> [String: NSManagedObjectID] {
        let request = NSFetchRequest<Object>(entityName: String(describing: type))
        let objects = try context.fetch(request)
        return Dictionary(objects.compactMap { object in key(object).map { ($0, object.objectID) } }) { first, _ in
            first
        }
    }
}
