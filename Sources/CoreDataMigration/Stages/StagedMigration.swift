import CoreDataEssentials
import Foundation
import StrataKeys
import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// The staged migration of a store that is being added.
///
/// It reads the store's version again before each step, so it continues after steps of a killed process or of a
/// concurrent one.
struct StagedMigration {
    private let manager: NSStagedMigrationManager
    /// The migration of the store without stages.
    private let whole: AutomaticMigration
    private let plan: StagePlan
    private let models: StageModels

    /// - Throws: 134504 for stages that are not valid.
    init(_ manager: NSStagedMigrationManager, of whole: AutomaticMigration) throws {
        self.manager = manager
        self.whole = whole
        plan = try StagePlan(manager.stages)
        models = StageModels(plan, whole)
    }

    /// Migrates the store to the coordinator's model.
    ///
    /// - Throws: 134504 for a store, or a version of the list, that is not known; 134506 for a store that is newer
    ///   than the model.
    ///   `migrationMissingMappingModel` (134140) for two versions without a step between them, and `migration` (134110)
    ///   for a version without the configuration of the store, before any step is done. The errors of the steps and of
    ///   handlers.
    func run() throws {
        var way = try Way(self)
        try way.check()
        whole.progress?.expect(steps: way.stepCount)
        if way.stepCount > 0 {
            try whole.backUpBefore(StoreTypes.required(whole.type).metadata(at: whole.url, options: whole.options))
        }
        // Others may do some of the steps; none can undo one.
        var attempts = 0
        while let index = try way.next() {
            attempts += 1
            guard attempts <= 4 * (plan.versions.count + 1) else {
                throw MigrationFailure.error(
                    .migration,
                    "The store \(whole.url.placeName) was written to by others each time a stage was complete. Try again when they are done.",
                    url: whole.url
                )
            }
            try whole.progress?.throwIfCancelled()
            try step(to: index, way)
            whole.progress?.endStep()
        }
    }

    // MARK: - The way

    /// The versions from the store's to the coordinator's.
    private struct Way {
        private let migration: StagedMigration
        /// The models of the list, and the coordinator's if it is not in the list; `nil` for models not needed.
        private(set) var models: [NSManagedObjectModel?]
        private let end: Int
        private let start: Int

        init(_ migration: StagedMigration) throws {
            self.migration = migration
            let plan = migration.plan
            let url = migration.whole.url
            let model = migration.whole.model
            let stored = try migration.storedHashes()
            let checksum = SchemaHashes.checksum(of: stored)
            end = plan.index(of: model) ?? plan.versions.count
            guard let start = migration.index(ofStored: stored, upTo: end) else {
                throw StageFailure.error(
                    .modelReferenceNotFound,
                    """
                    The store \(url.placeName) has version \(checksum) of the model, which is in no stage. \
                    \(migration.nearestVersion(stored))\(migration.versionsWithoutConfiguration)\
                    The stages have: \(plan.checksums.joined(separator: ", ")).
                    """,
                    checksum: checksum,
                    known: plan.checksums,
                    url: url
                )
            }
            self.start = start
            guard end >= start else {
                throw StageFailure.error(
                    .backwards,
                    """
                    The store \(url.placeName) has version \(checksum) of the model, which comes after the coordinator's version \
                    \(model.versionChecksum) in the stages. Open it with a newer version of the program.
                    """,
                    checksum: checksum,
                    known: plan.checksums,
                    url: url
                )
            }
            models = Array(repeating: nil, count: plan.versions.count + 1)
            for index in start...end {
                models[index] =
                    index == plan.versions.count ? model : try migration.models.model(plan.versions[index].checksum)
            }
        }

        /// The index of the next version; `nil` at the end.
        mutating func next() throws -> Int? {
            let stored = try migration.storedHashes()
            let (model, configuration) = (migration.whole.model, migration.whole.configuration)
            if model.hashesByPresentRule(of: stored) == model.versionHashes(forConfigurationName: configuration) {
                return nil
            }
            guard let index = migration.index(ofStored: stored, upTo: end), index >= start, index < end else {
                throw StageFailure.error(
                    .modelReferenceNotFound,
                    "Another process has brought the store \(migration.whole.url.placeName) to version \(SchemaHashes.checksum(of: stored)), which is not on the way.",
                    checksum: SchemaHashes.checksum(of: stored),
                    known: migration.plan.checksums,
                    url: migration.whole.url
                )
            }
            return index + 1
        }

        var stepCount: Int { end - start }

        /// Checks that each step is possible, before the first one.
        func check() throws {
            guard start < end else { return }
            for index in start + 1...end {
                guard let from = models[index - 1], let to = models[index] else { continue }
                try migration.require(from, first: index - 1, to: to, second: index)
            }
        }
    }

    /// The version hashes that the store has now.
    private func storedHashes() throws -> [String: Data] {
        let metadata = try StoreTypes.required(whole.type).metadata(at: whole.url, options: whole.options)
        return metadata["NSStoreModelVersionHashes"] as? [String: Data] ?? [:]
    }

