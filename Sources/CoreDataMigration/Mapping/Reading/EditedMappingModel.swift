import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

/// A mapping model in Xcode's editable form: the objects of an XML store, before mappings are made from them.
struct EditedMappingModel {
    struct Entity {
        var name: String?
        var source: String?
        var destination: String?
        var number = 0
        var policy: String?
        var predicate: String?
        var sourceExpression: Data?
        var userInfo: Data?
        var attributes: [Property] = []
        var relationships: [Property] = []
    }

    struct Property {
        var name: String
        var expression: Data?
        var keyPath: String?
        var mappingName: String?
        var userInfo: Data?
    }

    private(set) var entities: [Entity] = []
    private var sourcePath = ""
    private var destinationPath = ""

    /// Reads the XML.
    ///
    /// Only the objects that the one mapping model lists are used: files keep leftovers of former edits.
    init(_ data: Data) throws(ModelError) {
        let root = try ModelXMLParser.parse(data, .text)
        guard root.name == "database" else {
            throw ModelError(.malformed, "its root element is <\(root.name)>, not <database>")
        }
        var objects: [String: Object] = [:]
        var models: [Object] = []
        for element in root.children("object") {
            guard let id = element.text("id"), let type = element.text("type") else { continue }
            let object = Object(element, type.uppercased())
            objects[id] = object
            if object.type == "XDDEVMAPPINGMODEL" { models.append(object) }
        }
        guard let model = models.first, models.count == 1 else {
            throw ModelError(.malformed, "it has \(models.count) objects of type XDDEVMAPPINGMODEL, not one")
        }
        sourcePath = model.text("sourcemodelpath") ?? ""
        destinationPath = model.text("destinationmodelpath") ?? ""
        var seen: Set<String> = []
        for id in model.members("entitymappings") where seen.insert(id).inserted {
            guard let object = objects[id], object.type == "XDDEVENTITYMAPPING" else { continue }
            entities.append(Self.entity(object, objects))
        }
        // If numbers are equal, then the order of the list decides.
        entities = entities.enumerated()
            .sorted { ($0.element.number, $0.offset) < ($1.element.number, $1.offset) }.map(\.element)
    }

    private static func entity(_ object: Object, _ objects: [String: Object]) -> Entity {
        var entity = Entity()
        entity.name = object.text("name")
        entity.source = object.text("sourcename")
        entity.destination = object.text("destinationname")
        entity.number = object.text("mappingnumber").flatMap(Int.init) ?? 0
        entity.policy = object.text("migrationpolicyclassname")
        entity.predicate = object.text("sourcefilterpredicatestring")
        if object.text("autogenerateexpression") == "0" {
            entity.sourceExpression = object.data("sourceexpressiondata")
        }
        entity.userInfo = object.data("userinfodata")
        entity.attributes = properties(object.members("attributemappings"), objects)
        entity.relationships = properties(object.members("relationshipmappings"), objects)
        return entity
    }

    private static func properties(_ ids: [String], _ objects: [String: Object]) -> [Property] {
        var seen: Set<String> = []
        return ids.compactMap { id in
            guard seen.insert(id).inserted, let object = objects[id], let name = object.text("name") else { return nil }
            return Property(
                name: name,
                expression: object.data("valueexpressiondata"),
                keyPath: object.text("sourcekeypath"),
                mappingName: object.text("sourcemappingname"),
                userInfo: object.data("userinfodata")
            )
        }.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    /// One object of the XML store.
    private struct Object {
        let type: String
        private var attributes: [String: String] = [:]
        private var relationships: [String: [String]] = [:]

        init(_ element: ModelXMLElement, _ type: String) {
            self.type = type
            for child in element.children {
                guard let name = child.text("name")?.lowercased() else { continue }
                switch child.name {
                case "attribute": attributes[name] = child.content
                case "relationship":
                    relationships[name] = (child["idrefs"] ?? "").split(separator: " ").map(String.init)
                default: break
                }
            }
        }

        /// A text; an empty text gives `nil` too.
        func text(_ name: String) -> String? { attributes[name].flatMap { $0.isEmpty ? nil : $0 } }

        /// Bytes, which are written in Base64 with line breaks.
        func data(_ name: String) -> Data? {
            text(name).flatMap { Data(base64Encoded: $0, options: .ignoreUnknownCharacters) }
        }

        func members(_ name: String) -> [String] { relationships[name] ?? [] }
    }

    // MARK: - The models

    /// The models that the file names, by paths in a project that may have been moved since.
    ///
    /// - Throws: An error that names the missing model.
    func models(beside file: URL) throws(ModelError) -> MappingModelFile.Models {
        MappingModelFile.Models(
            source: try model(sourcePath, beside: file),
            destination: try model(destinationPath, beside: file)
        )
    }

    /// Searches for the whole path, and for its last two parts, in the folders around the file.
    private func model(_ path: String, beside file: URL) throws(ModelError) -> NSManagedObjectModel {
        let parts = path.split(separator: "/").map(String.init)
        guard let last = parts.last, last.hasSuffix(".xcdatamodel"), !parts.contains("..") else {
            throw ModelError(.malformed, "it names no model: \"\(path)\"")
        }
        let tails = [parts, parts.suffix(2), parts.suffix(1)].map { $0.joined(separator: "/") }
        var folder = file.deletingLastPathComponent()
        for _ in 0..<8 {
            for tail in tails {
                let candidate = folder.appendingPathComponent(tail)
                guard FileManager.default.fileExists(atPath: candidate.path) else { continue }
                if let model = NSManagedObjectModel(contentsOf: candidate) { return model }
            }
            guard folder.path != "/" else { break }
            folder = folder.deletingLastPathComponent()
        }
        throw ModelError(.missing, "its model \"\(path)\" is neither there nor beside the mapping model")
    }
}
