import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

/// Reads mapping models from files.
enum MappingModelFile {
    /// The two models of a mapping model.
    struct Models {
        let source: NSManagedObjectModel
        let destination: NSManagedObjectModel
    }

    /// Reads a mapping model.
    ///
    /// - Parameters:
    ///   - url: A compiled `.cdm` file, or an `.xcmappingmodel` folder or the XML in it.
    ///   - models: The models of the editable form; `nil` to find them at its paths. The compiled form needs none.
    /// - Returns: The mappings, in order.
    /// - Throws: A `CocoaError` with the problem: 260, 263 or 259.
    static func mappings(at url: URL, models: Models? = nil) throws -> [NSEntityMapping] {
        do {
            let (data, file) = try contents(at: url)
            if data.starts(with: Data("bplist".utf8)) { return try CompiledMappingReader.mappings(in: data) }
            let edited = try EditedMappingModel(data)
            return try MappingModelCompiler(edited, try models ?? edited.models(beside: file)).mappings()
        } catch let error as ModelError {
            throw CocoaError.described(
                error.kind.code,
                userInfo: [
                    NSLocalizedDescriptionKey: "The mapping model at \(url.path) cannot be used: \(error.reason).",
                    NSURLErrorKey: url,
                ]
            )
        }
    }

    private static func contents(at url: URL) throws(ModelError) -> (data: Data, file: URL) {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
            throw ModelError(.missing, "there is no such file")
        }
        let file = isFolder.boolValue ? url.appendingPathComponent("xcmapping.xml") : url
        guard FileManager.default.fileExists(atPath: file.path) else {
            throw ModelError(.missing, "the folder has no file \"xcmapping.xml\"")
        }
        return (try ModelPackage.read(file), file)
    }
}

/// The mapping models among the resources of bundles, checked against two models.
struct MappingModelSearch {
    /// A mapping model that fits.
    struct Found {
        let url: URL
        let mappings: [NSEntityMapping]
    }

    /// The mapping models that fit, in the order of their paths.
    private(set) var fitting: [Found] = []
    /// The mapping models that do not fit, with the reasons; those with the fewest problems come first.
    private(set) var others: [(url: URL, problems: [String])] = []

    private static let extensions: Set<String> = ["cdm", "xcmappingmodel"]

    init(_ bundles: [Bundle]?, from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        self.init(
            NSManagedObjectModel.resources(in: bundles, withExtensions: Self.extensions),
            from: source,
            to: destination
        )
    }

    /// Searches only one folder.
    init(in folder: URL, from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        let files = try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let found = (files ?? []).filter { Self.extensions.contains($0.pathExtension) }.sorted { $0.path < $1.path }
        self.init(found, from: source, to: destination)
    }

    private init(_ files: [URL], from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        for url in files {
            do {
                let mappings = try MappingModelFile.mappings(at: url)
                let model = NSMappingModel()
                model.entityMappings = mappings
                let problems = MappingModelMatch(model, from: source, to: destination).problems
                if problems.isEmpty, !mappings.isEmpty {
                    fitting.append(Found(url: url, mappings: mappings))
                } else {
                    others.append((url, problems))
                }
            } catch {
                others.append((url, [error.localizedDescription]))
            }
        }
        others.sort { $0.problems.count < $1.problems.count }
    }

    /// The results of both searches.
    func merging(_ other: MappingModelSearch) -> MappingModelSearch {
        var merged = self
        merged.fitting += other.fitting
        merged.others = (others + other.others).sorted { $0.problems.count < $1.problems.count }
        return merged
    }
}
