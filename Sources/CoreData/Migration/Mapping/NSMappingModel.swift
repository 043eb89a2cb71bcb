import StrataPredicates

/// What a migration from one version of a model to another does: one mapping for each entity, in order.
///
/// Build one in code, read the one that Xcode edits or compiles with ``init(contentsOf:)``, find the one that fits two
/// models among a program's resources with ``init(from:forSourceModel:destinationModel:)``, or have it worked out with
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

    /// What the model said when it was inferred; `nil` for one that was made otherwise.
    var inferredText: String?

    /// Whether `object` is a mapping model with equal entity mappings in the same order.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSMappingModel else { return false }
        return other === self || mappings == other.mappings
    }

    /// A hash that agrees with ``isEqual(_:)``; it follows from the entity mappings, which should not change while a set has the model.
    open override var hash: Int { mappings.hashValue }

    /// The mappings by name; of two with one name the later counts.
    ///
    /// - Complexity: O(number of mappings), each time.
    open var entityMappingsByName: [String: NSEntityMapping] {
        Dictionary(mappings.map { ($0.effectiveName, $0) }) { _, later in later }
    }

    /// A model without mappings, to be filled in code.
    public override init() { super.init() }

    /// Finds the mapping model that fits two models among the resources of bundles.
    ///
    /// Compiled (`.cdm`) and edited ones (`.xcmappingmodel`) are looked at. One fits if the version hashes that it has
    /// recorded are those of the models, and if every entity that it leaves out is equal in both models, or in only one
    /// of them; see ``mismatches(sourceModel:destinationModel:)``. The order of files and of
    /// mappings does not matter. `nil` comes back if there is none that fits, and if one of the models is `nil`.
    ///
    /// ```swift
    /// if let mapping = NSMappingModel(from: nil, forSourceModel: old, destinationModel: new) {
    ///     print(mapping.entityMappingsByName.keys.sorted())
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - bundles: The bundles; `nil` for the main one, and the resources of the package's other targets beside it.
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
    /// `nil` comes back if there is no file, or it is no mapping model; see ``init(reading:from:to:)`` for the form that tells why.
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
    ///   - source: The model that an `.xcmappingmodel` maps from. If this or the next one is `nil`, both are looked for at the paths in the file.
    ///   - destination: The model that it maps to.
    /// - Throws: `fileReadNoSuchFile` (260), `fileReadTooLarge` (263), or `fileReadCorruptFile` (259) with what is wrong.
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

    /// What keeps the mapping model from being used between two models; empty if it fits.
    ///
    /// Stricter than Apple's framework, which looks at the recorded hashes alone. There a mapping model that leaves out an
    /// entity fits any other two versions in which only that entity differs, and its objects are lost. An addition to Apple's
    /// API.
    ///
    /// - Parameters:
    ///   - sourceModel: The model to migrate from.
    ///   - destinationModel: The model to migrate to.
    /// - Returns: A sentence for each entity that does not fit, with both hashes where these differ.
    public final func mismatches(
        sourceModel: NSManagedObjectModel,
        destinationModel: NSManagedObjectModel
    ) -> [String] {
        MappingModelMatch(self, from: sourceModel, to: destinationModel).problems
    }
}
