import StrataModelFiles
import StrataPredicates
import StrataRows

/// Option: a Boolean, or the `URL` of an `.xcdatamodeld` or `.momd` folder; where no one step leads from the version that a store has to the
/// coordinator's, the migration goes over the versions in between.
///
/// It also does so where one step could only be inferred, but mapping models are there for steps between: they say what becomes of values that
/// the inferred step would drop.
///
/// Default false. The versions are those in the folder, or with true in the one of the program's bundles that has the coordinator's version, in the order
/// of their names, numbers as numbers. As few as possible are left out, and each step is taken by a mapping model of the bundles, or inferred; mapping
/// models beside the folder count too. The whole way is checked before the first step. Each step is safe by itself: after a kill the next one to open the store goes on where it was left.
/// An addition to Apple's API.
public let NSPersistentStoreAllowsProgressiveMigrationOption = "NSPersistentStoreAllowsProgressiveMigrationOption"

/// A migration over the versions of a model that a program brings along.
struct ProgressiveMigration {
    private let whole: AutomaticMigration
    private let failure: CocoaError?

    /// - Parameters:
    ///   - whole: The migration to carry out.
    ///   - failure: Why one step does not do, if that is known.
    init(_ whole: AutomaticMigration, insteadOf failure: CocoaError? = nil) {
        self.whole = whole
        self.failure = failure
    }

    /// Whether a way over other versions has a step with a mapping model.
    func hasMappedStep(from source: SourceModel) -> Bool {
        guard let way = try? way(from: source), way.count > 2 else { return false }
        return zip(way, way.dropFirst()).contains { !whole.search(from: $0, to: $1).fitting.isEmpty }
    }

    /// Takes all steps.
    ///
    /// - Throws: `migrationMissingMappingModel` (134140) if there is no way, and the errors of the steps.
    func run(_ metadata: [String: Any]) throws {
        let source = try whole.source(metadata)
        let way = try way(from: source)
        MigrationLog.note(
            whole.url,
            "over \(way.count - 2) versions: \(way.map(\.versionChecksum).joined(separator: " → "))"
        )
        try whole.backUpBefore(metadata)
        whole.progress?.expect(steps: way.count - 1)
        for (from, to) in zip(way, way.dropFirst()) {
            try whole.progress?.throwIfCancelled()
            try step(from: from, to: to)
            whole.progress?.endStep()
        }
    }

    /// Takes a step, again if others have written to the store while it was migrated object by object.
    private func step(from: NSManagedObjectModel, to: NSManagedObjectModel) throws {
        for _ in 0..<AutomaticMigration.mostAttempts {
            try whole.step(from: from, to: to, at: whole.url, isPlanned: false)
            let metadata = try StoreTypes.required(whole.type).metadata(at: whole.url, options: whole.options)
            if to.isConfiguration(withName: whole.configuration, compatibleWithStoreMetadata: metadata) { return }
        }
        throw MigrationFailure.error(
            .migration,
            "The store \(whole.url.placeName) was written to by others each time a step was complete. Try again when they are done.",
            url: whole.url
        )
    }

    /// The versions to go over, from the store's to the coordinator's.
    private func way(from source: SourceModel) throws -> [NSManagedObjectModel] {
        let versions = whole.progressiveVersions.isEmpty ? Self.versions(with: whole.model) : whole.progressiveVersions
        guard let last = versions.lastIndex(where: { $0.versionChecksum == whole.model.versionChecksum }) else {
            throw error("The coordinator's model is not one of several versions that are known.")
        }
        let first = versions.firstIndex { $0.versionChecksum == source.model.versionChecksum }
        // A version that was never shipped may have been before any of them.
        let between = Array(versions[((first ?? -1) + 1)..<max(last, (first ?? -1) + 1)])
        let stops = [source.model] + between + [whole.model]
        var deadEnds: Set<Int> = []
        guard let way = Self.way(stops, from: 0, &deadEnds, canStep) else {
            throw error("No way over the \(between.count) versions between them leads there either.")
        }
        return way.map { stops[$0] }
    }

    /// The way that leaves out as few stops as possible, the nearest ones last.
    private static func way(
        _ stops: [NSManagedObjectModel],
        from place: Int,
        _ deadEnds: inout Set<Int>,
        _ canStep: (NSManagedObjectModel, NSManagedObjectModel) -> Bool
    ) -> [Int]? {
        guard place < stops.count - 1 else { return [place] }
        guard !deadEnds.contains(place) else { return nil }
        for next in place + 1..<stops.count where canStep(stops[place], stops[next]) {
            if let rest = way(stops, from: next, &deadEnds, canStep) { return [place] + rest }
        }
        deadEnds.insert(place)
        return nil
    }

    private func canStep(_ from: NSManagedObjectModel, _ to: NSManagedObjectModel) -> Bool {
        let isInferable = InferredMapping(
            from: from.storedEntities(forConfigurationName: whole.configuration) ?? from.entities,
            to: to.storedEntities(forConfigurationName: whole.configuration) ?? []
        ).obstacles.isEmpty
        return isInferable || !whole.search(from: from, to: to).fitting.isEmpty
    }

    /// The versions beside a model, the first one first; none if it is not in the program's bundles.
    private static func versions(with model: NSManagedObjectModel) -> [NSManagedObjectModel] {
        let checksum = model.versionChecksum
        for bundles in [nil, Bundle.allBundles + Bundle.allFrameworks] {
            for url in NSManagedObjectModel.resources(in: bundles, withExtensions: ["xcdatamodeld", "momd"]) {
                let versions = versions(in: url)
                if versions.contains(where: { $0.versionChecksum == checksum }) { return versions }
            }
        }
        return []
    }

    /// The versions in a folder, the first one first.
    static func versions(in folder: URL) -> [NSManagedObjectModel] {
        let files = ModelPackage.versions(at: folder).sorted { one, other in
            let names = [one, other].map { $0.deletingPathExtension().lastPathComponent }
            return names[0].compare(names[1], options: .numeric) == .orderedAscending
        }
        return files.compactMap { try? NSManagedObjectModel(reading: $0) }
    }

    private func error(_ reason: String) -> CocoaError {
        var userInfo = failure?.userInfo ?? [:]
        let text = [failure?.localizedDescription, reason].compactMap(\.self).joined(separator: " ")
        userInfo[NSLocalizedDescriptionKey] = text
        userInfo[NSLocalizedFailureReasonErrorKey] = text
        userInfo["reason"] = text
        return CocoaError.described(.migrationMissingMappingModel, userInfo: userInfo)
    }
}