    /// The place of a store in the list.
    ///
    /// Versions may differ in nothing that a store with a part of the model holds. Then its place is the last of them on
    /// the way, so that no step between them is taken, which would lead nowhere.
    private func index(ofStored hashes: [String: Data], upTo end: Int) -> Int? {
        if let index = plan.index(of: SchemaHashes.checksum(of: hashes)) { return index }
        // A store with a part of the model has another checksum, and so may a store with composite attributes.
        let fitting = plan.versions.indices.filter { index in
            guard let model = try? models.model(plan.versions[index].checksum) else { return false }
            return model.versionHashes(forConfigurationName: whole.configuration)
                == model.hashesByPresentRule(of: hashes)
        }
        return fitting.last { $0 <= end } ?? fitting.first
    }

    /// The listed version that is nearest to a store, and the differences; empty if none is known.
    private func nearestVersion(_ stored: [String: Data]) -> String {
        let known = plan.checksums.compactMap { checksum -> (String, [String])? in
            guard let model = try? models.model(checksum) else { return nil }
            let names = model.entitiesThatDiffer(
                fromStoreMetadata: ["NSStoreModelVersionHashes": stored],
                configuration: whole.configuration
            )
            return (checksum, names)
        }
        guard let nearest = known.min(by: { $0.1.count < $1.1.count }) else { return "" }
        return
            "The nearest listed version is \(nearest.0), of which it differs in \(nearest.1.joined(separator: ", ")). "
    }

    /// The listed versions that lack the configuration of the store; empty if there is none.
    private var versionsWithoutConfiguration: String {
        let lacking = plan.checksums.filter { checksum in
            guard let model = try? models.model(checksum) else { return false }
            return model.entities(forConfigurationName: whole.configuration) == nil
        }
        guard let name = whole.configuration, !lacking.isEmpty else { return "" }
        return "The configuration \"\(name)\" is missing in \(lacking.joined(separator: ", ")). "
    }

    private func describe(_ index: Int) -> String {
        guard index < plan.versions.count else { return "the coordinator's model (\(whole.model.versionChecksum))" }
        let version = plan.versions[index]
        return "version \(version.checksum) of stage \"\(version.stage.describedLabel)\""
    }

    /// - Throws: `migrationMissingMappingModel` (134140) if no step leads from one version to the next; `migration`
    ///   (134110) if one of them lacks the configuration of the store.
    private func require(_ from: NSManagedObjectModel, first: Int, to: NSManagedObjectModel, second: Int) throws {
        let mapping = InferredMapping(
            from: try whole.storedEntities(in: from),
            to: try whole.storedEntities(in: to)
        )
        guard !mapping.obstacles.isEmpty else { return }
        guard whole.search(from: from, to: to).fitting.isEmpty else { return }
        let error = InferenceObstacle.error(mapping.obstacles)
        let text = """
            The store \(whole.url.placeName) was not migrated: \(describe(first)) and \(describe(second)) do not meet. \
            \(error.localizedDescription)
            """
        throw CocoaError.described(
            .migrationMissingMappingModel,
            userInfo: [
                NSLocalizedDescriptionKey: text, "reason": text, NSUnderlyingErrorKey: error, "sourceModel": from,
                "destinationModel": to, NSFilePathErrorKey: whole.url.placeName,
            ]
        )
    }

    // MARK: - Steps

    private func step(to index: Int, _ way: Way) throws {
        guard let from = way.models[index - 1], let to = way.models[index] else { return }
        let start = ContinuousClock.now
        if index < plan.versions.count, case .custom(let stage) = plan.versions[index].step,
            stage.willMigrateHandler != nil || stage.didMigrateHandler != nil
        {
            try StageWithHandlers(stage: stage, manager: manager, whole: whole, from: from, to: to).run()
        } else {
            try whole.step(from: from, to: to, at: whole.url, isPlanned: true)
        }
        MigrationLog.note(whole.url, "\(describe(index)) reached in \(ContinuousClock.now - start)")
    }
}

/// The models of a list of versions.
///
/// They come from the references of custom stages, the coordinator, all versions in the program's bundles, and the
/// store itself.
private final class StageModels {
    private let references: [String: NSManagedObjectModelReference]
    private let whole: AutomaticMigration
    private var known: [String: NSManagedObjectModel] = [:]
    private var hasRead = false

    init(_ plan: StagePlan, _ whole: AutomaticMigration) {
        references = plan.references
        self.whole = whole
        note(whole.model)
    }

    private func note(_ model: NSManagedObjectModel) {
        let checksums = [model.versionChecksum, model.formerVersionChecksum].compactMap(\.self)
        for checksum in checksums where known[checksum] == nil { known[checksum] = model }
    }

    /// - Throws: 134504 if there is no such model.
    func model(_ checksum: String) throws -> NSManagedObjectModel {
        if let model = known[checksum] { return model }
        if let reference = references[checksum] {
            let model = try reference.resolve()
            known[checksum] = model
            return model
        }
        readAll()
        if let model = known[checksum] { return model }
        throw StageFailure.error(
            .modelReferenceNotFound,
            "A stage names version \(checksum), but no model with this checksum is in the program's bundles. Add that version of the model.",
            checksum: checksum,
            known: known.keys.sorted()
        )
    }

    private func readAll() {
        guard !hasRead else { return }
        hasRead = true
        var models = NSManagedObjectModel.allVersions(in: nil)
        models += NSManagedObjectModel.allVersions(in: Bundle.allBundles + Bundle.allFrameworks)
        for reference in references.values { if let model = try? reference.resolve() { models.append(model) } }
        if let data = try? whole.cachedModel(), let model = try? NSManagedObjectModel(cachedModelData: data) {
            models.append(model)
        }
        for model in models { note(model) }
    }
}
