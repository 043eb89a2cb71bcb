import CoreDataEssentials
import StrataModelFiles
import StrataPredicates
import StrataRows

/// Option: a Boolean, or the `URL` of an `.xcdatamodeld` or `.momd` folder; a migration may use intermediate versions.
///
/// It uses them if no single step leads from the version of a store to the coordinator's. It also uses them if a single
/// step could only be inferred, but mapping models exist for steps in between: these define what happens to values that
/// the inferred step would drop.
///
/// Default false. The versions are those in the folder. With true they are those in the folder of the program's bundles
/// that has the coordinator's version. They are in the order of their names, with numbers compared as numbers. The
/// migration skips as few versions as possible, and each step uses a mapping model of the bundles, or is inferred;
/// mapping models beside the folder are used too. All steps are checked before the first one begins. Each step is safe
/// by itself: after a kill, the next process that opens the store continues from the last completed step. An addition
/// to Apple's API.
public let NSPersistentStoreAllowsProgressiveMigrationOption = "NSPersistentStoreAllowsProgressiveMigrationOption"

/// A migration through several versions of a model in a program's resources.
struct ProgressiveMigration {
    private let whole: AutomaticMigration
    private let failure: CocoaError?

    /// - Parameters:
    ///   - whole: The migration to carry out.
    ///   - failure: The reason why one step is not possible, if it is known.
    init(_ whole: AutomaticMigration, insteadOf failure: CocoaError? = nil) {
        self.whole = whole
        self.failure = failure
    }

    /// Whether a way through other versions has a step with a mapping model.
    func hasMappedStep(from source: SourceModel) -> Bool {
        guard let way = try? way(from: source), way.count > 2 else { return false }
        return zip(way, way.dropFirst()).contains { !whole.search(from: $0, to: $1).fitting.isEmpty }
    }

    /// Does all steps.
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

    /// Does a step, and repeats it if others have written to the store while it was migrated object by object.
    private func step(from: NSManagedObjectModel, to: NSManagedObjectModel) throws {
        for _ in 0..<StoreToMigrate.mostAttempts {
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

    /// The versions from the store's to the coordinator's.
    private func way(from source: SourceModel) throws -> [NSManagedObjectModel] {
        let versions = whole.progressiveVersions.isEmpty ? Self.versions(with: whole.model) : whole.progressiveVersions
        guard let last = versions.lastIndex(where: { $0.versionChecksum == whole.model.versionChecksum }) else {
            throw error("The coordinator's model is not one of several versions that are known.")
        }
        let first = versions.firstIndex { $0.versionChecksum == source.model.versionChecksum }
        // A version that was never shipped may be older than all of them.
        let between = Array(versions[((first ?? -1) + 1)..<max(last, (first ?? -1) + 1)])
        let stops = [source.model] + between + [whole.model]
        var deadEnds: Set<Int> = []
        guard let way = Self.way(along: stops, from: 0, deadEnds: &deadEnds, canStep: canStep) else {
            throw error("No way over the \(between.count) versions between them leads there either.")
        }
        return way.map { stops[$0] }
    }

    /// The way that skips as few stops as possible; if stops are skipped, then the nearest ones come last.
    private static func way(
        along stops: [NSManagedObjectModel],
        from place: Int,
        deadEnds: inout Set<Int>,
        canStep: (NSManagedObjectModel, NSManagedObjectModel) -> Bool
    ) -> [Int]? {
        guard place < stops.count - 1 else { return [place] }
        guard !deadEnds.contains(place) else { return nil }
        for next in place + 1..<stops.count where canStep(stops[place], stops[next]) {
            if let rest = way(along: stops, from: next, deadEnds: &deadEnds, canStep: canStep) { return [place] + rest }
        }
        deadEnds.insert(place)
        return nil
    }

    private func canStep(_ from: NSManagedObjectModel, _ to: NSManagedObjectModel) -> Bool {
        // No way leads over a version without the configuration of the store, because it has no place for the rows.
        guard let entities = to.storedEntities(forConfigurationName: whole.configuration) else { return false }
        let isInferable = InferredMapping(
            from: from.storedEntities(forConfigurationName: whole.configuration) ?? from.entities,
            to: entities
        ).obstacles.isEmpty
        return isInferable || !whole.search(from: from, to: to).fitting.isEmpty
    }

    /// The versions beside a model, in their order; none if the model is not in the program's bundles.
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

    /// The versions in a folder, in their order.
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
