import CoreData

/// One version of a model with the name of its file.
struct NamedModel {
    let name: String
    let model: NSManagedObjectModel
    /// The text that the model was read from, if that was XML.
    var xml: String?
    /// Whether it is the copy in a store.
    var isOfStore = false

    /// The model in Xcode's form: the text of its file, if it was read from one.
    ///
    /// A model's descriptions cannot hold everything in such a file, for example the settings for generated classes.
    var xmlText: String { xml ?? ModelXMLWriter.text(of: model, remark: remark) }

    /// The text at the beginning of a form that can be edited.
    var remark: [String] { isOfStore ? Self.storeRemark : [] }

    private static let storeRemark = [
        "This is the copy of the model that the store keeps.",
        "Left out, if Strata made the store: validation, fetched properties, fetch requests, default values of "
            + "transformable attributes, and fetch indexes of expressions or of some rows.",
    ]
}

/// The source of a model: a file or folder of any form, or the copy in a store.
struct ModelSource {
    /// The versions, by name.
    let versions: [NamedModel]
    /// The version that a program would use.
    let current: NamedModel

    /// Reads a model, with the classes that it names.
    ///
    /// - Parameter path: An `.xcdatamodeld`, `.xcdatamodel`, `contents`, `.momd` or `.mom`, or an SQLite store.
    /// - Throws: Errors of reading, and 134020 if a store has no copy of its model.
    init(_ path: String) throws {
        let url = URL(fileURLWithPath: path)
        let name = Self.name(of: url)
        if Self.isStore(url) {
            let model = try NSPersistentStoreCoordinator.cachedModelForPersistentStore(
                at: url,
                options: [NSReadOnlyPersistentStoreOption: true]
            )
            current = NamedModel(name: name, model: model, isOfStore: true)
            versions = [current]
            return
        }
        let (model, xml) = try NSManagedObjectModel.reading(url)
        guard ["xcdatamodeld", "momd"].contains(url.pathExtension) else {
            current = NamedModel(name: name, model: model, xml: xml)
            versions = [current]
            return
        }
        let kind = url.pathExtension == "momd" ? "mom" : "xcdatamodel"
        let entries = try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
        versions = try entries.filter { $0.pathExtension == kind }.sorted { $0.path < $1.path }
            .map { version in
                let (model, xml) = try NSManagedObjectModel.reading(version)
                return NamedModel(name: Self.name(of: version), model: model, xml: xml)
            }
        // The current version is recognised by its content: the framework returns the model, not the file.
        current =
            versions.last { $0.model == model && $0.xml == xml } ?? NamedModel(name: name, model: model, xml: xml)
    }

    /// The name without extensions; for `contents`, the name of its folder.
    private static func name(of url: URL) -> String {
        let plain = url.deletingPathExtension().lastPathComponent
        guard plain == "contents", url.deletingLastPathComponent().pathExtension == "xcdatamodel" else {
            return plain.hasSuffix(".contents") ? String(plain.dropLast(9)) : plain
        }
        return url.deletingLastPathComponent().deletingPathExtension().lastPathComponent
    }

    private static func isStore(_ url: URL) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        return (try? file.read(upToCount: 16)) == Data("SQLite format 3\0".utf8)
    }
}
