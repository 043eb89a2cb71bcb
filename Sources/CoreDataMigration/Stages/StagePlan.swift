import CoreDataEssentials
import StrataPredicates

/// The stages of a manager as one list of versions, and the steps between them.
struct StagePlan {
    /// The step that leads to a version from the one before it in the list.
    enum Step {
        /// The first version of the list.
        case start
        /// A step that is inferred, or uses a mapping model: inside of a lightweight stage, or between two stages.
        case lightweight
        /// A step with the handlers of a stage.
        case custom(NSCustomMigrationStage)
    }

    /// One version.
    struct Version {
        let checksum: String
        /// The stage that names it first.
        let stage: NSMigrationStage
        /// The step that leads to it.
        let step: Step
    }

    private(set) var versions: [Version] = []

    /// - Throws: 134504 for a version that is named twice, other than at the border of two stages, and for stages
    ///   without steps.
    init(_ stages: [NSMigrationStage]) throws {
        for stage in stages {
            switch stage {
            case let stage as NSLightweightMigrationStage:
                for reference in stage.references { references[reference.versionChecksum] = reference }
                for (index, checksum) in stage.versionChecksums.enumerated() {
                    // A border that is named on both sides is one version.
                    if index == 0, versions.last?.checksum == checksum { continue }
                    try add(checksum, stage: stage, step: versions.isEmpty ? .start : .lightweight)
                }
            case let stage as NSCustomMigrationStage:
                for reference in [stage.currentModel, stage.nextModel] {
                    references[reference.versionChecksum] = reference
                }
                let first = stage.currentModel.versionChecksum
                if versions.last?.checksum != first {
                    try add(first, stage: stage, step: versions.isEmpty ? .start : .lightweight)
                }
                try add(stage.nextModel.versionChecksum, stage: stage, step: .custom(stage))
            default:
                throw StageFailure.error(
                    .modelReferenceNotFound,
                    "Stage \"\(stage.describedLabel)\" is neither a lightweight nor a custom stage, so it leads nowhere."
                )
            }
        }
    }

    private mutating func add(_ checksum: String, stage: NSMigrationStage, step: Step) throws {
        if let other = versions.first(where: { $0.checksum == checksum }) {
            let place =
                other.stage === stage
                ? "twice in stage \"\(stage.describedLabel)\""
                : "in stage \"\(other.stage.describedLabel)\" and again in stage \"\(stage.describedLabel)\""
            throw StageFailure.error(
                .modelReferenceNotFound,
                "Version \(checksum) is named \(place). A version may occur once; two stages may share the one at their border.",
                checksum: checksum,
                known: checksums
            )
        }
        versions.append(Version(checksum: checksum, stage: stage, step: step))
    }

    var checksums: [String] { versions.map(\.checksum) }

    func index(of checksum: String) -> Int? { versions.firstIndex { $0.checksum == checksum } }

    func index(of model: NSManagedObjectModel) -> Int? {
        index(of: model.versionChecksum) ?? model.formerVersionChecksum.flatMap { index(of: $0) }
    }

    /// The references that stages have, by checksum.
    private(set) var references: [String: NSManagedObjectModelReference] = [:]
}
