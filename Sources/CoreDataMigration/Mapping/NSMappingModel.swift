import CoreDataEssentials
import StrataPredicates

/// The mappings of a migration from one version of a model to another: one for each entity, in order.
///
/// Build one in code, read one that Xcode has edited or compiled with ``init(contentsOf:)``, find the one that fits two
/// models among a program's resources with ``init(from:forSourceModel:destinationModel:)``, or infer one with
/// ``inferredMappingModel(forSourceModel:destinationModel:)``.
///
/// Not thread-safe.
///
/// See <doc:Migration>.
///
/// ```swift
/// let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
/// for entity in mapping.entityMappings { print(entity.name ?? "", entity.mappingType) }
/// ```
open class NSMappingModel: NSObject {
    /// The mappings, in the order in which they are carried out.
    open var entityMappings: [NSEntityMapping]! {
        get { mappings }
        set { mappings = newValue ?? [] }
    }

    private var mappings: [NSEntityMapping] = []

    /// The contents of the model when it was inferred; `nil` for a model that was not inferred.
    var inferredText: String?

    /// Whether `object` is a mapping model with equal entity mappings in the same order.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSMappingModel else { return false }
        return other === self || mappings == other.mappings
    }

    /// A hash that agrees with ``isEqual(_:)``.
    ///
    /// It is computed from the entity mappings, which should not change while a set contains the model.
    open override var hash: Int { mappings.hashValue }

    /// The mappings by name; if two have the same name, then the later one counts.
    ///
    /// - Complexity: O(number of mappings) for each read of the property.
    open var entityMappingsByName: [String: NSEntityMapping] {
        Dictionary(mappings.map { ($0.effectiveName, $0) }) { _, later in later }
    }

    /// Makes a model without mappings, to be filled in code.
    public override init() { super.init() }

    /// Finds the mapping model that fits two models among the resources of bundles.
    ///
    /// Compiled (`.cdm`) and edited (`.xcmappingmodel`) mapping models are searched. A mapping model fits if its
    /// recorded version hashes are those of the models, and if every entity without a mapping is equal in both models,
    /// or exists in only one of them; see ``mismatches(sourceModel:destinationModel:)``. The order of files and of
    /// mappings does not matter. The result is `nil` if none fits, or if one of the models is `nil`.
    ///
    /// ```swift
    /// if let mapping = NSMappingModel(from: nil, forSourceModel: old, destinationModel: new) {
    ///     print(mapping.entityMappingsByName.keys.sorted())
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - bundles: The bundles; `nil` for the main one, and for the resources of the package's other targets beside
    ///     it.
    ///   - sourceModel: The model to migrate from.
    ///   - destinationModel: The model to migrate to.
    public convenience init?(
        from bundles: [Bundle]?,
        forSourceModel sourceModel: NSManagedObjectModel?,
        destinationModel: NSManagedObjectModel?
    ) {
        guard let sourceModel, let destinationModel else { return nil }
        let search = MappingModelSearch(bundles, from: sourceModel, to: destinationModel)
        guard let found = search.fitting.first else { return nil }
        self.init()
        mappings = found.mappings
    }

    /// Reads a mapping model.
    ///
    /// The result is `nil` if there is no file, or it is no mapping model. To get the reason, use
    /// ``init(reading:from:to:)``.
    ///
    /// - Parameter url: A compiled `.cdm` file, or an `.xcmappingmodel` folder or the XML in it.
    public convenience init?(contentsOf url: URL?) {
        guard let url, let read = try? MappingModelFile.mappings(at: url) else { return nil }
        self.init()
        mappings = read
    }

    /// Reads a mapping model, as ``init(contentsOf:)`` does.
    ///
    /// An addition to Apple's API.
    ///
    /// - Parameters:
    ///   - url: A compiled `.cdm` file, or an `.xcmappingmodel` folder or the XML in it.
    ///   - source: The model that an `.xcmappingmodel` maps from. If this or the next one is `nil`, then both are
    ///     searched at the paths in the file.
    ///   - destination: The model that it maps to.
    /// - Throws: `fileReadNoSuchFile` (260), `fileReadTooLarge` (263), or `fileReadCorruptFile` (259) with the problem.
    public convenience init(
        reading url: URL,
        from source: NSManagedObjectModel? = nil,
        to destination: NSManagedObjectModel? = nil
    ) throws {
        self.init()
        let models = source.flatMap { source in
            destination.map { MappingModelFile.Models(source: source, destination: $0) }
        }
        mappings = try MappingModelFile.mappings(at: url, models: models)
    }

    /// The reasons why the mapping model does not fit two models; empty if it fits.
    ///
    /// The check is stricter than in Apple's framework, which compares only the recorded hashes. There a mapping model
    /// without a certain entity fits any two versions in which only that entity differs, and its objects are lost. An
    /// addition to Apple's API.
    ///
    /// - Parameters:
    ///   - sourceModel: The model to migrate from.
    ///   - destinationModel: The model to migrate to.
    /// - Returns: A sentence for each entity that does not fit, with both hashes if these differ.
    public final func mismatches(
        sourceModel: NSManagedObjectModel,
        destinationModel: NSManagedObjectModel
    ) -> [String] {
        MappingModelMatch(self, from: sourceModel, to: destinationModel).problems
    }
}
